"""What an instance says on standard error."""

import sys


def say(line: str) -> None:
    """Write a line, at once."""
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()
