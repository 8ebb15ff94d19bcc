"""The bridge between a person's thread and the cluster's loop."""

import asyncio
import threading

import pytest

from vcnb.client.bridge import Bridge, twins
from vcnb.errors import ClusterClosed, VcnbError


@pytest.fixture
def bridge():
    made = Bridge("test")
    yield made
    made.close()


class Thing:
    def __init__(self, bridge):
        self._bridge = bridge

    async def _double(self, number: int = 1) -> int:
        """Twice the number."""
        return number * 2

    double, double_async = twins(_double)


def test_the_blocking_twin_gives_the_result(bridge):
    assert Thing(bridge).double(21) == 42


def test_the_awaitable_twin_works_on_another_running_loop(bridge):
    async def cell():
        return await Thing(bridge).double_async(4)

    assert asyncio.run(cell()) == 8


def test_the_blocking_twin_works_inside_a_running_loop(bridge):
    async def cell():
        return Thing(bridge).double(5)

    assert asyncio.run(cell()) == 10


def test_twins_carry_name_and_docstring():
    assert (Thing.double.__name__, Thing.double.__doc__) == ("double", "Twice the number.")
    assert Thing.double_async.__name__ == "double_async"


def test_errors_cross_the_bridge(bridge):
    async def fail():
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        bridge.run(fail())


def test_a_blocking_call_on_the_clusters_own_thread_is_refused(bridge):
    thing = Thing(bridge)

    def inside():
        with pytest.raises(VcnbError, match="await its _async twin"):
            thing.double(1)

    bridge.call(inside)


def test_close_cancels_what_is_left_and_ends_the_thread():
    bridge = Bridge("closing")
    cancelled = threading.Event()

    async def forever():
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.set()
            raise

    async def start():
        task = asyncio.get_running_loop().create_task(forever())
        await asyncio.sleep(0)
        return task

    bridge.run(start())
    bridge.close()

    assert cancelled.is_set()
    assert "closing" not in {thread.name for thread in threading.enumerate()}


def test_a_call_after_close_is_refused():
    bridge = Bridge("closed")
    bridge.close()
    bridge.close()

    with pytest.raises(ClusterClosed):
        Thing(bridge).double(1)
