from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from unit.cache_filesystem.reading_stage import Stage


@pytest.fixture
def stages() -> Iterator[Callable[..., Stage]]:
    """Makes stages, and ends them."""
    made: list[Stage] = []

    def make(**options: Any) -> Stage:
        made.append(Stage(**options))
        return made[-1]

    yield make
    for stage in made:
        stage.close()


@pytest.fixture
def stage(stages: Callable[..., Stage]) -> Stage:
    """One worker."""
    return stages()
