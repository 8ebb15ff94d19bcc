"""Coming to rest, and moving the clock."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from vcnb.clock import Clock, VirtualClock
from vcnb.errors import InvalidState, VcnbError
from vcnb.loop import EngineLoop

if TYPE_CHECKING:
    from vcnb.testing.engine import Engine

__all__ = ["PATIENCE", "Unsettled", "advance", "settle"]

PATIENCE = 100.0
"""Seconds of real time that a cluster may work at one moment of virtual time before it counts as never resting."""

ROUNDS = 10_000
"""How often timers may become due at one moment before the cluster counts as never coming to rest."""

NEAR = 1e-6
"""Seconds; sums of float times that differ by less are the same moment."""


class Unsettled(VcnbError):
    """The cluster does not come to rest at the current moment: what it does gives it more to do, again and again."""


async def settle(engine: Engine, patience: float = PATIENCE) -> None:
    """Run until nothing is left to do at the current moment, timers that are due now included. Raises Unsettled.

    ``patience`` is in seconds of real time.
    """
    try:
        async with asyncio.timeout(patience):
            await _rest(engine.clock)
    except TimeoutError:
        raise Unsettled(f"the cluster still works after {patience:g} s without any virtual time passing") from None


async def _rest(clock: Clock) -> None:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, EngineLoop), "a simulated cluster runs on an EngineLoop"
    await loop.idle()
    if not isinstance(clock, VirtualClock):
        return
    for _ in range(ROUNDS):
        if not clock.fire_due():
            return
        await loop.idle()
    raise Unsettled(f"timers without a delay were set {ROUNDS} times in a row")


async def advance(engine: Engine, seconds: float, patience: float = PATIENCE) -> None:
    """Let ``seconds`` pass: every timer on the way fires at its own time, and the cluster settles after each moment.

    Timers due at one moment all fire before anything else runs; one due exactly at the end fires too. Raises
    ValueError for a negative time, InvalidState on a real clock.
    """
    clock = engine.clock
    if not isinstance(clock, VirtualClock):
        raise InvalidState("only a virtual clock can be moved; connect with clock=virtual")
    if seconds < 0:
        raise ValueError(f"time does not run backwards: {seconds} s")
    await settle(engine, patience)
    end = clock.time() + seconds
    while (due := clock.next_due()) is not None and due <= end + NEAR:
        clock.move_to(due)
        clock.fire_due()
        await settle(engine, patience)
    clock.move_to(end)
    await settle(engine, patience)
