"""What goes wrong in a way the user can do something about."""


class ClusterError(Exception):
    """The message says where, what was found and what to do; it is printed without a traceback."""


class MissingPrerequisite(ClusterError):  # noqa: N818  it is a state of the machine, not a mistake
    """The machine lacks a program that this needs."""
