"""Kubernetes resource quantities: ``500m``, ``1Gi``, ``1e3``, ``0.5``, exact, and printed as Kubernetes prints them.

The smallest amount is a nano (10^-9); what is finer is rounded away from zero, and what is larger than 2^63 - 1 is cut
to that, as Kubernetes does. Source: ``k8s.io/apimachinery`` resource.Quantity.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, total_ordering
from typing import Any, Final, Literal, TypeAlias

__all__ = [
    "ZERO",
    "Format",
    "Quantity",
    "QuantityError",
    "ResourceList",
    "add_resources",
    "max_resources",
    "resource_list",
    "subtract_resources",
    "sum_resources",
]

Format: TypeAlias = Literal["DecimalSI", "BinarySI", "DecimalExponent"]
"""How a quantity is printed: with ``n u m k M ...``, with ``Ki Mi ...``, or with ``e3 e6 ...``."""

_NANO: Final = 10**9
_MAX: Final = (2**63 - 1) * _NANO
_DECIMAL: Final = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_DECIMAL_SUFFIX: Final = {power: suffix for suffix, power in _DECIMAL.items()}
_BINARY: Final = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_TEXT: Final = re.compile(
    r"(?P<number>[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+))(?:(?P<suffix>[KMGTPE]i|[numkMGTPE])|[eE](?P<power>[+-]?[0-9]+))?",
    re.ASCII,
)
_MAX_POWER: Final = 1000
_MAX_LENGTH: Final = 200
_SUFFIXES: Final = "n u m k M G T P E, Ki Mi Gi Ti Pi Ei, or an exponent such as e3"


class QuantityError(ValueError):
    """The text is no quantity; the message says what one looks like."""


@total_ordering
@dataclass(frozen=True, slots=True, eq=False)
class Quantity:
    """An exact amount. Equal, ordered and hashed by value: ``Quantity.parse("1000m") == Quantity.parse("1")``.

    ``nanos`` is the amount in units of 10^-9; ``format`` only decides how it is printed.
    """

    nanos: int
    format: Format = "DecimalSI"

    @classmethod
    def parse(cls, value: Quantity | str | float) -> Quantity:
        """Read a quantity as it stands in a manifest: text or a number. Raises QuantityError."""
        if isinstance(value, Quantity):
            return value
        if isinstance(value, bool) or not isinstance(value, (str, int, float)):
            raise QuantityError(f"{value!r} is no quantity; write a number such as 1, 500m or 2Gi")
        return _parse(value if isinstance(value, str) else repr(value))

    @property
    def value(self) -> Fraction:
        """The exact amount."""
        return Fraction(self.nanos, _NANO)

    @property
    def is_integer(self) -> bool:
        """Whether it is a whole number, as pods, counts and extended resources must be."""
        return self.nanos % _NANO == 0

    def ceil(self) -> int:
        """The amount as a whole number, rounded away from zero (Kubernetes' ``Value()``)."""
        return _away_from_zero(self.nanos, _NANO)

    @property
    def millis(self) -> int:
        """The amount in thousandths, rounded away from zero (Kubernetes' ``MilliValue()``)."""
        return _away_from_zero(self.nanos, _NANO // 1000)

    def __float__(self) -> float:
        return self.nanos / _NANO

    def __bool__(self) -> bool:
        return self.nanos != 0

    def __add__(self, other: Quantity) -> Quantity:
        """The sum, printed like the left side (like the right one when the left is zero)."""
        return Quantity(self.nanos + other.nanos, self.format if self.nanos else other.format)

    def __sub__(self, other: Quantity) -> Quantity:
        return Quantity(self.nanos - other.nanos, self.format if self.nanos else other.format)

    def __mul__(self, count: int) -> Quantity:
        return Quantity(self.nanos * count, self.format)

    def __neg__(self) -> Quantity:
        return Quantity(-self.nanos, self.format)

    def __eq__(self, other: object) -> bool:
        return self.nanos == other.nanos if isinstance(other, Quantity) else NotImplemented

    def __lt__(self, other: Quantity) -> bool:
        return self.nanos < other.nanos

    def __hash__(self) -> int:
        return hash(self.nanos)

    def __str__(self) -> str:
        """The canonical text: ``3500m``, ``6Gi``, ``3``, ``1k``."""
        if self.nanos == 0:
            return "0"
        if self.format == "BinarySI" and self.is_integer and abs(self.nanos) >= 1024 * _NANO:
            return _binary_text(self.nanos // _NANO)
        number, power = _decimal_parts(self.nanos)
        if self.format == "DecimalExponent":
            return f"{number}e{power}" if power else str(number)
        return f"{number}{_DECIMAL_SUFFIX[power]}"

    def __repr__(self) -> str:
        return f"Quantity({str(self)!r})"


ZERO: Final = Quantity(0)

ResourceList: TypeAlias = Mapping[str, Quantity]
"""Amounts by resource name: ``cpu`` in cores, ``memory`` in bytes, ``pods``, ``nvidia.com/gpu`` ..."""


def resource_list(amounts: Mapping[str, Any] | None) -> dict[str, Quantity]:
    """The amounts of ``requests``, ``limits``, ``capability`` ... as quantities. Raises QuantityError."""
    return {name: Quantity.parse(amount) for name, amount in (amounts or {}).items()}


def add_resources(left: ResourceList, right: ResourceList) -> dict[str, Quantity]:
    """Sum by name; a name that one side lacks counts as zero there."""
    total = dict(left)
    for name, amount in right.items():
        total[name] = total[name] + amount if name in total else amount
    return total


def subtract_resources(left: ResourceList, right: ResourceList) -> dict[str, Quantity]:
    """Difference by name; a name that one side lacks counts as zero there, so amounts may become negative."""
    rest = dict(left)
    for name, amount in right.items():
        rest[name] = rest[name] - amount if name in rest else -amount
    return rest


def sum_resources(lists: Iterable[ResourceList]) -> dict[str, Quantity]:
    """Sum of any number of lists."""
    total: dict[str, Quantity] = {}
    for amounts in lists:
        total = add_resources(total, amounts)
    return total


def max_resources(left: ResourceList, right: ResourceList) -> dict[str, Quantity]:
    """The larger amount of each name."""
    largest = dict(left)
    for name, amount in right.items():
        if name not in largest or largest[name] < amount:
            largest[name] = amount
    return largest


@lru_cache(maxsize=4096)
def _parse(text: str) -> Quantity:
    found = _TEXT.fullmatch(text) if len(text) <= _MAX_LENGTH else None
    if found is None:
        raise QuantityError(f"{text[:50]!r} is no quantity; write a number with at most one suffix of {_SUFFIXES}")
    suffix = found["suffix"] or ""
    number = Fraction(found["number"].rstrip("."))
    if found["power"] is not None:
        power = int(found["power"])
        if not number:
            return Quantity(0, "DecimalExponent")
        power = max(-_MAX_POWER, min(power, _MAX_POWER))
        return Quantity(_nanos(number * Fraction(10) ** power), "DecimalExponent")
    if suffix.endswith("i"):
        nanos = _nanos(number * 1024 ** _BINARY.index(suffix))
        return Quantity(nanos, "DecimalSI" if 0 < nanos < _NANO else "BinarySI")
    return Quantity(_nanos(number * Fraction(10) ** _DECIMAL[suffix]))


def _nanos(amount: Fraction) -> int:
    scaled = amount * _NANO
    nanos = _away_from_zero(scaled.numerator, scaled.denominator)
    return max(-_MAX, min(nanos, _MAX))


def _away_from_zero(amount: int, unit: int) -> int:
    whole = -(-abs(amount) // unit)
    return whole if amount >= 0 else -whole


def _decimal_parts(nanos: int) -> tuple[int, int]:
    """A whole number and a power of ten that is a multiple of three, the largest that is exact (at most 18)."""
    number, power = nanos, -9
    while power < 18 and number % 1000 == 0:
        number //= 1000
        power += 3
    return number, power


def _binary_text(number: int) -> str:
    step = 0
    while step < len(_BINARY) - 1 and number % 1024 == 0:
        number //= 1024
        step += 1
    return f"{number}{_BINARY[step]}"
