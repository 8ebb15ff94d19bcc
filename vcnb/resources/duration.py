"""Durations as Go writes them: ``30s``, ``1h15m``, ``-5m``, ``1.5h``, ``300ms``.

Policies' ``timeout``, ``runningEstimate`` and ``status.runningDuration`` are such text. Source: Go's ``time.Duration``.
"""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Final

__all__ = ["DurationError", "format_duration", "format_nanoseconds", "parse_duration", "parse_nanoseconds"]

_UNITS: Final = {
    "ns": 1,
    "us": 10**3,
    "\u00b5s": 10**3,  # micro sign
    "\u03bcs": 10**3,  # Greek mu
    "ms": 10**6,
    "s": 10**9,
    "m": 60 * 10**9,
    "h": 3600 * 10**9,
}
_PART: Final = re.compile(r"([0-9]+\.?[0-9]*|\.[0-9]+)(ns|us|\u00b5s|\u03bcs|ms|s|m|h)", re.ASCII)
_TEXT: Final = re.compile(f"[+-]?(?:0|(?:{_PART.pattern})+)", re.ASCII)
_LIMIT: Final = 2**63
_MAX_LENGTH: Final = 200


class DurationError(ValueError):
    """The text is no duration; the message says what one looks like."""


def parse_nanoseconds(text: str) -> int:
    """The duration in nanoseconds, exact to the nanosecond. Raises DurationError."""
    if len(text) > _MAX_LENGTH or _TEXT.fullmatch(text) is None:
        hint = f"; did you mean {text + 's'!r}?" if re.fullmatch(r"[+-]?[0-9]+(\.[0-9]+)?", text, re.ASCII) else ""
        raise DurationError(
            f"{text[:50]!r} is no duration{hint or '; write numbers with units h, m, s, ms, us or ns, such as 90s or 1h15m'}"
        )
    total = sum(int(Fraction(number.rstrip(".")) * _UNITS[unit]) for number, unit in _PART.findall(text))
    signed = -total if text.startswith("-") else total
    if not -_LIMIT <= signed < _LIMIT:
        raise DurationError(f"{text!r} is too long for a duration; the longest is about 292 years")
    return signed


def parse_duration(text: str) -> float:
    """The duration in seconds. Raises DurationError."""
    return parse_nanoseconds(text) / 10**9


def format_duration(seconds: float) -> str:
    """Seconds as Go prints them, e.g. ``5m0s``, ``1h0m0s``, ``1.5s``, ``300ms``, ``0s``."""
    return format_nanoseconds(round(Fraction(seconds) * 10**9))


def format_nanoseconds(nanoseconds: int) -> str:
    """Nanoseconds as Go prints them."""
    sign = "-" if nanoseconds < 0 else ""
    rest = abs(nanoseconds)
    if rest < 10**9:
        return sign + _below_a_second(rest)
    minutes, rest = divmod(rest, 60 * 10**9)
    text = _decimal(rest, 10**9) + "s"
    if minutes:
        hours, minutes = divmod(minutes, 60)
        text = (f"{hours}h" if hours else "") + f"{minutes}m{text}"
    return sign + text


def _below_a_second(nanoseconds: int) -> str:
    if nanoseconds == 0:
        return "0s"
    if nanoseconds < 10**3:
        return f"{nanoseconds}ns"
    if nanoseconds < 10**6:
        return _decimal(nanoseconds, 10**3) + "\u00b5s"
    return _decimal(nanoseconds, 10**6) + "ms"


def _decimal(amount: int, unit: int) -> str:
    whole, part = divmod(amount, unit)
    if not part:
        return str(whole)
    digits = str(part).rjust(len(str(unit)) - 1, "0").rstrip("0")
    return f"{whole}.{digits}"
