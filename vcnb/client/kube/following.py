"""Following the output of a job's pods through the API server: every line once, whatever happens to the connections.

    pods (a watch) ──> one stream for each run of a container ──> lines, in bounded memory

A stream that breaks is taken up again after the last line that came: lines carry the kubelet's time stamps (to the
nanosecond), so what was sent already is told by them. A line that the break has cut in two is read again as a whole.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Final

import aiohttp

from vcnb.client.kube import containers
from vcnb.clock import Clock, RealClock
from vcnb.errors import ApiError, InvalidObject, NotFound, ServerTimeout, TooManyRequests, Unreachable, VcnbError
from vcnb.resources import kinds
from vcnb.resources.phases import FINISHED, JobPhase
from vcnb.store.informer import Informer
from vcnb.store.kubernetes import KubernetesStore
from vcnb.store.kubernetes.connection import hang_up
from vcnb.store.protocol import Obj

__all__ = ["Follower", "Resume"]

ROOM: Final = 10_000
"""Lines that may wait for the reader; a stream that is faster waits."""
PAUSES: Final = (0.2, 0.5, 1.0, 2.0, 5.0)
"""Seconds between attempts to take up a broken stream; the last one again and again."""
_OVER: Final = frozenset({*FINISHED, JobPhase.ABORTED})
_PASSING: Final = (Unreachable, ServerTimeout, TooManyRequests)


class Resume:
    """How far a stream is: takes stamped lines, and gives those that are new."""

    def __init__(self) -> None:
        self._last = ""
        self._same = 0
        self._skip = 0

    @property
    def since(self) -> str | None:
        """From when on to ask again, in whole seconds as the API has it; None: nothing has come yet."""
        if not self._last:
            return None
        whole, _, rest = self._last.partition(".")
        return whole + rest.lstrip("0123456789") if rest else whole

    def again(self) -> None:
        """The stream begins again, from ``since``."""
        self._skip = self._same

    def take(self, line: str) -> str | None:
        """The line without its stamp; None for one that came before."""
        stamp, _, text = line.partition(" ")
        order, last = _order(stamp), _order(self._last)
        if self._last and order < last:
            return None
        if order == last and self._last:
            if self._skip:
                self._skip -= 1
                return None
            self._same += 1
        else:
            self._last, self._same, self._skip = stamp, 1, 0
        return text


def _order(stamp: str) -> str:
    """A stamp so that text order is the order in time: its fraction has nine digits."""
    whole, _, rest = stamp.partition(".")
    digits = rest[: len(rest) - len(rest.lstrip("0123456789"))]
    return f"{whole[:19]}.{digits:0<9}"


class Follower:
    """Follows the pods of one job that ``selects`` takes, until the job is over and everything has been read."""

    def __init__(
        self,
        store: KubernetesStore,
        job: Obj,
        views: tuple[Informer, Informer],
        *,
        selects: Callable[[Obj], bool],
        container: str | None,
        tail: int | None,
        several: bool,
        clock: Clock | None = None,
    ) -> None:
        self._store = store
        self._job = job
        self._jobs, self._pods = views
        self._selects = selects
        self._container = container
        self._tail = tail
        self._several = several
        self._clock = clock or RealClock()
        self._lines: list[str] = []
        self._wake = asyncio.Event()
        self._read = asyncio.Event()
        self._streams: dict[tuple[str, int], asyncio.Task[None]] = {}
        self._failed: VcnbError | None = None
        self._unsubscribe = [view.subscribe(self._news, lambda _, obj: self._news(obj), self._news) for view in views]

    async def batches(self) -> AsyncIterator[list[str]]:
        """All lines that are there, again and again. Raises VcnbError when no kubelet gives them."""
        while True:
            self._wake.clear()
            self._look()
            if self._lines:
                lines, self._lines = self._lines, []
                self._read.set()
                yield lines
                continue
            if self._failed is not None:
                raise self._failed
            if self._over() and all(task.done() for task in self._streams.values()):
                return
            await self._wake.wait()

    async def close(self) -> None:
        """End all streams."""
        for unsubscribe in self._unsubscribe:
            unsubscribe()
        for task in self._streams.values():
            task.cancel()
        await asyncio.gather(*self._streams.values(), return_exceptions=True)

    def _news(self, _: Obj) -> None:
        self._wake.set()

    def _over(self) -> bool:
        meta = self._job["metadata"]
        job = self._jobs.get(meta["name"], meta["namespace"])
        if job is None or job["metadata"]["uid"] != meta["uid"]:
            return True
        return ((job.get("status") or {}).get("state") or {}).get("phase") in _OVER

    def _look(self) -> None:
        """Begin to follow what runs, or has run, and is not followed yet."""
        for pod in self._pods.list(self._job["metadata"]["namespace"]):
            if not self._selects(pod):
                continue
            container = self._container or containers.first_container(pod)
            if not containers.started(pod, container):
                continue
            run = (pod["metadata"]["uid"], int(containers.container_status(pod, container).get("restartCount") or 0))
            if run not in self._streams:
                task = asyncio.get_running_loop().create_task(self._follow(pod, container, run[1]))
                task.add_done_callback(lambda _: self._wake.set())
                self._streams[run] = task

    async def _follow(self, pod: Obj, container: str, restarts: int) -> None:
        """One run of one container, to its end."""
        resume = Resume()
        failures = 0
        while True:
            try:
                unfinished = await self._stream(pod, container, resume)
                failures = 0
                if await self._has_ended(pod, container, restarts):
                    await self._put(pod, unfinished, resume)
                    return
            except (aiohttp.ClientError, OSError, TimeoutError, *_PASSING):
                failures += 1
            except NotFound:
                return
            except InvalidObject as error:
                if containers.waits(error):
                    return
                self._fail(error)
                return
            except VcnbError as error:
                self._fail(containers.log_error(pod, error) if isinstance(error, ApiError) else error)
                return
            await self._clock.sleep(PAUSES[min(failures, len(PAUSES) - 1)])

    def _fail(self, error: VcnbError) -> None:
        self._failed = self._failed or error
        self._wake.set()

    async def _stream(self, pod: Obj, container: str, resume: Resume) -> list[str]:
        """Read until the stream ends; what may be only the beginning of a last line."""
        query = {"container": container, "follow": "true", "timestamps": "true"}
        if resume.since is not None:
            query["sinceTime"] = resume.since
        elif self._tail is not None:
            query["tailLines"] = str(self._tail)
        resume.again()
        call = containers.pod_log_call(pod)
        answer = await self._store.connection.stream(call, call.object_path, query=query)
        rest = b""
        try:
            while chunk := await answer.content.readany():
                lines = (rest + chunk).split(b"\n")
                rest = lines.pop()
                await self._put(pod, [line.decode("utf-8", "replace") for line in lines], resume)
            return [rest.decode("utf-8", "replace")] if rest else []
        finally:
            hang_up(answer)

    async def _put(self, pod: Obj, lines: list[str], resume: Resume) -> None:
        prefix = f"{pod['metadata']['name']} | " if self._several else ""
        new = [text for line in lines if (text := resume.take(line)) is not None]
        while len(self._lines) > ROOM:
            self._read.clear()
            await self._read.wait()
        self._lines += [f"{prefix}{text}" for text in new]
        self._wake.set()

    async def _has_ended(self, pod: Obj, container: str, restarts: int) -> bool:
        """Whether this run is over; a stream may also end because a connection was closed on its way."""
        meta = pod["metadata"]
        now = await self._store.get(kinds.POD, meta["name"], meta["namespace"])
        if now["metadata"]["uid"] != meta["uid"]:
            return True
        status = containers.container_status(now, container)
        return int(status.get("restartCount") or 0) > restarts or not (status.get("state") or {}).get("running")
