"""The `epd` command: thin commands over the same functions that the operator asks."""
