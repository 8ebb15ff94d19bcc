"""Handles of jobs that run functions: results, progress and items, over what every JobHandle has.

Everything is read from the cluster: a handle that is found again by name (``cluster.jobs["train-x7k2p"]``), in another
kernel too, gives the same results, as long as the job and its pods are there.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Coroutine, Iterator
from typing import Any, TypeVar

from vcnb.client.bridge import twins
from vcnb.client.functions.items import OVER, Item, ItemState, Progress, end_of_pod
from vcnb.client.functions.options import LOST
from vcnb.client.functions.wire import FUNCTION, NONCE, PAYLOAD, Reader, last_lines, visible, visible_lines
from vcnb.client.job import ENDED, FINISHED, JobHandle, phase_of, pods_of
from vcnb.errors import InvalidState, WaitTimeout
from vcnb.resources import kinds, names
from vcnb.resources.phases import JobPhase
from vcnb.store.protocol import Obj

__all__ = ["Call", "Map", "PayloadHandle", "Run"]

T = TypeVar("T")

_TAIL = 64
"""Lines from the end of a log in which a result is looked for first."""
_STOPPED = frozenset({JobPhase.TERMINATING, JobPhase.TERMINATED, JobPhase.ABORTING, JobPhase.ABORTED})


class PayloadHandle(JobHandle):
    """A job that carries a payload: its logs are shown without the frames in which results travel."""

    @property
    def function(self) -> str:
        """The name of the function, or of the notebook's file."""
        return str(self._annotation(FUNCTION))

    def _annotation(self, key: str) -> str:
        return str(self._seen["metadata"].get("annotations", {}).get(key, ""))

    async def _payload(self) -> dict[str, Any]:
        from vcnb.client.functions.payload import unpack

        return unpack(await self._cluster._store.get(kinds.SECRET, self._annotation(PAYLOAD), self.namespace))  # noqa: SLF001

    async def _logs(
        self,
        task: str | None = None,
        index: int | None = None,
        container: str | None = None,
        *,
        tail: int | None = None,
        previous: bool | int = False,
    ) -> str:
        text = visible(await super()._logs(task, index, container, previous=previous))
        return last_lines(text, tail)

    def _follow(self, task: str | None, index: int | None, container: str | None, tail: int | None) -> Iterator[str]:
        for line in super()._follow(task, index, container, tail):
            yield from visible_lines([line])

    def _blocking(self, work: Coroutine[Any, Any, T]) -> T:
        """Wait for something; an interrupt stops the wait, never the job."""
        try:
            return self._bridge.run(work)
        except KeyboardInterrupt:
            print(  # noqa: T201 - said to the person at the keyboard
                f'stopped waiting; job {self.name!r} goes on: cluster.jobs["{self.name}"].result(), or .cancel()',
                file=sys.stderr,
            )
            raise

    async def _cancel(self) -> None:
        """End the job; what is done stays. Nothing happens when it has ended already."""
        if phase_of(await self._refresh()) in FINISHED:
            return
        try:
            await self._terminate()
        except InvalidState:  # it has ended in the meantime
            return

    cancel, cancel_async = twins(_cancel)


class Run(PayloadHandle):
    """What calls and maps share: one pod per item."""

    _outcomes: dict[str, dict[str, Any]]

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._outcomes = {}

    @property
    def items(self) -> list[Item]:
        """Every item as it stands now, in order."""
        return self._bridge.run(self._items())

    async def _progress(self) -> Progress:
        """How many items are done, failed, running, pending and cancelled."""
        return Progress.of(await self._items())

    progress, progress_async = twins(_progress)

    async def _items(self) -> list[Item]:
        job = await self._refresh()
        pods = {_index(pod): pod for pod in await pods_of(self)}
        task = job["spec"]["tasks"][0]
        return [await self._item(job, index, pods.get(index)) for index in range(task.get("replicas", 1))]

    async def _item(self, job: Obj, index: int, pod: Obj | None) -> Item:
        phase = phase_of(job)
        if pod is None:
            return self._without_pod(phase, index)
        name, state = pod["metadata"]["name"], pod.get("status", {}).get("phase")
        if state not in ("Succeeded", "Failed"):
            if phase in _STOPPED or phase in ENDED:
                return self._without_pod(phase, index)
            return Item(index, ItemState.RUNNING if state == "Running" else ItemState.PENDING, name, self.name)
        if state == "Failed" and phase not in ENDED and self._is_replaced(job, pod):
            return Item(index, ItemState.PENDING, name, self.name)
        outcome = await self._outcome(pod)
        over = ItemState.DONE if outcome["state"] == "done" else ItemState.FAILED
        error = "" if over is ItemState.DONE else _one_line(outcome)
        return Item(
            index, over, name, self.name, error, outcome.get("attempt", 0), outcome.get("seconds", 0.0), outcome
        )

    def _without_pod(self, phase: str, index: int) -> Item:
        if phase in _STOPPED:
            return Item(index, ItemState.CANCELLED, job=self.name, error=f"the job is {phase}")
        if phase in ENDED or self._gone:
            gone = "was deleted" if self._gone else f"ended {phase}"
            return Item(index, ItemState.CANCELLED, job=self.name, error=f"the job {gone} before it had run")
        return Item(index, ItemState.PENDING, job=self.name)

    @staticmethod
    def _is_replaced(job: Obj, pod: Obj) -> bool:
        """Whether a policy of the job is about to put another pod in the place of a failed one."""
        code = _exit_code(pod)
        return any(
            (policy.get("action") == "RestartPod" and policy.get("exitCode") == code and code in LOST)
            or (policy.get("action") == "RestartJob" and policy.get("event") == "PodFailed")
            for policy in job["spec"].get("policies", ())
        )

    async def _outcome(self, pod: Obj) -> dict[str, Any]:
        """What a finished pod has told; kept, for it does not change any more."""
        uid = pod["metadata"]["uid"]
        if uid not in self._outcomes:
            self._outcomes[uid] = await self._read_outcome(pod)
        return self._outcomes[uid]

    async def _read_outcome(self, pod: Obj) -> dict[str, Any]:
        tail: int | None = _TAIL
        damaged = False
        while True:
            text = await self._cluster._logs.of_pod(pod, tail=tail)  # noqa: SLF001
            reader = Reader(self._annotation(NONCE))
            ends = [message for message in reader.messages(text) if message.get("type") == "end"]
            if ends:
                return ends[-1]
            if tail is None:
                return end_of_pod(pod, damaged=damaged)
            damaged = reader.missing > 0
            tail = tail + reader.missing if reader.missing and tail == _TAIL else None

    # -- results -----------------------------------------------------------------------------------------------------

    async def _results(self, timeout: float | None = None, return_exceptions: bool = False) -> list[Any]:
        try:
            await self._wait(timeout=timeout, check=False)
        except WaitTimeout as error:
            progress = await self._progress()
            raise WaitTimeout(f"{error} ({progress}; what is done: .results_so_far())") from None
        return _values(await self._items(), return_exceptions=return_exceptions)

    def results(self, timeout: float | None = None, return_exceptions: bool = False) -> list[Any]:
        """Wait for the end; what every item (of a map) or replica (of a call) returned, in order.

        ``timeout`` in seconds (default: none). When items failed, the first one's exception is raised, with a note that
        names the others; with ``return_exceptions`` exceptions stand in the list where results are missing. Raises
        WaitTimeout; the job goes on, and so it does after an interrupt.
        """
        return self._blocking(self._results(timeout, return_exceptions))

    async def results_async(self, timeout: float | None = None, return_exceptions: bool = False) -> list[Any]:
        """Awaitable twin of :meth:`results`."""
        return await self._bridge.wrap(self._results(timeout, return_exceptions))

    async def _results_so_far(self) -> dict[int, Any]:
        """What the items that are done returned, by index. Waits for nothing."""
        return {item.index: item.value for item in await self._items() if item.state is ItemState.DONE}

    results_so_far, results_so_far_async = twins(_results_so_far)

    async def _failures(self) -> dict[int, Exception]:
        """Why the items that failed (so far) did, by index."""
        lost = (ItemState.FAILED, ItemState.CANCELLED)
        return {item.index: item.exception() for item in await self._items() if item.state in lost}

    failures, failures_async = twins(_failures)

    def as_completed(self, timeout: float | None = None) -> Iterator[Item]:
        """Items as they end (done, failed or cancelled), each once. ``item.value`` is its value, or raises.

        ``timeout`` in seconds for the whole of it (default: none). Raises WaitTimeout.
        """
        ends = self._ends()
        deadline = None if timeout is None else self._bridge.loop.time() + timeout
        try:
            while (item := self._blocking(self._next_end(ends, deadline))) is not None:
                yield item
        finally:
            if not self._bridge.closed:
                self._bridge.run(_close(ends))

    async def _next_end(self, ends: AsyncIterator[Item], deadline: float | None) -> Item | None:
        try:
            async with asyncio.timeout_at(deadline):
                return await anext(ends, None)
        except TimeoutError:
            raise WaitTimeout(f"job {self.name!r}: {await self._progress()}; it goes on") from None

    async def _ends(self) -> AsyncIterator[Item]:
        changed = asyncio.Event()

        def listen(obj: Obj) -> None:
            if any(owner.get("uid") == self.uid for owner in obj["metadata"].get("ownerReferences", ())):
                changed.set()

        stop = await self._cluster._changes.listen(kinds.POD, listen, self.namespace)  # noqa: SLF001
        try:
            async with self._cluster._changes.follow(kinds.JOB, self.uid, self.namespace) as feed:  # noqa: SLF001
                told: set[int] = set()
                job_changed = asyncio.ensure_future(feed.next())
                try:
                    while True:
                        changed.clear()
                        items = await self._items()
                        for item in items:
                            if item.state in OVER and item.index not in told:
                                told.add(item.index)
                                yield item
                        if len(told) == len(items):
                            return
                        woken = asyncio.ensure_future(changed.wait())
                        await asyncio.wait({woken, job_changed}, return_when=asyncio.FIRST_COMPLETED)
                        woken.cancel()
                        if job_changed.done():
                            job_changed = asyncio.ensure_future(feed.next())
                finally:
                    job_changed.cancel()
        finally:
            stop()


class Call(Run):
    """One call of a function, in one pod or in a gang of replicas."""

    async def _result(self, timeout: float | None = None) -> Any:
        return (await self._results(timeout))[0]

    def result(self, timeout: float | None = None) -> Any:
        """Wait for the end; what the call returned (with several replicas: what replica 0 returned, see ``results``).

        Raises what the call raised, its traceback in the pod as its cause; CallFailed when there is no such exception
        (a crash, a lost pod, a result of more than 4 MiB after compression ...); WaitTimeout.
        """
        return self._blocking(self._result(timeout))


class Map(Run):
    """A function mapped over items, one pod each."""

    async def _result(self, timeout: float | None = None) -> list[Any]:
        return await self._results(timeout)

    def result(self, timeout: float | None = None) -> list[Any]:
        """As :meth:`results`."""
        return self._blocking(self._result(timeout))

    def __len__(self) -> int:
        return int(self._seen["spec"]["tasks"][0].get("replicas", 1))


def _values(items: list[Item], *, return_exceptions: bool) -> list[Any]:
    values: list[Any] = []
    for item in items:
        try:
            values.append(item.value)
        except Exception as error:  # noqa: BLE001 - whatever the item raised
            values.append(_Raised(error))
    broken = [(item, value.error) for item, value in zip(items, values, strict=True) if isinstance(value, _Raised)]
    if broken and not return_exceptions:
        raise _first(broken, len(items))
    return [value.error if isinstance(value, _Raised) else value for value in values]


class _Raised:
    """Tells an exception that was raised from one that was returned."""

    def __init__(self, error: Exception) -> None:
        self.error = error


def _first(broken: list[tuple[Item, Exception]], total: int) -> Exception:
    """The exception to raise for a run: that of the first item that failed by itself."""
    own = [(item, error) for item, error in broken if item.state is ItemState.FAILED]
    error = (own or broken)[0][1]
    if total > 1:
        others = ", ".join(str(item.index) for item, _ in broken[:20]) + (", ..." if len(broken) > 20 else "")
        error.add_note(
            f"{len(broken)} of {total} items failed: {others}; results(return_exceptions=True) has what there is"
        )
    return error


def _one_line(outcome: dict[str, Any]) -> str:
    lines = str(outcome.get("message", "")).strip().splitlines()
    kind = outcome.get("kind", "")
    first = lines[0] if lines else ""
    return f"{kind}: {first}" if kind and outcome.get("reason") == "raised" else first or str(kind)


def _index(pod: Obj) -> int:
    text = str(pod["metadata"].get("annotations", {}).get(names.TASK_INDEX, "0"))
    return int(text) if text.isdigit() else 0


def _exit_code(pod: Obj) -> int:
    codes = [
        container["state"]["terminated"].get("exitCode", 0)
        for container in pod.get("status", {}).get("containerStatuses", ())
        if "terminated" in container.get("state", {})
    ]
    return next((code for code in codes if code), 0)


async def _close(ends: AsyncIterator[Item]) -> None:
    close = getattr(ends, "aclose", None)
    if close is not None:
        await close()
