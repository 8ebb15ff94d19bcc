"""A worker somewhere else, as if it were here: ``Worker`` and ``PageReader`` over HTTP."""

from __future__ import annotations

import asyncio
import contextlib
import io
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

import msgspec
from msgspec.structs import replace

from vcnb.cache.protocol import (
    CachedFiles,
    FailureCode,
    FileInfo,
    Outcome,
    Presence,
    StaleEpoch,
    Task,
    TaskResult,
    Unit,
    UnitResult,
    WorkerLost,
    WorkerStatus,
)
from vcnb.cache.remote import wire
from vcnb.cache.remote.secret import Token
from vcnb.errors import VcnbError

if TYPE_CHECKING:
    import aiohttp

__all__ = ["Connections", "RemoteWorker", "Timeouts"]


@dataclass(frozen=True)
class Timeouts:
    """Seconds: to connect; without a byte of an answer, which is also how long a task may show no sign of life."""

    connect: float = 5.0
    silence: float = wire.SILENCE


class Connections:
    """The HTTP connections of one loop to all workers. ``token`` goes with every request."""

    def __init__(self, token: Token | None, timeouts: Timeouts | None = None) -> None:
        self.timeouts = timeouts or Timeouts()
        self._token = token
        self._session: aiohttp.ClientSession | None = None

    def open(self) -> aiohttp.ClientSession:
        """The session; made when it is first needed."""
        import aiohttp

        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0, limit_per_host=64),
                headers=self._token.headers if self._token is not None else {},
                timeout=aiohttp.ClientTimeout(
                    total=None, sock_connect=self.timeouts.connect, sock_read=self.timeouts.silence
                ),
                read_bufsize=1 << 20,
                trust_env=False,
            )
        return self._session

    async def close(self) -> None:
        """Close every connection. Nothing when none is open."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()


class RemoteWorker:
    """The worker ``name`` at ``url``, in the incarnation that was registered there.

    ``lost`` is called once for every call that found the worker unreachable, before WorkerLost is raised.
    """

    def __init__(
        self,
        name: str,
        incarnation: str,
        url: str,
        connections: Connections,
        *,
        lost: Callable[[], None] | None = None,
    ) -> None:
        self.name = name
        self.incarnation = incarnation
        self.url = url.rstrip("/")
        self._connections = connections
        self._lost = lost

    def __repr__(self) -> str:
        return f"<worker {self.name} at {self.url}>"

    # Worker

    async def run(self, task: Task) -> TaskResult:
        """As ``Worker.run``. Files whose names are no Unicode cannot be named over HTTP: they fail, the others are done."""
        unnamable = [number for number, unit in enumerate(task.units) if not _encodable(unit)]
        if not unnamable:
            return await self._send(task)
        left = [unit for number, unit in enumerate(task.units) if number not in set(unnamable)]
        sent = await self._send(replace(task, units=tuple(left))) if left else TaskResult(())
        done = iter(sent.results)
        refused = UnitResult(
            Outcome.FAILED,
            code=FailureCode.INVALID_ARGUMENT,
            message="the name of the file is not UTF-8; a worker on another machine cannot be told of it",
        )
        results = [refused if number in set(unnamable) else next(done) for number in range(len(task.units))]
        return replace(sent, results=tuple(results))

    async def _send(self, task: Task) -> TaskResult:
        async with self._post("run", wire.encode(task)) as response:
            await self._judge(response)
            while True:
                size = wire.length_of(await response.content.readexactly(4))
                if size:
                    ran: wire.Ran = wire.decode(await response.content.readexactly(size), wire.Ran)
                    break
        if ran.result is not None:
            return ran.result
        if ran.error == "stale":
            raise StaleEpoch(ran.message)
        if ran.error == "lost":
            self._gone(ran.message)
        raise VcnbError(f"worker {self.name}: {ran.message}")

    async def cancel(self, job: str, epoch: int) -> None:
        await self._call("cancel", wire.CancelJob(job, epoch))

    async def check(self, files: Sequence[FileInfo]) -> tuple[Presence, ...]:
        """As ``Worker.check``; a file whose name is no Unicode is not there."""
        named = [file for file in files if _encodable(file)]
        answers: tuple[Presence, ...] = await self._call("check", wire.AskCheck(tuple(named)))
        if len(named) == len(files):
            return answers
        found = {answer.path: answer for answer in answers}
        return tuple(found.get(file.path) or Presence(file.path) for file in files)

    async def cached(self, prefix: str, after: str = "", limit: int = 1000) -> CachedFiles:
        answer: CachedFiles = await self._call("cached", wire.AskCached(prefix, after, limit))
        return answer

    async def usage(self, prefix: str) -> int:
        answer: int = await self._call("usage", wire.AskPath(prefix))
        return answer

    async def status(self) -> WorkerStatus:
        answer: WorkerStatus = await self._call("status", wire.Nothing())
        return answer

    async def stop(self) -> None:
        """Nothing: the worker goes on for others."""

    # PageReader

    async def page(self, file: FileInfo, index: int, offset: int = 0, length: int | None = None) -> bytes | None:
        async with self._post("page", wire.encode(wire.AskPage(file, index, offset, length))) as response:
            await self._judge(response)
            return await response.read() if response.status == 200 else None

    async def keep(self, file: FileInfo, index: int, data: bytes) -> bool:
        body = wire.frame(wire.encode(wire.KeepPage(file, index))) + data
        async with self._post("keep", body) as response:
            await self._judge(response)
            kept: bool = wire.decode(await response.read(), bool)
        return kept

    async def cached_version(self, path: str) -> FileInfo | None:
        answer: FileInfo | None = await self._call("cached_version", wire.AskPath(path))
        return answer

    # Inside

    async def _call(self, method: str, asked: Any) -> Any:
        async with self._post(method, wire.encode(asked)) as response:
            await self._judge(response)
            return wire.decode(await response.read(), wire.ANSWERS[method])

    @contextlib.asynccontextmanager
    async def _post(self, method: str, body: bytes) -> AsyncIterator[aiohttp.ClientResponse]:
        import aiohttp

        headers = {wire.INCARNATION: self.incarnation, "Content-Type": "application/msgpack"}
        try:
            url = self.url + wire.PATH + method
            async with self._connections.open().post(url, data=io.BytesIO(body), headers=headers) as response:
                yield response
        except TimeoutError:
            self._gone(f"worker {self.name} at {self.url} does not answer")
        except (aiohttp.ClientError, asyncio.IncompleteReadError, ConnectionError, msgspec.DecodeError) as error:
            if isinstance(error, WorkerLost):
                raise
            self._gone(f"worker {self.name} at {self.url} cannot be reached: {error or type(error).__name__}")

    async def _judge(self, response: aiohttp.ClientResponse) -> None:
        """Raises what a status means."""
        if response.status in {200, 204}:
            return
        text = await response.text()
        if response.status in {410, 503}:
            self._gone(text)
        if response.status == 409:
            raise StaleEpoch(text)
        if response.status == 401:
            raise VcnbError(f"worker {self.name} at {self.url} refuses the token: give both the same token file")
        raise VcnbError(f"worker {self.name} at {self.url}: {response.status} {text}")

    def _gone(self, message: str) -> NoReturn:
        if self._lost is not None:
            self._lost()
        raise WorkerLost(message) from None


def _encodable(value: Unit | FileInfo) -> bool:
    try:
        value.path.encode()
        if isinstance(value, Unit):
            value.target.encode()
    except UnicodeEncodeError:
        return False
    return True
