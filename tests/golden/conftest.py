"""Says at the end of a run how many traces were equal."""

from __future__ import annotations

import pytest


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    stats = terminalreporter.stats
    equal, other = (sum(map(_is_trace, stats.get(outcome, ()))) for outcome in ("passed", "failed"))
    if equal + other:
        terminalreporter.write_line(f"{equal} of {equal + other} traces equal")


def _is_trace(report: object) -> bool:
    nodeid = getattr(report, "nodeid", "")
    return "tests/golden/" in nodeid and "_trace[" in nodeid
