"""The rules: each one entry of data and one pure function. See `rule.py` for what an entry is."""

from epd_operator.engine.rules.table import RULES, check

__all__ = ["RULES", "check"]
