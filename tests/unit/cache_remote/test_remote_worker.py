"""A worker over HTTP does what a worker in this process does, and is lost when it cannot be reached."""

from __future__ import annotations

import asyncio
import socket
import time

import aiohttp
import pytest

from unit.cache_remote.remote_worker import SECRET, PagesWorker, Pair, play
from vcnb.cache.protocol import (
    PAGE_SIZE,
    CachedFile,
    FailureCode,
    FileInfo,
    JobType,
    Outcome,
    Presence,
    StaleEpoch,
    Task,
    Unit,
    Version,
    WorkerLost,
)
from vcnb.cache.remote.client import Connections, RemoteWorker, Timeouts
from vcnb.cache.remote.secret import Token
from vcnb.errors import VcnbError

FILES = {f"s3://b/d/{name}": 1000 for name in ("a", "b c", "ü%2F?*", "//x")}


def task(pair: Pair, *paths: str, epoch: int = 1, type: JobType = JobType.LOAD) -> Task:
    versions = pair.worker.source.files
    units = tuple(Unit(path, versions.get(path, Version(1)), 0, 1000) for path in paths)
    return Task("t1", "job", epoch, type, units)


def test_a_task_and_its_answer() -> None:
    async def story(pair: Pair) -> None:
        answer = await pair.client.run(task(pair, *FILES, "s3://b/d/gone"))
        assert [result.outcome for result in answer.results] == [Outcome.LOADED] * 4 + [Outcome.VANISHED]
        assert answer.results[0].version == pair.worker.source.files["s3://b/d/a"]
        assert pair.losses == 0

    play(story, files=FILES)


def test_what_is_cached_and_how_much() -> None:
    async def story(pair: Pair) -> None:
        await pair.client.run(task(pair, *FILES))
        versions = pair.worker.source.files
        asked = [FileInfo("s3://b/d/a", versions["s3://b/d/a"]), FileInfo("s3://b/d/none", Version(5))]
        assert await pair.client.check(asked) == (
            Presence("s3://b/d/a", versions["s3://b/d/a"], 1000),
            Presence("s3://b/d/none"),
        )
        page = await pair.client.cached("s3://b/d", limit=2)
        assert (len(page.files), page.done) == (2, False)
        rest = await pair.client.cached("s3://b/d", page.files[-1].path)
        assert rest.done
        assert [*page.files, *rest.files] == [CachedFile(path, versions[path], 1000) for path in sorted(FILES)]
        assert await pair.client.usage("s3://b/d") == 4000
        assert (await pair.client.status()).used == 4000
        assert await pair.client.cached_version("s3://b/d/b c") == FileInfo("s3://b/d/b c", versions["s3://b/d/b c"])
        assert await pair.client.cached_version("s3://b/none") is None

    play(story, files=FILES)


def test_pages_are_kept_and_read_in_parts() -> None:
    async def story(pair: Pair) -> None:
        file = FileInfo("s3://b/ü x", Version(PAGE_SIZE + 5, "e1"))
        whole = bytes(range(256)) * (PAGE_SIZE // 256)
        assert await pair.client.page(file, 0) is None
        assert await pair.client.keep(file, 0, whole)
        assert await pair.client.keep(file, 1, b"12345")
        assert await pair.client.page(file, 0) == whole
        assert await pair.client.page(file, 0, 3, 4) == whole[3:7]
        assert await pair.client.page(file, 1, 2) == b"345"
        assert await pair.client.page(file, 1, 5, 0) == b""
        assert await pair.client.page(FileInfo(file.path, Version(PAGE_SIZE + 5, "e2")), 0) is None
        pair.worker.room = False
        assert not await pair.client.keep(file, 2, b"x")

    play(story)


def test_a_task_of_an_epoch_that_is_over_is_refused() -> None:
    async def story(pair: Pair) -> None:
        await pair.client.cancel("job", 4)
        with pytest.raises(StaleEpoch, match="epoch 3"):
            await pair.client.run(task(pair, *FILES, epoch=3))
        assert (await pair.client.run(task(pair, *FILES, epoch=5))).results[0].outcome == Outcome.LOADED
        assert pair.losses == 0

    play(story, files=FILES)


def test_a_task_that_takes_longer_than_the_silence_that_is_allowed() -> None:
    """The worker gives signs of life while it works."""

    async def story(pair: Pair) -> None:
        pair.worker.seconds = 1.0
        assert (await pair.client.run(task(pair, "s3://b/d/a"))).results[0].outcome == Outcome.LOADED
        assert pair.losses == 0

    play(story, files=FILES, heartbeat=0.1, timeouts=Timeouts(connect=2.0, silence=0.5))


def test_a_worker_that_gives_no_sign_of_life_is_lost() -> None:
    async def story(pair: Pair) -> None:
        pair.worker.seconds = 30
        begun = time.monotonic()
        with pytest.raises(WorkerLost, match="does not answer"):
            await pair.client.run(task(pair, "s3://b/d/a"))
        assert time.monotonic() - begun < 10
        assert pair.losses == 1
        await asyncio.wait_for(pair.worker.cancelled.wait(), 5)

    play(story, files=FILES, heartbeat=60, timeouts=Timeouts(connect=2.0, silence=0.3))


def test_who_cancels_the_call_cancels_the_task() -> None:
    async def story(pair: Pair) -> None:
        pair.worker.seconds = 30
        running = asyncio.create_task(pair.client.run(task(pair, "s3://b/d/a")))
        await asyncio.wait_for(pair.worker.begun.wait(), 5)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        await asyncio.wait_for(pair.worker.cancelled.wait(), 5)
        assert pair.losses == 0

    play(story, files=FILES)


def test_a_worker_that_ends_during_a_task_is_lost() -> None:
    async def story(pair: Pair) -> None:
        pair.worker.seconds = 30
        running = asyncio.create_task(pair.client.run(task(pair, "s3://b/d/a")))
        await asyncio.wait_for(pair.worker.begun.wait(), 5)
        await pair.serving.stop()
        with pytest.raises(WorkerLost, match="W1"):
            await running
        with pytest.raises(WorkerLost, match="cannot be reached"):
            await pair.client.status()
        assert pair.losses == 2

    play(story, files=FILES)


def test_a_worker_that_has_started_anew_is_another() -> None:
    async def story(pair: Pair) -> None:
        old = pair.client
        pair.worker.incarnation = "W1-2"
        with pytest.raises(WorkerLost, match="started anew"):
            await old.run(task(pair, *FILES))
        with pytest.raises(WorkerLost, match="started anew"):
            await old.page(FileInfo("s3://b/x", Version(1)), 0)
        assert (await pair.another("W1-2").status()).used == 0

    play(story, files=FILES)


def test_a_mistake_of_the_worker_is_told_and_is_no_loss(caplog: pytest.LogCaptureFixture) -> None:
    class Broken(PagesWorker):
        async def run(self, task: Task) -> None:  # type: ignore[override]
            raise RuntimeError("a bug")

        async def usage(self, prefix: str) -> int:
            raise RuntimeError("another")

    async def story(pair: Pair) -> None:
        pair.worker.__class__ = Broken
        with pytest.raises(VcnbError, match="RuntimeError: a bug") as error:
            await pair.client.run(task(pair, *FILES))
        assert not isinstance(error.value, WorkerLost)
        with pytest.raises(VcnbError, match="another"):
            await pair.client.usage("x")
        assert pair.losses == 0

    play(story, files=FILES)


def test_names_that_are_no_unicode_fail_alone() -> None:
    async def story(pair: Pair) -> None:
        bad = "s3://b/d/\udcff"
        answer = await pair.client.run(task(pair, "s3://b/d/a", bad, "s3://b/d/b c"))
        assert [result.outcome for result in answer.results] == [Outcome.LOADED, Outcome.FAILED, Outcome.LOADED]
        assert answer.results[1].code is FailureCode.INVALID_ARGUMENT
        assert [
            p.path for p in await pair.client.check([FileInfo(bad, Version(1)), FileInfo("s3://b/d/a", Version(1))])
        ] == [
            bad,
            "s3://b/d/a",
        ]

    play(story, files=FILES)


def test_without_the_token_nothing_is_told() -> None:
    async def story(pair: Pair) -> None:
        for token in (None, Token("x" * 32)):
            connections = Connections(token)
            try:
                stranger = RemoteWorker("W1", pair.worker.incarnation, pair.url, connections)
                with pytest.raises(VcnbError, match="refuses the token"):
                    await stranger.status()
                with pytest.raises(VcnbError, match="refuses the token"):
                    await stranger.run(task(pair, *FILES))
            finally:
                await connections.close()
        assert pair.worker.tasks == []

    play(story, files=FILES)


def test_health_is_for_everybody() -> None:
    async def story(pair: Pair) -> None:
        async with aiohttp.ClientSession() as session, session.get(f"{pair.url}/health") as response:
            assert (response.status, await response.text()) == (200, "worker is active")

    play(story)


def test_a_request_that_is_nonsense_is_refused() -> None:
    async def story(pair: Pair) -> None:
        headers = {"Authorization": f"Bearer {SECRET}"}
        async with aiohttp.ClientSession(headers=headers) as session:
            for method in ("run", "check", "page", "keep"):
                async with session.post(f"{pair.url}/cache/v1/{method}", data=b"\0\0\0\1nonsense") as response:
                    assert response.status == 400, method

    play(story)


def test_a_port_that_answers_nothing_is_a_lost_worker() -> None:
    async def story(pair: Pair) -> None:
        with socket.socket() as silent:
            silent.bind(("127.0.0.1", 0))
            silent.listen()
            url = f"http://127.0.0.1:{silent.getsockname()[1]}"
            worker = RemoteWorker("W9", "1", url, pair.connections)
            with pytest.raises(WorkerLost, match="does not answer"):
                await worker.status()

    play(story, timeouts=Timeouts(connect=2.0, silence=0.3))


def test_a_page_that_is_long_on_its_way_is_not_there_and_the_worker_not_lost() -> None:
    class Slow(PagesWorker):
        async def page(self, file: FileInfo, index: int, offset: int = 0, length: int | None = None) -> bytes | None:
            await asyncio.sleep(30)
            return b"late"

    async def story(pair: Pair) -> None:
        pair.worker.__class__ = Slow
        assert await pair.client.page(FileInfo("s3://b/x", Version(4)), 0) is None
        assert pair.losses == 0

    play(story, patience=0.2)
