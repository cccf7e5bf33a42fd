"""Which names stand for something that only few may read."""

import re

_NAME = re.compile(r"(.*[_-])?(key|token|secret|password|credentials?)", re.IGNORECASE)
FLAGS = ("--api-key", "--hf-token")
"""Flags of vLLM whose value is one."""


def is_secret(name: str) -> bool:
    """Whether a variable's value is likely to be a secret, by its name: HF_TOKEN, S3_SECRET_ACCESS_KEY."""
    return _NAME.fullmatch(name) is not None
