"""Scenes for the scenarios: as upstream (``strict``), as vcnb does it (``default``), or each (``scene``)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from scenario.scene import Scene


@pytest.fixture(params=["strict", "default"])
def scene(request: pytest.FixtureRequest) -> Iterator[Scene]:
    """Upstream's behaviour, and ours, which is the same here."""
    with Scene(request.param) as made:
        yield made


@pytest.fixture
def strict() -> Iterator[Scene]:
    """Upstream's behaviour."""
    with Scene("strict") as made:
        yield made


@pytest.fixture
def default() -> Iterator[Scene]:
    """Ours, where it differs from upstream's."""
    with Scene("default") as made:
        yield made


@pytest.fixture(params=["strict", "default"])
def unadmitted(request: pytest.FixtureRequest) -> Iterator[Scene]:
    """A scene whose scheduler admits nothing."""
    with Scene(request.param, admit=False) as made:
        yield made
