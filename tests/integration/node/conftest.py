"""A node with a real store and real processes. Nothing may be left running when a test ends."""

from __future__ import annotations

import asyncio
import contextlib
import os
import uuid
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from vcnb.clock import RealClock, VirtualClock
from vcnb.controllers.runtime.context import Context
from vcnb.controllers.runtime.events import EventRecorder
from vcnb.local.node.agent import NodeAgent
from vcnb.local.node.runtimes import detect
from vcnb.resources.kinds import EVENT, POD
from vcnb.store.informer import Informers
from vcnb.store.memory import MemoryStore

PATIENCE = 20.0


class Bench:
    """A store, informers and node agents that come and go."""

    def __init__(self, root: Path, token: str, runtime: str, clock: Any) -> None:
        self.root = root
        self.token = token
        self.runtime = runtime
        self.clock = clock
        self.store = MemoryStore(clock)
        self.agent: NodeAgent | None = None
        self.informers: Informers | None = None
        self.recorder: EventRecorder | None = None

    async def start(self, **options: Any) -> NodeAgent:
        """Start a node agent, as a kernel that opens the cluster does."""
        self.informers = Informers(self.store, clock=self.clock)
        await self.informers.start()
        self.recorder = EventRecorder(self.store, self.clock, "test")
        ctx = Context(self.store, self.clock, self.informers, self.recorder)
        self.agent = NodeAgent(ctx, root=self.root, runtime=self.runtime, **options)
        await self.agent.start()
        return self.agent

    async def stop(self, pods: str = "keep") -> None:
        agent, self.agent = self.agent, None
        if agent is not None:
            await agent.stop(pods=pods)
            await self.recorder.stop()
            await self.informers.stop()

    def pod(self, name: str, *command: str, container: dict | None = None, **spec: Any) -> dict[str, Any]:
        meta = spec.pop("metadata", {})
        env = [{"name": "TEST_TOKEN", "value": self.token}, *((container or {}).get("env") or ())]
        main = {"name": "main", "image": "busybox", "command": list(command), **(container or {}), "env": env}
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "namespace": "default", **meta},
            "spec": {"nodeName": "local", "restartPolicy": "Never", "containers": [main], **spec},
        }

    async def create(self, name: str, *command: str, **more: Any) -> dict[str, Any]:
        return await self.store.create(self.pod(name, *command, **more))

    async def run(self, name: str, *command: str, **more: Any) -> dict[str, Any]:
        """Create a pod and wait until it has ended."""
        await self.create(name, *command, **more)
        return await self.phase(name, "Succeeded", "Failed")

    async def phase(self, name: str, *phases: str) -> dict[str, Any]:
        return await self.until(lambda: self._in_phase(name, phases), f"pod {name} {phases}")

    def _in_phase(self, name: str, phases: tuple[str, ...]) -> Any:
        pod = self.store.peek(POD, name, "default")
        return pod if pod is not None and (pod.get("status") or {}).get("phase") in phases else None

    async def gone(self, name: str) -> None:
        await self.until(lambda: self.store.peek(POD, name, "default") is None, f"pod {name} gone")

    async def until(self, condition: Callable[[], Any], what: str = "") -> Any:
        """The first true value of the condition; looks 100 times a second for at most 20 s."""
        loop = asyncio.get_running_loop()
        end = loop.time() + PATIENCE
        while not (value := condition()):
            if loop.time() > end:
                pytest.fail(f"waited {PATIENCE:g} s for {what or condition}")
            await self.until_once()
        return value

    async def until_once(self) -> None:
        """One hundredth of a second for real processes."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(asyncio.Event().wait(), 0.01)

    async def turn(self) -> None:
        """One turn of the loop."""
        await asyncio.sleep(0)

    async def settle(self) -> None:
        """Let everything that is ready on the loop run."""
        for _ in range(50):
            await self.turn()

    async def advance(self, seconds: float) -> None:
        """Move a virtual clock."""
        target = self.clock.time() + seconds
        while (due := self.clock.next_due()) is not None and due <= target:
            self.clock.move_to(due)
            self.clock.fire_due()
            await self.settle()
        self.clock.move_to(target)
        await self.settle()

    def log(self, name: str, attempt: int | None = None, container: str = "main") -> str:
        """A container's log, also of a pod that is gone; the newest attempt unless told otherwise."""
        found = []
        for record in sorted(self.root.glob("jobs/*/pods/*/pod.json")):
            if f'"name": "{name}"' in record.read_text():
                found += sorted(record.parent.glob(f"containers/{container}/*/log"), key=lambda p: int(p.parent.name))
        return found[-1 if attempt is None else attempt].read_text() if found else ""

    def events(self, reason: str) -> list[dict[str, Any]]:
        return [event for event in self.store.peek_all(EVENT) if event["reason"] == reason]

    def processes(self) -> list[int]:
        """Process ids of everything that a container of this test has started."""
        found = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit() and int(entry.name) != os.getpid():
                with contextlib.suppress(OSError):
                    if f"TEST_TOKEN={self.token}".encode() in (entry / "environ").read_bytes():
                        found.append(int(entry.name))
        return found


Scenario = Callable[[Bench], Awaitable[None]]


@pytest.fixture
def run_node(tmp_path: Path) -> Iterator[Callable[..., None]]:
    """Run an async scenario on a bench; afterwards nothing that it started may run."""
    benches: list[Bench] = []

    def run(
        scenario: Scenario, runtime: str = "process", clock: str = "real", start: bool = True, **options: Any
    ) -> None:
        async def whole() -> None:
            bench = Bench(
                tmp_path / "node", uuid.uuid4().hex, runtime, RealClock() if clock == "real" else VirtualClock()
            )
            benches.append(bench)
            try:
                if start:
                    await bench.start(cwd=tmp_path, **options)
                await scenario(bench)
            finally:
                await bench.stop("stop")
                await bench.until(lambda: not bench.processes(), "no process left running")
                await bench.store.close()

        asyncio.run(whole())

    yield run
    for bench in benches:
        assert bench.processes() == []


RUNTIMES = [
    "process",
    pytest.param("sandbox", marks=pytest.mark.skipif(not detect()[0], reason=f"no sandbox: {detect()[1]}")),
]


@pytest.fixture(params=RUNTIMES)
def runtime(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def sandbox() -> str:
    works, reason = detect()
    if not works:
        pytest.skip(f"no sandbox: {reason}")
    return "sandbox"
