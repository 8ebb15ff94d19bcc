"""Small files that come one by one are written many at once: whatever has come while the last ones were written."""

from __future__ import annotations

import asyncio
from typing import Final

from vcnb.cache.pages import PageStore, Part, Reservation

__all__ = ["Batches"]

_AT_ONCE: Final = 256

Entry = tuple[Part, Reservation, "asyncio.Future[None]"]


class Batches:
    """Writes parts to ``pages``. One loop only."""

    def __init__(self, pages: PageStore) -> None:
        self._pages = pages
        self._waiting: list[Entry] = []
        self._writer: asyncio.Task[None] | None = None

    async def add(self, part: Part, reservation: Reservation) -> None:
        """Keep a part; returns when it can be read. Raises CannotKeep."""
        loop = asyncio.get_running_loop()
        kept: asyncio.Future[None] = loop.create_future()
        self._waiting.append((part, reservation, kept))
        if self._writer is None:
            self._writer = loop.create_task(self._write())
        await kept

    async def _write(self) -> None:
        try:
            while self._waiting:
                some, self._waiting = self._waiting[:_AT_ONCE], self._waiting[_AT_ONCE:]
                wanted = [entry for entry in some if not entry[2].done()]
                try:
                    await self._pages.run(lambda: self._keep(wanted))  # noqa: B023 awaited at once
                except Exception as error:  # noqa: BLE001 who waits for it is told
                    for _, _, kept in wanted:
                        if not kept.done():
                            kept.set_exception(error)
                else:
                    for _, _, kept in wanted:
                        if not kept.done():
                            kept.set_result(None)
        finally:
            self._writer = None

    def _keep(self, entries: list[Entry]) -> None:
        self._pages.add([part for part, _, _ in entries])
        for _, reservation, _ in entries:
            reservation.release()

    async def close(self) -> None:
        """Until what was begun is written."""
        if self._writer is not None:
            await asyncio.wait([self._writer])
