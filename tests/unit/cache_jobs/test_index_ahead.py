"""The lines of an index file are asked for together, and come in their order."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from typing import Any

from vcnb.cache.coordinator.listing import AHEAD, Entry, ListingFailed, Patience, entries
from vcnb.cache.jobs.record import Checkpoint, JobOptions, JobRecord
from vcnb.cache.protocol import FailureCode, FileInfo, JobType, Listing, UnderStores, Version
from vcnb.clock import VirtualClock

INDEX = "s3://b/index"


class Source:
    """Answers a listing when ``gate`` opens; ``missing`` paths are not found, ``torn``: the index breaks at its end."""

    def __init__(self, lines: list[str], *, missing: set[str] | None = None, torn: bool = False) -> None:
        self.text = "".join(f"{line}\n" for line in lines).encode()
        self.missing = missing or set()
        self.torn = torn
        self.now = self.most = 0
        self.asked: list[str] = []

    def open(self, path: str, storage_options: Mapping[str, Any]) -> Source:
        return self

    async def stat(self, path: str) -> FileInfo:
        return FileInfo(path, Version(len(self.text)))

    async def read(self, path: str, offset: int, length: int, *, version: object = None) -> AsyncIterator[bytes]:
        yield self.text
        if self.torn:
            raise ValueError("torn")

    async def list(self, path: str, *, after: str = "", limit: int = 1000) -> Listing:
        self.asked.append(path)
        self.now += 1
        self.most = max(self.most, self.now)
        for _ in range(3):
            await asyncio.sleep(0)
        self.now -= 1
        if path in self.missing:
            raise FileNotFoundError(path)
        return Listing((FileInfo(path, Version(7)),) if path > after else (), done=True)


async def listed(source: Source, start: Checkpoint | None = None, stop: int = 0) -> tuple[list[Entry], Checkpoint]:
    record = JobRecord(JobType.LOAD, INDEX, "u", JobOptions(index_file=INDEX))
    patience = Patience(VirtualClock(), lambda: 0.0)
    found: list[Entry] = []
    last = Checkpoint()
    stores: UnderStores = source  # type: ignore[assignment]
    groups = entries(record, stores, patience, start or Checkpoint(), group=1)
    async for group in groups:
        found.extend(group.entries)
        last = group.checkpoint
        if stop and len(found) >= stop:
            await groups.aclose()  # type: ignore[attr-defined]
            break
    return found, last


LINES = [f"s3://b/{number:03d}" for number in range(50)]


def test_sixteen_are_asked_at_once_and_the_order_is_that_of_the_file() -> None:
    source = Source(LINES)
    found, last = asyncio.run(listed(source))
    assert [entry.path for entry in found] == LINES
    assert source.most == AHEAD
    assert last.listed


def test_a_line_that_is_missing_fails_in_its_place_and_nothing_else() -> None:
    source = Source(LINES, missing={LINES[3], LINES[49]})
    found, _ = asyncio.run(listed(source))
    assert [entry.path for entry in found] == LINES
    failed = {entry.path: entry.failed[0] for entry in found if entry.failed is not None}
    assert failed == {LINES[3]: FailureCode.NOT_FOUND, LINES[49]: FailureCode.NOT_FOUND}


def test_a_job_goes_on_at_its_line() -> None:
    source = Source(LINES)
    found, last = asyncio.run(listed(source, stop=20))
    assert (last.line, len(source.asked)) == (20, 20 + AHEAD - 1)
    rest, _ = asyncio.run(listed(Source(LINES), last))
    assert [entry.path for entry in [*found, *rest]] == LINES


def test_what_came_before_a_broken_end_of_the_index_is_still_done() -> None:
    async def story() -> tuple[list[Entry], str]:
        found: list[Entry] = []
        record = JobRecord(JobType.LOAD, INDEX, "u", JobOptions(index_file=INDEX))
        source: UnderStores = Source(LINES[:20], torn=True)  # type: ignore[assignment]
        try:
            async for group in entries(record, source, Patience(VirtualClock(), lambda: 0.0), Checkpoint(), group=7):
                found.extend(group.entries)
        except ListingFailed as error:
            return found, str(error)
        return found, ""

    found, error = asyncio.run(story())
    assert [entry.path for entry in found] == LINES[:20]
    assert "torn" in error
