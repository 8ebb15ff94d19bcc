"""Scenes for the scenarios of flows: as upstream (``strict``), as vcnb does it (``default``), or each (``scene``)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from scenario.flows.flow_scene import FlowScene


@pytest.fixture(params=["strict", "default"])
def scene(request: pytest.FixtureRequest) -> Iterator[FlowScene]:
    """Upstream's behaviour, and ours, which is the same here."""
    with FlowScene(request.param) as made:
        yield made


@pytest.fixture
def strict() -> Iterator[FlowScene]:
    """Upstream's behaviour."""
    with FlowScene("strict") as made:
        yield made


@pytest.fixture
def default() -> Iterator[FlowScene]:
    """Ours, where it differs from upstream's or goes beyond it."""
    with FlowScene("default") as made:
        yield made
