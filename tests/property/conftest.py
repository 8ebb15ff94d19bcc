"""How many histories are played: profile ``ci`` (500 in all, always the same) or ``nightly`` (10,000, always new ones).

``VCNB_HYPOTHESIS_PROFILE`` chooses; ``make nightly`` runs the second.
"""

from __future__ import annotations

import logging
import os

import pytest
from hypothesis import HealthCheck, settings

_COMMON = {
    "deadline": None,
    "suppress_health_check": [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
    "stateful_step_count": 20,
    "print_blob": True,
}

settings.register_profile("ci", max_examples=500, derandomize=True, database=None, **_COMMON)
settings.register_profile("nightly", max_examples=10_000, **_COMMON)
settings.load_profile(os.environ.get("VCNB_HYPOTHESIS_PROFILE", "ci"))


def pytest_itemcollected(item: pytest.Item) -> None:
    """Hundreds of histories in one test take longer than a single story does."""
    item.add_marker(pytest.mark.timeout(900))


@pytest.fixture(autouse=True)
def _quiet(caplog: pytest.LogCaptureFixture) -> None:
    """What controllers log of injected faults would fill the report of a failure."""
    caplog.set_level(logging.CRITICAL)
