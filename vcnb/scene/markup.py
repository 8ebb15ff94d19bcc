"""Pieces of HTML that survive in an untrusted notebook: tables, folded sections, bars, times that a live view counts on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from vcnb.scene.snapshot import Stale
from vcnb.scene.svg import number
from vcnb.scene.words import COLOURS, span

__all__ = ["CELL", "bar", "block", "elapsed", "folded", "stale_line", "table"]

CELL = "text-align:left;padding:1px 12px 1px 0;vertical-align:top"


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; cells are markup, the header is text."""
    head = "".join(f'<th scope="col" style="{CELL}">{escape(name)}</th>' for name in header)
    body = "".join("<tr>" + "".join(f'<td style="{CELL}">{cell}</td>' for cell in row) + "</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def folded(title: str, content: str, *, open_: bool = False) -> str:
    """A section that opens when its title is clicked."""
    shown = " open" if open_ else ""
    return f"<details{shown}><summary>{escape(title)}</summary>{content}</details>"


def block(content: str) -> str:
    """The outermost element of a static view."""
    return f'<div style="font-size:13px;line-height:1.5">{content}</div>'


def bar(value: float, most: float, words: str) -> str:
    """A progress bar; ``words`` say the same."""
    shown = f'max="{number(max(most, 1e-9))}" value="{number(min(value, most))}"'
    return f'<progress {shown} style="vertical-align:middle" aria-label="{escape(words)}">{escape(words)}</progress>'


def elapsed(start: float | None, end: float | None, now: float, *, live: bool) -> str:
    """How long something took, or has taken until now; a live view counts the latter on by itself.

    In the live form the text does not depend on ``now``, so that a view need not be sent only because time goes by.
    """
    if start is None:
        return ""
    if end is not None:
        return span(end - start)
    return f'<time data-since="{start:.2f}"></time>' if live else span(now - start)


def stale_line(stale: Stale | None, now: float, *, live: bool) -> str:
    """A line that says since when what is shown may be old; nothing when it is current."""
    if stale is None:
        return ""
    since = elapsed(stale.since, None, now, live=live)
    why = f": {escape(stale.why)}" if stale.why else ""
    return (
        f'<div role="status" style="color:{COLOURS["wait"]}">stale since {since}, the server was not heard{why}</div>'
    )
