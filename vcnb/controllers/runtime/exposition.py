"""Numbers as Prometheus reads them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

__all__ = ["CONTENT_TYPE", "exposition"]

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"

_COUNTERS: Final = ("_phase_count",)


def exposition(registry: CollectorRegistry) -> str:
    """All numbers of a registry in the text exposition format (imports ``prometheus_client``)."""
    from prometheus_client import generate_latest

    return _with_counters(generate_latest(registry).decode())


def _with_counters(text: str) -> str:
    """Volcano's counters have no ``_total`` in their names, which the library insists on, and so calls them untyped."""
    lines = text.splitlines(keepends=True)
    return "".join(
        line.replace(" untyped", " counter")
        if line.startswith("# TYPE ") and line.split()[2].endswith(_COUNTERS)
        else line
        for line in lines
    )
