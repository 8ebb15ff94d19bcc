"""How states, times and amounts are said: a shape, a word and a colour for every state; ages as kubectl prints them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from typing import Any

from vcnb.clock import parse_time
from vcnb.scene.snapshot import Stale

__all__ = ["COLOURS", "MARKS", "TIMES", "Mark", "age", "badge", "mark", "seconds_of", "span", "stale_text"]

TIMES = "\N{MULTIPLICATION SIGN}"

COLOURS: Mapping[str, str] = {
    "off": "var(--jp-ui-font-color2, #757575)",
    "run": "var(--jp-info-color1, #1976d2)",
    "good": "var(--jp-success-color1, #388e3c)",
    "wait": "var(--jp-warn-color0, #b26a00)",
    "bad": "var(--jp-error-color1, #d32f2f)",
}
"""The five tones of a state, each a variable of JupyterLab's theme with a fallback; a shape in it stands out by 3:1."""


@dataclass(frozen=True)
class Mark:
    """A state's shape (readable without colour) and its tone, one of ``COLOURS``."""

    shape: str
    tone: str

    @property
    def colour(self) -> str:
        """The tone as CSS."""
        return COLOURS[self.tone]


_GREY, _BLUE, _GREEN, _AMBER, _RED = "off", "run", "good", "wait", "bad"

MARKS: Mapping[str, Mark] = {
    "": Mark("○", _GREY),
    "Pending": Mark("◔", _AMBER),
    "Inqueue": Mark("◑", _AMBER),
    "Running": Mark("▶", _BLUE),
    "Restarting": Mark("↻", _AMBER),
    "Completing": Mark("◕", _GREEN),
    "Terminating": Mark("◕", _RED),
    "Aborting": Mark("◕", _AMBER),
    "Aborted": Mark("‖", _AMBER),
    "Completed": Mark("✔", _GREEN),
    "Succeeded": Mark("✔", _GREEN),
    "Succeed": Mark("✔", _GREEN),
    "Failed": Mark("✘", _RED),
    "Terminated": Mark("■", _RED),
    "Waiting": Mark("○", _GREY),
    "Retrying": Mark("↻", _AMBER),
    "TimedOut": Mark("◴", _RED),
    "Skipped": Mark("»", _GREY),
    "Omitted": Mark("⊘", _GREY),
    "Cancelled": Mark("■", _GREY),
    "Ready": Mark("✔", _GREEN),
    "Unknown": Mark("?", _RED),
    "Open": Mark("○", _GREEN),
    "Closed": Mark("●", _RED),
    "Closing": Mark("◐", _AMBER),
    "WAITING": Mark("◔", _AMBER),
    "RUNNING": Mark("▶", _BLUE),
    "VERIFYING": Mark("◕", _BLUE),
    "SUCCEEDED": Mark("✔", _GREEN),
    "FAILED": Mark("✘", _RED),
    "STOPPED": Mark("■", _AMBER),
}


def mark(state: str) -> Mark:
    """The mark of a state; a question mark for one that is not known."""
    return MARKS.get(state, MARKS["Unknown"])


def badge(state: str) -> str:
    """A state as HTML: a coloured shape and the word in the colour of text; survives an untrusted notebook's sanitizer."""
    shown = mark(state)
    shape = f'<span style="color:{shown.colour};font-weight:bold">{shown.shape}</span>'
    return f'<span style="white-space:nowrap">{shape} {escape(state or "new")}</span>'


def seconds_of(text: Any) -> float | None:
    """Seconds since the epoch of an RFC 3339 text; None for what is missing or unreadable."""
    try:
        return parse_time(text) if isinstance(text, str) else None
    except ValueError:
        return None


def span(seconds: float) -> str:
    """A length of time in at most two units: ``0.42s``, ``7.3s``, ``3m10s``, ``5h7m``, ``2d4h``."""
    if seconds < 0:
        return "0s"
    if seconds < 1:
        return f"{seconds:.2f}s"
    if seconds < 10:
        return f"{seconds:.1f}s"
    if seconds < 120:
        return f"{seconds:.0f}s"
    whole = int(seconds)
    for size, unit, smaller, small_unit in ((86400, "d", 3600, "h"), (3600, "h", 60, "m"), (60, "m", 1, "s")):
        if whole >= size:
            rest = whole % size // smaller
            return f"{whole // size}{unit}" + (f"{rest}{small_unit}" if rest else "")
    return f"{whole}s"


def age(created: Any, now: float) -> str:
    """How long ago an RFC 3339 time was, e.g. ``3m10s``; ``<unknown>`` where there is none."""
    then = seconds_of(created)
    return "<unknown>" if then is None else span(now - then)


def stale_text(stale: Stale, now: float) -> str:
    """``since 12s: <why>``: how old what is shown may be."""
    why = f": {stale.why}" if stale.why else ""
    return f"since {span(max(now - stale.since, 0.0))}, the server was not heard{why}"
