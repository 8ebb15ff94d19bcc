"""The control plane: controllers start and stop together, quickly, and leave nothing behind."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

from vcnb.clock import RealClock
from vcnb.controllers.plane import ControlPlane
from vcnb.controllers.runtime import Context
from vcnb.resources.kinds import JOB, PODGROUP, QUEUE, SECRET
from vcnb.store.memory import MemoryStore

MANIFEST = {
    "apiVersion": JOB.api_version,
    "kind": "Job",
    "metadata": {"name": "j", "namespace": "default"},
    "spec": {
        "queue": "default",
        "minAvailable": 1,
        "maxRetry": 3,
        "tasks": [{"name": "w", "replicas": 1, "minAvailable": 1, "template": {"spec": {"containers": []}}}],
    },
}


class Probe:
    """A controller that notes its life."""

    name = "probe"

    def __init__(self, ctx: Context) -> None:
        self.ctx = ctx
        self.life: list[str] = []

    async def start(self) -> None:
        assert self.ctx.informers[JOB].synced
        self.life.append("started")

    async def stop(self) -> None:
        self.life.append("stopped")


def with_plane(steps: Callable[[ControlPlane, MemoryStore], Awaitable[None]]) -> None:
    async def main() -> None:
        store = MemoryStore(RealClock())
        await store.create(
            {"apiVersion": QUEUE.api_version, "kind": "Queue", "metadata": {"name": "default"}, "spec": {}}
        )
        plane = ControlPlane(store, RealClock())
        await steps(plane, store)
        await plane.stop()
        await store.close()
        assert len(asyncio.all_tasks()) == 1

    asyncio.run(main())


async def until(condition: Callable[[], object]) -> None:
    for _ in range(500):
        if condition():
            return
        await asyncio.sleep(0.002)
    raise AssertionError("it did not come about")


def test_jobs_that_are_there_at_the_start_are_looked_after():
    async def steps(plane: ControlPlane, store: MemoryStore) -> None:
        await store.create(MANIFEST)
        await plane.start()
        await until(lambda: store.peek_all(PODGROUP))

    with_plane(steps)


def test_keys_are_made_beside_the_loop():
    async def steps(plane: ControlPlane, store: MemoryStore) -> None:
        await store.create({**MANIFEST, "spec": {**MANIFEST["spec"], "plugins": {"ssh": []}}})
        await plane.start()
        await until(lambda: store.peek_all(PODGROUP))
        (secret,) = store.peek_all(SECRET)
        assert set(secret["data"]) == {"id_rsa", "id_rsa.pub", "authorized_keys", "config"}

    with_plane(steps)


def test_stopping_is_quick_and_a_second_plane_goes_on():
    async def steps(plane: ControlPlane, store: MemoryStore) -> None:
        await plane.start()
        began = time.monotonic()
        await plane.stop()
        assert time.monotonic() - began < 1
        await store.create(MANIFEST)
        second = ControlPlane(store, RealClock())
        await second.start()
        await until(lambda: store.peek_all(PODGROUP))
        await second.stop()

    with_plane(steps)


def test_a_plane_that_was_never_started_can_be_stopped():
    async def steps(plane: ControlPlane, store: MemoryStore) -> None:
        return

    with_plane(steps)


def test_further_controllers_live_with_the_plane():
    async def steps(plane: ControlPlane, store: MemoryStore) -> None:
        early, late, gone = Probe(plane.context), Probe(plane.context), Probe(plane.context)
        await plane.add(early)
        assert early.life == []
        await plane.start()
        await plane.add(late)
        await plane.add(gone)
        assert (early.life, late.life) == (["started"], ["started"])
        await plane.remove(gone)
        await plane.remove(gone)
        await plane.stop()
        assert [probe.life for probe in (early, late, gone)] == [["started", "stopped"]] * 3

    with_plane(steps)


def test_importing_the_plane_imports_nothing_heavy():
    import subprocess
    import sys

    code = "import sys, vcnb.controllers.plane; print([m for m in ('prometheus_client', 'kubernetes', 'pandas', 'pydantic') if m in sys.modules])"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert shown.stdout.strip() == "[]"
