"""A fake worker with pages, served over HTTP on the loopback, and its client."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import AsyncExitStack
from typing import Any

from unit.cache_jobs.cache_fakes import FakeSource, FakeWorker
from vcnb.cache.protocol import PAGE_SIZE, FileInfo, Task, TaskResult
from vcnb.cache.remote.client import Connections, RemoteWorker, Timeouts
from vcnb.cache.remote.secret import Token
from vcnb.cache.remote.server import WorkerServer
from vcnb.cache.remote.serving import Listen, Serving
from vcnb.clock import RealClock
from vcnb.loop import EngineLoop

SECRET = "0123456789abcdef-secret"


class PagesWorker(FakeWorker):
    """A fake worker that has the bytes of pages, and tells of tasks that are cancelled."""

    def __init__(self, name: str, source: FakeSource, clock: Any) -> None:
        super().__init__(name, source, clock)
        self.pages: dict[tuple[str, str, int], bytes] = {}
        self.room = True
        self.begun = asyncio.Event()
        self.cancelled = asyncio.Event()

    async def run(self, task: Task) -> TaskResult:
        self.begun.set()
        try:
            return await super().run(task)
        except asyncio.CancelledError:
            self.cancelled.set()
            raise

    async def page(self, file: FileInfo, index: int, offset: int = 0, length: int | None = None) -> bytes | None:
        data = self.pages.get((file.path, file.version.token, index))
        return None if data is None else data[offset : None if length is None else offset + length]

    async def keep(self, file: FileInfo, index: int, data: bytes) -> bool:
        if self.room:
            assert len(data) <= PAGE_SIZE
            self.pages[file.path, file.version.token, index] = data
            self.cache.setdefault(file.path, (file.version, set()))
        return self.room

    async def cached_version(self, path: str) -> FileInfo | None:
        held = self.cache.get(path)
        return FileInfo(path, held[0]) if held is not None else None


class Pair:
    """A served worker and a client of it. ``losses`` counts how often the client found it unreachable."""

    def __init__(self, worker: PagesWorker, serving: Serving, connections: Connections, port: int) -> None:
        self.worker = worker
        self.serving = serving
        self.connections = connections
        self.port = port
        self.losses = 0
        self.client = self.another(worker.incarnation)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def another(self, incarnation: str) -> RemoteWorker:
        return RemoteWorker(self.worker.name, incarnation, self.url, self.connections, lost=self._lost)

    def _lost(self) -> None:
        self.losses += 1


def play(
    story: Callable[[Pair], Coroutine[Any, Any, None]],
    *,
    files: dict[str, int] | None = None,
    heartbeat: float = 0.1,
    patience: float = 5.0,
    timeouts: Timeouts | None = None,
) -> None:
    """Run a story with a worker that is served and a client that has its token."""

    async def run() -> None:
        async with AsyncExitStack() as ends:
            worker = PagesWorker("W1", FakeSource(files), RealClock())
            app = WorkerServer(worker, Token(SECRET), heartbeat=heartbeat, patience=patience).application()
            serving = Serving(app, Listen(":0"))
            port = await serving.start()
            ends.push_async_callback(serving.stop)
            connections = Connections(Token(SECRET), timeouts or Timeouts(connect=2.0, silence=2.0))
            ends.push_async_callback(connections.close)
            await story(Pair(worker, serving, connections, port))

    with asyncio.Runner(loop_factory=EngineLoop) as runner:
        runner.run(run())
