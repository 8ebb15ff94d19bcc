"""The way from a person's thread to the cluster's event loop and back.

Everything that moves runs on one loop in a daemon thread. ``Bridge.run`` hands a coroutine over and blocks for its result;
``Bridge.wrap`` hands it over and can be awaited on any other loop, the kernel's for example. Neither touches the caller's
loop, so both work in a script, in a cell, in a thread and under pytest alike. ``twins`` makes the blocking and the
awaitable form of one coroutine method, so that they cannot drift.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import functools
import threading
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

from vcnb.errors import ClusterClosed, VcnbError
from vcnb.loop import EngineLoop

__all__ = ["Bridge", "Bridged", "twins"]

T = TypeVar("T")
P = ParamSpec("P")
S = TypeVar("S", bound="Bridged")

STOP_SECONDS = 10.0


class Way(Protocol):
    """The two ways over to a cluster's loop."""

    def run(self, work: Coroutine[Any, Any, T], /) -> T: ...

    def wrap(self, work: Coroutine[Any, Any, T], /) -> Awaitable[T]: ...


class Bridged(Protocol):
    """Anything that has a bridge to a cluster's loop."""

    @property
    def _bridge(self) -> Way: ...


class Bridge:
    """A daemon thread with an event loop of its own.

    With ``settle`` each call also waits until nothing is left to do at the present moment (a simulated cluster).
    """

    def __init__(self, name: str, *, settle: bool = False) -> None:
        self.loop = EngineLoop()
        self._settle = settle
        self._closed = False
        started = threading.Event()
        self._thread = threading.Thread(target=self._main, args=(started,), name=name, daemon=True)
        self._thread.start()
        started.wait()

    def _main(self, started: threading.Event) -> None:
        asyncio.set_event_loop(self.loop)
        self.loop.call_soon(started.set)
        try:
            self.loop.run_forever()
        finally:
            self.loop.run_until_complete(self.loop.shutdown_asyncgens())
            self.loop.run_until_complete(self.loop.shutdown_default_executor())
            self.loop.close()

    @property
    def closed(self) -> bool:
        """Whether ``close`` was called; no further call is taken."""
        return self._closed

    def submit(self, work: Coroutine[Any, Any, T]) -> concurrent.futures.Future[T]:
        """Start a coroutine on the loop. Raises ClusterClosed after ``close``."""
        if self._closed:
            work.close()
            raise ClusterClosed("this cluster was closed; connect again with vcnb.connect(...)")
        return asyncio.run_coroutine_threadsafe(self._settled(work) if self._settle else work, self.loop)

    async def _settled(self, work: Coroutine[Any, Any, T]) -> T:
        try:
            return await work
        finally:
            await self.loop.idle()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on the loop and block for its result. An interrupt cancels the coroutine and is raised."""
        if threading.current_thread() is self._thread:
            work.close()
            raise VcnbError("a blocking call on the cluster's own thread would never end; await its _async twin")
        future = self.submit(work)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def wrap(self, work: Coroutine[Any, Any, T]) -> Awaitable[T]:
        """Run a coroutine on the loop and await its result on the caller's own loop."""
        return asyncio.wrap_future(self.submit(work))

    def call(self, function: Callable[[], T]) -> T:
        """Run a plain function on the loop's thread."""

        async def once() -> T:
            return function()

        return self.run(once())

    def close(self) -> None:
        """Cancel what is left, stop the loop and join the thread. Safe to call twice."""
        if self._closed:
            return
        self._closed = True
        stopping = asyncio.run_coroutine_threadsafe(self._cancel_rest(), self.loop)
        stopping.result(STOP_SECONDS)
        self.loop.call_soon_threadsafe(self.loop.stop)
        if threading.current_thread() is not self._thread:
            self._thread.join(STOP_SECONDS)

    async def _cancel_rest(self) -> None:
        rest = asyncio.all_tasks(self.loop) - {asyncio.current_task()}
        for task in rest:
            task.cancel()
        await asyncio.gather(*rest, return_exceptions=True)


def twins(
    method: Callable[Concatenate[S, P], Coroutine[Any, Any, T]],
) -> tuple[Callable[Concatenate[S, P], T], Callable[Concatenate[S, P], Awaitable[T]]]:
    """The blocking and the awaitable form of a coroutine method: ``wait, wait_async = twins(_wait)``."""

    @functools.wraps(method)
    def blocking(self: S, *args: P.args, **kwargs: P.kwargs) -> T:
        return self._bridge.run(method(self, *args, **kwargs))

    @functools.wraps(method)
    def awaitable(self: S, *args: P.args, **kwargs: P.kwargs) -> Awaitable[T]:
        return self._bridge.wrap(method(self, *args, **kwargs))

    blocking.__name__ = method.__name__.lstrip("_")
    awaitable.__name__ = f"{blocking.__name__}_async"
    awaitable.__doc__ = f"Awaitable twin of :meth:`{blocking.__name__}`."
    return blocking, awaitable  # type: ignore[return-value] # wraps() hides that these are plain functions
