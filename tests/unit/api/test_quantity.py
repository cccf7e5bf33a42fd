"""Quantities against an independent reading of Kubernetes' grammar."""

from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from epd_operator.api.quantity import Quantity

EXPONENTS = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
SHIFTS = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
NUMBERS = st.from_regex(r"\A[+-]?([0-9]{1,6}(\.[0-9]{0,4})?|\.[0-9]{1,4})\Z")


@given(NUMBERS, st.sampled_from(sorted(EXPONENTS)))
def test_decimal_units(number: str, unit: str) -> None:
    assert Quantity(number + unit).amount == Decimal(number) * Decimal(10) ** EXPONENTS[unit]


@given(NUMBERS, st.sampled_from(sorted(SHIFTS)))
def test_binary_units(number: str, unit: str) -> None:
    assert Quantity(number + unit).amount == Decimal(number) * (1 << SHIFTS[unit])


@given(NUMBERS, st.integers(-30, 30), st.sampled_from("eE"))
def test_exponents(number: str, exponent: int, letter: str) -> None:
    assert Quantity(f"{number}{letter}{exponent}").amount == Fraction(Decimal(number).scaleb(exponent))


@given(st.integers(0, 1 << 70))
def test_bytes_come_back(count: int) -> None:
    quantity = Quantity.of_bytes(count)
    assert quantity.bytes == count
    assert Quantity(str(quantity)).bytes == count


@given(st.integers(1, 1 << 20), st.sampled_from(["Ki", "Mi", "Gi", "Ti"]))
def test_the_largest_unit_is_used(count: int, unit: str) -> None:
    text = Quantity.of_bytes(count << SHIFTS[unit])
    assert len(text) <= len(f"{count}{unit}")


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("1m", 1),
        ("1500m", 2),
        ("0.5Ki", 512),
        ("1n", 1),
        ("0", 0),
        ("1.1", 2),
        ("1e3", 1000),
        ("1E", 10**18),
        (".5", 1),
    ],
)
def test_bytes_are_rounded_up(text: str, count: int) -> None:
    assert Quantity(text).bytes == count


def test_the_text_is_kept() -> None:
    assert Quantity("1024Mi") == "1024Mi"
    assert str(Quantity("1024Mi")) == "1024Mi"


@pytest.mark.parametrize(
    "text",
    [
        *("", " ", "1 Gi", "4GB", "4gi", "4GiB", "K", ".", "-", "+", "1e", "1e400", "0x10", "1_000", "1,5", "1Mi "),
        *("\n1", "\u0661", "9" * 65, "inf", "nan", "1K", "1ki", "1mi", "--1", "1.2.3"),
    ],
)
def test_what_is_no_quantity(text: str) -> None:
    with pytest.raises(ValueError, match="is not a quantity"):
        Quantity(text)


@given(st.text(max_size=70))
def test_nothing_but_value_error(text: str) -> None:
    try:
        quantity = Quantity(text)
    except ValueError:
        return
    assert quantity.amount == Quantity(str(quantity)).amount
