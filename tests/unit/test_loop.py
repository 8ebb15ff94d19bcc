"""The loop says when nothing is ready any more."""

import asyncio

from vcnb.loop import EngineLoop


def run(work):
    loop = EngineLoop()
    try:
        return loop.run_until_complete(asyncio.wait_for(work, 5))
    finally:
        loop.close()


async def hops(count, seen):
    for _ in range(count):
        await asyncio.sleep(0)
    seen.append(count)


def test_idle_returns_after_everything_that_is_ready():
    async def work():
        seen = []
        task = asyncio.get_running_loop().create_task(hops(50, seen))
        await asyncio.get_running_loop().idle()
        await task
        return seen

    assert run(work()) == [50]


def test_several_may_wait_for_idleness_at_once():
    async def work():
        loop = asyncio.get_running_loop()
        seen = []
        task = loop.create_task(hops(20, seen))
        await asyncio.gather(loop.idle(), loop.idle(), loop.idle())
        await task
        return seen

    assert run(work()) == [20]


def test_one_who_stops_waiting_does_not_stop_the_others():
    async def work():
        loop = asyncio.get_running_loop()
        impatient = loop.create_task(loop.idle())
        patient = loop.create_task(loop.idle())
        await asyncio.sleep(0)
        impatient.cancel()
        await patient
        return impatient.cancelled() or impatient.cancelling()

    assert run(work())


def test_timers_do_not_count():
    async def work():
        loop = asyncio.get_running_loop()
        timer = loop.call_later(60, lambda: None)
        await loop.idle()
        timer.cancel()
        return True

    assert run(work())
