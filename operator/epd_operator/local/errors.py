"""What keeps a deployment from being run on this machine."""


class LocalError(Exception):
    """The run cannot start or go on; the message says where, what was found, why and what to do."""
