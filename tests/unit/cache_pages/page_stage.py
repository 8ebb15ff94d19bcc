"""A page store in a temporary directory, driven from plain tests."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

from vcnb.cache.config import CacheConfig
from vcnb.cache.pages import PageStore, Part
from vcnb.cache.protocol import PAGE_SIZE, FileInfo, Version
from vcnb.clock import VirtualClock

T = TypeVar("T")
MIB = 1 << 20


class PageStage:
    """Opens, closes and reopens one store. ``clock`` does not move by itself."""

    def __init__(self, directory: Path, capacity: int = 64 * MIB, **config: Any) -> None:
        self.directory = directory
        self.capacity = capacity
        self.config = CacheConfig(**config)
        self.clock = VirtualClock()
        self.store: PageStore

    async def open(self) -> PageStore:
        self.store = await PageStore.open(self.directory, self.capacity, self.clock, self.config)
        return self.store

    async def reopen(self) -> PageStore:
        await self.store.close()
        return await self.open()

    async def put(self, path: str, size: int, etag: str = "v1", first: int = 0, data: bytes | None = None) -> bytes:
        """Keep pages of a file: all of it, or ``data`` from page ``first`` on."""
        whole = contents(path, size, etag)
        data = whole[first * PAGE_SIZE :] if data is None else data
        with await self.store.room(len(data)) as reservation:
            part = Part(path, Version(size, etag), first, data)
            await self.store.run(lambda: self.store.add([part], reservation))
        return whole

    def get(self, path: str, size: int, etag: str = "v1") -> bytes | None:
        """The whole file as the store has it, in exactly this version."""
        buffer = bytearray(size)
        file = FileInfo(path, Version(size, etag))
        return bytes(buffer) if self.store.read_into(file, 0, memoryview(buffer)) else None

    def containers(self) -> list[Path]:
        return sorted(
            path for kind in ("segments", "large") for path in (self.directory / kind).rglob("*") if path.is_file()
        )


def contents(path: str, size: int, etag: str = "v1") -> bytes:
    """What a file has in a version: different in each."""
    return random.Random(ascii((path, etag, size))).randbytes(size)


def with_store(directory: Path, story: Callable[[PageStage], Awaitable[T]], **options: Any) -> T:
    """Run a story with an open store, and close it."""

    async def run() -> T:
        stage = PageStage(directory, **options)
        await stage.open()
        try:
            return await story(stage)
        finally:
            await stage.store.close()

    return asyncio.run(run())
