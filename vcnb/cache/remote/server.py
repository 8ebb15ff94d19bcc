"""A worker behind HTTP: its methods as ``POST /cache/v1/...`` (``vcnb.cache.remote.wire``), and its health.

The server adds nothing to what the worker does. A task whose caller goes away is cancelled, as a local caller's would be.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from vcnb.cache.protocol import PageReader, StaleEpoch, Task, Worker, WorkerLost
from vcnb.cache.remote import wire
from vcnb.cache.remote.secret import Token
from vcnb.cache.remote.serving import LARGEST, Handler, guarded

if TYPE_CHECKING:
    from aiohttp import web

__all__ = ["PageWorker", "WorkerServer"]

_log = logging.getLogger(__name__)


class PageWorker(Worker, PageReader, Protocol):
    """What is served: a worker whose pages can be read."""


class WorkerServer:
    """The routes of one worker.

    ``heartbeat``: seconds between two signs of life of a task. ``patience``: seconds that a page may take that is on its
    way into the cache; after them it is not there.
    """

    def __init__(
        self,
        worker: PageWorker,
        token: Token | None,
        *,
        heartbeat: float = wire.HEARTBEAT,
        patience: float = wire.SILENCE / 2,
    ) -> None:
        self._worker = worker
        self._token = token
        self._heartbeat = heartbeat
        self._patience = patience
        self._plain: dict[str, Callable[[Any], Awaitable[Any]]] = {
            "cancel": lambda asked: worker.cancel(asked.job, asked.epoch),
            "check": lambda asked: worker.check(asked.files),
            "cached": lambda asked: worker.cached(asked.prefix, asked.after, asked.limit),
            "usage": lambda asked: worker.usage(asked.path),
            "status": lambda _: worker.status(),
            "cached_version": lambda asked: worker.cached_version(asked.path),
        }

    def application(self) -> web.Application:
        """An application with the worker's routes; more may be added before it is served."""
        from aiohttp import web

        app = web.Application(client_max_size=LARGEST)
        for method in wire.REQUESTS:
            app.router.add_post(wire.PATH + method, self._guard(self._call(method)))
        app.router.add_post(f"{wire.PATH}run", self._guard(self._run))
        app.router.add_post(f"{wire.PATH}page", self._guard(self._page))
        app.router.add_post(f"{wire.PATH}keep", self._guard(self._keep))
        app.router.add_get("/health", _health)
        return app

    def _guard(self, handler: Handler) -> Handler:
        return guarded(self._checked(handler), self._token)

    def _checked(self, handler: Handler) -> Handler:
        """Errors as the status that says what they mean."""

        async def answer(request: web.Request) -> web.StreamResponse:
            from aiohttp import web

            meant = request.headers.get(wire.INCARNATION)
            if meant is not None and meant != self._worker.incarnation:
                return web.Response(status=410, text=f"worker {self._worker.name} has started anew")
            try:
                return await handler(request)
            except msgspec.DecodeError as error:
                return web.Response(status=400, text=str(error))
            except StaleEpoch as error:
                return web.Response(status=409, text=str(error))
            except WorkerLost as error:
                return web.Response(status=503, text=str(error))
            except (web.HTTPException, ConnectionError):
                raise
            except Exception as error:  # noqa: BLE001 the caller is told, and the server goes on
                _log.exception("worker %s: %s failed", self._worker.name, request.path)
                return web.Response(status=500, text=f"{type(error).__name__}: {error}")

        return answer

    def _call(self, method: str) -> Handler:
        kind, work = wire.REQUESTS[method], self._plain[method]

        async def call(request: web.Request) -> web.StreamResponse:
            answer = await work(wire.decode(await request.read(), kind))
            return _packed(wire.Nothing() if method == "cancel" else answer)

        return call

    async def _page(self, request: web.Request) -> web.StreamResponse:
        from aiohttp import web

        asked: wire.AskPage = wire.decode(await request.read(), wire.AskPage)
        try:
            # A page that is just being loaded is waited for, but not until the caller takes the worker for lost.
            async with asyncio.timeout(self._patience):
                data = await self._worker.page(asked.file, asked.index, asked.offset, asked.length)
        except TimeoutError:
            data = None
        return web.Response(status=204) if data is None else web.Response(body=data)

    async def _keep(self, request: web.Request) -> web.StreamResponse:
        body = memoryview(await request.read())
        size = wire.length_of(bytes(body[:4]))
        asked: wire.KeepPage = wire.decode(body[4 : 4 + size], wire.KeepPage)
        return _packed(await self._worker.keep(asked.file, asked.index, bytes(body[4 + size :])))

    async def _run(self, request: web.Request) -> web.StreamResponse:
        from aiohttp import web

        task: Task = wire.decode(await request.read(), Task)
        response = web.StreamResponse()
        running = asyncio.get_running_loop().create_task(self._ran(task))
        try:
            await response.prepare(request)
            while not (await asyncio.wait([running], timeout=self._heartbeat))[0]:
                await response.write(wire.frame(b""))
            await response.write(wire.frame(wire.encode(await running)))
            await response.write_eof()
        finally:
            if not running.done():
                running.cancel()
                await asyncio.gather(running, return_exceptions=True)
        return response

    async def _ran(self, task: Task) -> wire.Ran:
        try:
            return wire.Ran(await self._worker.run(task))
        except StaleEpoch as error:
            return wire.Ran(error="stale", message=str(error))
        except WorkerLost as error:
            return wire.Ran(error="lost", message=str(error))
        except Exception as error:  # noqa: BLE001 the coordinator is told, and tries again
            _log.exception("worker %s failed with a task of job %s", self._worker.name, task.job)
            return wire.Ran(error="error", message=f"{type(error).__name__}: {error}")


async def _health(_: web.Request) -> web.StreamResponse:
    from aiohttp import web

    return web.Response(text="worker is active")


def _packed(answer: Any) -> web.Response:
    from aiohttp import web

    return web.Response(body=wire.encode(answer), content_type="application/msgpack")
