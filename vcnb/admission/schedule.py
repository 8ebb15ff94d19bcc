"""Cron schedules exactly as Volcano reads them: five fields or a descriptor, as ``robfig/cron`` v3 does by default.

Minutes, hours, days of the month, months, days of the week; ``*`` and ``?`` are the same; lists, ranges and steps;
``JAN``-``DEC`` and ``SUN``-``SAT`` in any case; Sunday is 0 and not 7. There are no seconds, and no ``L``, ``W`` or
``#``. ``@yearly @annually @monthly @weekly @daily @midnight @hourly`` and ``@every DURATION``.

When both kinds of day are restricted a day of either kind will do; ``*/2`` counts as restricted. A slot that the
clock skips in spring does not happen, one that it repeats in autumn happens twice.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from typing import Final
from zoneinfo import ZoneInfo

from vcnb.resources.duration import DurationError, parse_nanoseconds

__all__ = ["Schedule", "ScheduleError", "parse_schedule"]

_MONTH_NAMES: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTHS: Final = {name: number for number, name in enumerate(_MONTH_NAMES, 1)}
_DAYS: Final = {name: number for number, name in enumerate(("sun", "mon", "tue", "wed", "thu", "fri", "sat"))}
_DESCRIPTORS: Final = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_EVERY: Final = "@every "
_NUMBER: Final = re.compile(r"\+?[0-9]+")
_SECOND: Final = 10**9
_HINT: Final = (
    "write five fields (minute hour day month weekday), such as '*/5 * * * *', or @hourly, @daily, @every 90s"
)


class ScheduleError(ValueError):
    """The text is no schedule; the message says which part and why."""


@dataclass(frozen=True)
class _Field:
    name: str
    least: int
    most: int
    names: dict[str, int]


_FIELDS: Final = (
    _Field("minute", 0, 59, {}),
    _Field("hour", 0, 23, {}),
    _Field("day of the month", 1, 31, {}),
    _Field("month", 1, 12, _MONTHS),
    _Field("day of the week", 0, 6, _DAYS),
)


@dataclass(frozen=True)
class Schedule:
    """When something happens. ``every`` is the distance in seconds of an ``@every`` schedule, else None."""

    text: str
    every: float | None
    expression: str

    def next(self, after: float, zone: ZoneInfo | None = None) -> float | None:
        """The first slot later than ``after`` (seconds since the epoch) by the clock of ``zone`` (default UTC).

        None when there is none. ``@every`` counts from ``after`` itself, in whole seconds.
        """
        if self.every is not None:
            return float(int(after)) + self.every
        if not self.expression:
            return None
        from cronsim import CronSim, CronSimError

        start = datetime.fromtimestamp(after, zone or UTC)
        try:
            found: datetime = next(CronSim(self.expression, start))
        except (StopIteration, CronSimError):
            return None
        return found.timestamp()


@lru_cache(maxsize=1024)
def parse_schedule(text: str) -> Schedule:
    """Read a schedule. Raises ScheduleError."""
    if text.startswith("@"):
        return _descriptor(text)
    fields = text.split()
    if len(fields) != len(_FIELDS):
        raise ScheduleError(f"{text!r} has {len(fields)} fields instead of 5; {_HINT}")
    parsed = [_parse_field(given, field) for given, field in zip(fields, _FIELDS, strict=True)]
    return Schedule(text, None, _normal(parsed))


def _descriptor(text: str) -> Schedule:
    if text in _DESCRIPTORS:
        return Schedule(text, None, parse_schedule(_DESCRIPTORS[text]).expression)
    if not text.startswith(_EVERY):
        raise ScheduleError(f"{text!r} is no descriptor; there are {', '.join(_DESCRIPTORS)} and @every DURATION")
    try:
        wait = parse_nanoseconds(text[len(_EVERY) :])
    except DurationError as error:
        raise ScheduleError(f"{text!r}: {error}") from error
    return Schedule(text, float(max(wait // _SECOND, 1)), "")


def _parse_field(text: str, field: _Field) -> tuple[list[int], bool]:
    """The numbers that match, and whether the field counts as unrestricted."""
    numbers: set[int] = set()
    star = False
    for part in filter(None, text.split(",")):
        found, unrestricted = _parse_range(part, field)
        numbers.update(found)
        star = star or unrestricted
    return sorted(numbers), star


def _parse_range(text: str, field: _Field) -> tuple[Iterable[int], bool]:
    """``N``, ``N-M``, ``*`` or ``?``, each with an optional ``/STEP``; ``N/STEP`` runs from N to the end."""
    span, slash, step_text = text.partition("/")
    if "/" in step_text:
        raise ScheduleError(f"{text!r} has more than one '/' ({field.name})")
    first, dash, last = span.partition("-")
    star = first in {"*", "?"}
    if "-" in last and not star:
        raise ScheduleError(f"{text!r} has more than one '-' ({field.name})")
    if star:
        low, high = field.least, field.most
    else:
        low = _number(first, field)
        high = _number(last, field) if dash else low
    step = 1
    if slash:
        step = _plain_number(step_text, field)
        if not dash:
            high = field.most
        star = star and step == 1
    if low < field.least or high > field.most:
        raise ScheduleError(f"{text!r} is not from {field.least} to {field.most} ({field.name}){_sunday(text, field)}")
    if low > high:
        raise ScheduleError(f"{text!r} runs backwards ({field.name}); write it as a list of two ranges")
    if step == 0:
        raise ScheduleError(f"{text!r} has step 0 ({field.name})")
    return range(low, high + 1, step), star


def _sunday(text: str, field: _Field) -> str:
    return "; Sunday is 0" if field.names is _DAYS and "7" in text else ""


def _number(text: str, field: _Field) -> int:
    named = field.names.get(text.lower())
    return named if named is not None else _plain_number(text, field)


def _plain_number(text: str, field: _Field) -> int:
    if not _NUMBER.fullmatch(text):
        names = f" or one of {', '.join(name.upper() for name in field.names)}" if field.names else ""
        raise ScheduleError(f"{text!r} is no number{names} ({field.name}); {_HINT}")
    return int(text)


def _normal(fields: list[tuple[list[int], bool]]) -> str:
    """The same schedule in the dialect of the library that computes slots.

    It has six fields, since the library treats clock changes as this module says only for those; every field but an
    unrestricted day is a list of numbers, since the library takes any day field that begins with ``*`` as unrestricted.
    The empty text when a field matches nothing (``,`` is accepted).
    """
    if not all(numbers for numbers, _ in fields):
        return ""
    texts = ["0"]
    for index, (numbers, star) in enumerate(fields):
        is_day = index in {2, 4}
        texts.append("*" if star and is_day else ",".join(map(str, numbers)))
    return " ".join(texts)
