"""The difference between what was recorded and what is seen, path by path."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

from vcnb.resources.quantity import Quantity

ABSENT = "(absent)"
SECTIONS = ("jobs", "pods", "podgroups", "others", "flows", "templates")


class Difference(NamedTuple):
    """One path where the two are not equal."""

    path: str
    expected: Any
    got: Any

    def __str__(self) -> str:
        return f"{self.path}\n      expected {self.expected!r}\n      got      {self.got!r}"


def differences(expected: Mapping[str, Any], got: Mapping[str, Any], unstable: Sequence[str] = ()) -> list[Difference]:
    """All differences outside the ``unstable`` paths, where ``*`` stands for any name.

    A section that the recording leaves out is empty.
    """
    wanted = {section: expected.get(section) or {} for section in SECTIONS}
    found = {section: got.get(section) or {} for section in SECTIONS}
    return [
        difference
        for difference in _compare("", wanted, found)
        if not any(_covers(mask, difference.path) for mask in unstable)
    ]


def detail_differences(expected: Mapping[str, Any], got: Mapping[str, Any]) -> list[Difference]:
    """Differences of the full texts."""
    return list(_compare("", expected, got))


def difference_at(path: str, expected: Any, got: Any) -> list[Difference]:
    """The difference at one path, if there is one."""
    found = got
    for part in path.split("/"):
        found = found.get(part, ABSENT) if isinstance(found, Mapping) else ABSENT
    return [] if found == expected else [Difference(path, expected, found)]


def _covers(mask: str, path: str) -> bool:
    names, parts = mask.split("/"), path.split("/")
    return len(parts) >= len(names) and all(fnmatchcase(part, name) for name, part in zip(names, parts, strict=False))


def _compare(path: str, expected: Any, got: Any) -> Iterator[Difference]:
    if isinstance(expected, Mapping) and isinstance(got, Mapping):
        for key in sorted({*expected, *got}):
            yield from _compare(f"{path}/{key}" if path else key, expected.get(key, ABSENT), got.get(key, ABSENT))
    elif not _equal(path, expected, got):
        yield Difference(path, expected, got)


def _equal(path: str, expected: Any, got: Any) -> bool:
    if expected == got or (_empty(expected) and _empty(got)):
        return True
    if "/minResources/" in path and ABSENT not in (expected, got):
        return Quantity.parse(str(expected)) == Quantity.parse(str(got))
    return False


def _empty(value: Any) -> bool:
    return value == ABSENT or value is None or value in ("", 0, [], {}) or value == {}
