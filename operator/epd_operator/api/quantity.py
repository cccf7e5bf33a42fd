"""Kubernetes resource quantities: `512Mi`, `1.5G`, `2`."""

import re
from fractions import Fraction
from typing import Any, Self

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import PydanticCustomError, core_schema

_SUFFIXES = {
    "n": Fraction(1, 10**9),
    "u": Fraction(1, 10**6),
    "m": Fraction(1, 1000),
    "": Fraction(1),
    "k": Fraction(10**3),
    "M": Fraction(10**6),
    "G": Fraction(10**9),
    "T": Fraction(10**12),
    "P": Fraction(10**15),
    "E": Fraction(10**18),
    "Ki": Fraction(2**10),
    "Mi": Fraction(2**20),
    "Gi": Fraction(2**30),
    "Ti": Fraction(2**40),
    "Pi": Fraction(2**50),
    "Ei": Fraction(2**60),
}
PATTERN = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)(([KMGTPE]i)|[numkMGTPE]|([eE][+-]?[0-9]{1,2}))?$"
_SHAPE = re.compile(r"(?P<number>[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+))(?P<suffix>[eE][+-]?[0-9]{1,2}|[A-Za-z]{0,2})")


class Quantity(str):
    """An amount in Kubernetes' notation; keeps the text the user wrote.

    Grammar: https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/quantity/. Raises ValueError for
    any other text.
    """

    __slots__ = ("amount",)
    amount: Fraction

    def __new__(cls, text: str) -> Self:
        """Read the text; ValueError if it is no quantity."""
        self = super().__new__(cls, text)
        self.amount = _amount(text)
        return self

    @property
    def bytes(self) -> int:
        """The amount as whole bytes, rounded up as the API server does."""
        return -(-self.amount.numerator // self.amount.denominator)

    @classmethod
    def of_bytes(cls, count: int) -> "Quantity":
        """Write `count` bytes in the largest binary unit that divides it."""
        for suffix in ("Ti", "Gi", "Mi", "Ki"):
            unit = int(_SUFFIXES[suffix])
            if count and count % unit == 0:
                return cls(f"{count // unit}{suffix}")
        return cls(str(count))

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> core_schema.CoreSchema:
        """Accept a string in the notation, or a whole number, as the API server does."""
        return core_schema.no_info_plain_validator_function(_validate, serialization=core_schema.to_string_ser_schema())

    @classmethod
    def __get_pydantic_json_schema__(
        cls, schema: core_schema.CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        """The structural schema that Kubernetes itself uses for quantities."""
        return {
            "anyOf": [{"type": "integer"}, {"type": "string"}],
            "pattern": PATTERN,
            "x-kubernetes-int-or-string": True,
        }


def _amount(text: str) -> Fraction:
    match = _SHAPE.fullmatch(text) if len(text) <= 64 else None
    if match is None:
        raise ValueError(f"{text[:64]!r} is not a quantity")
    suffix = match["suffix"]
    if suffix in _SUFFIXES:
        return Fraction(match["number"]) * _SUFFIXES[suffix]
    if suffix[:1] in "eE" and len(suffix) > 1:
        return Fraction(match["number"]) * Fraction(10) ** int(suffix[1:])
    raise ValueError(f"{text[:64]!r} is not a quantity")


def _validate(value: object) -> Quantity:
    text = value
    if isinstance(value, int) and not isinstance(value, bool) and value.bit_length() < 64:  # more is a float in JSON
        text = str(value)
    if isinstance(text, str):
        try:
            quantity = Quantity(text)
        except ValueError:
            pass
        else:
            if quantity.amount >= 0:
                return quantity
    raise PydanticCustomError(
        "quantity", "must be a quantity of 0 or more such as 512Mi, 4Gi or 2 (binary units end in i)"
    )
