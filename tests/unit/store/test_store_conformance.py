"""Every store of this process is held to the conformance suite."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from unit.store.conformance import CHECKS
from unit.store.conformance.objects import Check
from vcnb.clock import VirtualClock
from vcnb.store.embedded import open_store
from vcnb.store.memory import MemoryStore
from vcnb.store.protocol import ObjectStore

STORES: dict[str, Callable[[Path], ObjectStore]] = {
    "memory": lambda _: MemoryStore(VirtualClock()),
    "embedded": lambda directory: open_store(directory / "cluster", VirtualClock()),
}


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("kind", STORES)
def test_store(kind: str, check: Check, tmp_path: Path) -> None:
    async def play() -> None:
        store = STORES[kind](tmp_path)
        try:
            await check(store, "checks")
        finally:
            await store.close()

    asyncio.run(play())


def test_the_suite_is_all_there() -> None:
    names = [check.__name__ for check in CHECKS]
    assert len(names) == len(set(names))
    assert len(names) > 70
