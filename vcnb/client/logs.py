"""Logs of pods as handles ask for them; where no pods really run (simulated clusters) they are empty."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

from vcnb.client.engine import Engine
from vcnb.store.protocol import Obj

__all__ = ["Logs"]


class Logs:
    """Reads what the node agent keeps."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def read(
        self, pod: Obj, container: str | None = None, tail: int | None = None, *, previous: bool = False
    ) -> str:
        return ""

    async def read_many(
        self,
        job: Obj,
        pods: Sequence[Obj],
        container: str | None = None,
        *,
        tail: int | None = None,
        previous: bool = False,
        prefix: bool = False,
    ) -> str:
        return ""

    async def follow(
        self, job: Obj, task: str | None = None, index: int | None = None, container: str | None = None, *, prefix: bool
    ) -> AsyncIterator[str]:
        return
        yield ""
