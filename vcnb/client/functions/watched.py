"""What can fail in the background: jobs, flows and cache jobs, as ``Attention`` looks at them. All on the cluster's loop."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, Protocol

from vcnb.cache.api import CacheJobState
from vcnb.errors import VcnbError
from vcnb.resources import kinds
from vcnb.resources.phases import FINISHED, FlowPhase, JobPhase

if TYPE_CHECKING:
    from vcnb.client.cache.handle import CacheHandle
    from vcnb.client.flow import FlowHandle
    from vcnb.client.job import JobHandle

__all__ = ["Watched", "watched"]

GONE: Final = "gone"


class Watched(Protocol):
    """Something that was submitted, and how it stands."""

    word: str

    @property
    def key(self) -> str:
        """What tells it from others: a uid or id."""
        ...

    @property
    def name(self) -> str:
        """What a person calls it, and waives it by."""
        ...

    @property
    def namespace(self) -> str: ...

    async def phase(self) -> str:
        """Its phase now; ``gone`` when it was deleted."""
        ...

    def is_over(self, phase: str) -> bool:
        """Whether nothing more happens."""
        ...

    def has_failed(self, phase: str) -> bool:
        """Whether it did not do what it was for."""
        ...

    async def until_over(self) -> None:
        """Wait for its end."""
        ...

    async def why(self) -> str:
        """Why it failed, in one line."""
        ...

    async def end(self) -> None:
        """Have it ended."""
        ...


class _Object:
    """A job or a flow."""

    word = "job"

    def __init__(self, handle: JobHandle | FlowHandle) -> None:
        self.handle = handle

    @property
    def key(self) -> str:
        return self.handle.uid

    @property
    def name(self) -> str:
        return self.handle.name

    @property
    def namespace(self) -> str:
        return self.handle.namespace

    async def phase(self) -> str:
        obj = await self.handle._refresh()  # noqa: SLF001 - a part of the client's inside
        state: Mapping[str, Any] = (obj.get("status") or {}).get("state") or {}
        return GONE if self.handle._gone else str(state.get("phase") or "")  # noqa: SLF001

    def is_over(self, phase: str) -> bool:
        return phase in (*FINISHED, JobPhase.ABORTED, GONE)

    def has_failed(self, phase: str) -> bool:
        return phase in (JobPhase.FAILED, JobPhase.TERMINATED)

    async def until_over(self) -> None:
        handle = self.handle
        async with handle.cluster._changes.follow(handle._kind, handle.uid, handle.namespace) as feed:  # noqa: SLF001
            while not self.is_over(await self.phase()):
                await feed.next()

    async def why(self) -> str:
        return (await self.handle._why()).partition("\n")[0]  # noqa: SLF001

    async def end(self) -> None:
        with contextlib.suppress(VcnbError):
            await self.handle._terminate()  # noqa: SLF001


class _Flow(_Object):
    word = "flow"

    def is_over(self, phase: str) -> bool:
        from vcnb.client.flow import has_ended

        return phase == GONE or has_ended(self.handle._seen)  # noqa: SLF001

    def has_failed(self, phase: str) -> bool:
        return phase == FlowPhase.FAILED and self.is_over(phase)


class _Cache:
    """A cache job, named by its path."""

    def __init__(self, handle: CacheHandle) -> None:
        self.handle = handle
        self.word = f"cache {handle.type.lower()}"

    @property
    def key(self) -> str:
        return self.handle.id

    @property
    def name(self) -> str:
        return self.handle.path

    @property
    def namespace(self) -> str:
        return ""

    async def phase(self) -> str:
        try:
            return str((await self.handle._refresh()).state)  # noqa: SLF001
        except VcnbError:  # its retention time has passed, or the cache cannot be reached any more
            return GONE

    def is_over(self, phase: str) -> bool:
        return phase == GONE or self.handle._seen.finished  # noqa: SLF001

    def has_failed(self, phase: str) -> bool:
        return phase in (CacheJobState.FAILED, CacheJobState.STOPPED)

    async def until_over(self) -> None:
        with contextlib.suppress(VcnbError):
            await (await self.handle._access()).wait(self.key, check=False)  # noqa: SLF001

    async def why(self) -> str:
        reason = self.handle._seen.reason  # noqa: SLF001
        if reason:
            return reason.partition("\n")[0]
        with contextlib.suppress(VcnbError):
            failed = await self.handle._failures(limit=1)  # noqa: SLF001
            if failed:
                return f"{failed[0].path}: {failed[0].message or failed[0].reason}"
        return "it ended before everything was done"

    async def end(self) -> None:
        with contextlib.suppress(VcnbError):
            await self.handle._stop()  # noqa: SLF001


def watched(handle: Any) -> Watched | None:
    """How a handle is looked at; None for what cannot fail (a queue, a template ...)."""
    kind = getattr(handle, "kind", "")
    if kind == kinds.JOB.kind:
        return _Object(handle)
    if kind == kinds.JOBFLOW.kind:
        return _Flow(handle)
    if not kind and hasattr(handle, "failures") and hasattr(handle, "path"):
        return _Cache(handle)
    return None
