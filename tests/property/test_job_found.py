"""What random histories have found in the Job controller, each as the shortest story that shows it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from scenario.scene import Scene


@pytest.fixture
def default() -> Iterator[Scene]:
    with Scene("default") as made:
        yield made


def test_pods_beyond_the_scale_go_also_while_the_podgroup_waits(default: Scene):
    """They hold the room that the PodGroup may be waiting for; and what is there is counted."""
    default.create("a*1(min 0)", "b*1")
    default.podgroup_becomes("Pending")

    default.scale(a=0)

    assert default.kept == ["b-0"]
    assert default.counts == {"P": 1}
