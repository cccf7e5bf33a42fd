"""A plan becomes processes on this machine."""
