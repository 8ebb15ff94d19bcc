"""Amounts of resources as whole thousandths, the arithmetic of the scheduler.

``cpu`` is in millicores, ``memory`` in thousandths of a byte, a GPU in thousandths of one, so that everything is exact
and a sum is a few integer additions. A name that is missing counts as zero.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

from vcnb.resources.quantity import Quantity

__all__ = [
    "Amounts",
    "add",
    "compared",
    "exceeding",
    "in_words",
    "listing",
    "minus",
    "parse_amounts",
    "plus",
    "resource_order",
    "subtract",
]

Amounts: TypeAlias = dict[str, int]
"""Thousandths by resource name."""


def parse_amounts(resources: Mapping[str, Any] | None) -> Amounts:
    """What ``requests``, ``allocatable``, ``capability`` ... say. Raises QuantityError."""
    return {name: Quantity.parse(amount).millis for name, amount in (resources or {}).items()}


def add(into: Amounts, amounts: Mapping[str, int]) -> None:
    """Add in place."""
    for name, amount in amounts.items():
        into[name] = into.get(name, 0) + amount


def subtract(into: Amounts, amounts: Mapping[str, int]) -> None:
    """Subtract in place; a result may be negative."""
    for name, amount in amounts.items():
        into[name] = into.get(name, 0) - amount


def plus(left: Mapping[str, int], right: Mapping[str, int]) -> Amounts:
    """The sum as a new value."""
    total = dict(left)
    add(total, right)
    return total


def minus(left: Mapping[str, int], right: Mapping[str, int]) -> Amounts:
    """What of ``left`` is beyond ``right``, never negative; only names of ``left``."""
    return {name: rest for name, amount in left.items() if (rest := amount - right.get(name, 0)) > 0}


def exceeding(need: Mapping[str, int], free: Mapping[str, int]) -> list[str]:
    """The names of which more is needed than is free, in the order of :func:`resource_order`."""
    return sorted(
        (name for name, amount in need.items() if amount > 0 and amount > free.get(name, 0)), key=resource_order
    )


def resource_order(name: str) -> tuple[int, str]:
    """cpu, memory, then the others by name: the order in which Volcano names them."""
    return ({"cpu": 0, "memory": 1}.get(name, 2), name)


_UNCOMPARED_PREFIXES = ("count/", "requests.", "limits.")


def compared(resources: Mapping[str, int]) -> Amounts:
    """Only what admission to a queue compares: cpu, memory and scalars, not ``pods`` or quota names.

    Source: Volcano's enqueue votes, which look at the dimensions of a resource and at no object counts.
    """
    return {
        name: amount
        for name, amount in resources.items()
        if name != "pods" and not name.startswith(_UNCOMPARED_PREFIXES)
    }


def in_words(name: str, amount: int) -> str:
    """An amount as a person writes it: ``1.5 cpu``, ``3Gi memory``, ``2 nvidia.com/gpu``."""
    if name == "memory" or name.startswith(("hugepages-", "ephemeral-storage")):
        return f"{_bytes(amount // 1000)} {name}"
    whole, rest = divmod(amount, 1000)
    return f"{amount / 1000:g} {name}" if rest else f"{whole} {name}"


_UNITS = ("", "Ki", "Mi", "Gi", "Ti", "Pi")


def _bytes(count: int) -> str:
    size = float(count)
    for unit in _UNITS:
        if abs(size) < 1024 or unit == _UNITS[-1]:
            return f"{size:.4g}{unit}"
        size /= 1024
    raise AssertionError


def listing(parts: Iterable[str]) -> str:
    """``a``, ``a and b``, ``a, b and c``."""
    *head, last = list(parts) or [""]
    return f"{', '.join(head)} and {last}" if head else last
