"""What holds for every test: nothing of vcnb is left running, and where nothing may be skipped (VCNB_NO_SKIP=1) a skip fails."""

import os
import threading

import pytest

NO_SKIP = os.environ.get("VCNB_NO_SKIP", "") not in ("", "0")
JOIN_SECONDS = 10.0


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    if NO_SKIP and report.skipped and not hasattr(report, "wasxfail"):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
        report.outcome = "failed"
        report.longrepr = f"{item.nodeid} was skipped, and nothing may be skipped here: {reason}"
    return report


def pytest_terminal_summary(terminalreporter):
    skipped = terminalreporter.stats.get("skipped", [])
    if skipped:
        terminalreporter.section(f"{len(skipped)} TESTS DID NOT RUN", red=True, bold=True)
        for reason in sorted({str(report.longrepr[2]) for report in skipped if isinstance(report.longrepr, tuple)}):
            terminalreporter.line(reason)


@pytest.fixture(autouse=True)
def _no_thread_of_vcnb_is_left():
    before = set(threading.enumerate())
    yield
    for thread in set(threading.enumerate()) - before:
        if thread.name.startswith("vcnb-"):
            thread.join(JOIN_SECONDS)
            assert not thread.is_alive(), f"thread {thread.name} was left running"
