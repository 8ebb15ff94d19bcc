"""Scenarios of the reference (section 8) on the real stack: files, pages, workers, coordinator, filesystem.

Fixture F there is ten files of 3 MiB. What is about time here is bounded from below only, or waits for what it looks at.
"""

import asyncio
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path
from uuid import uuid4

import pytest

import vcnb
from integration.cache_client.dataset import MIB, make, until
from unit.cache_jobs.etcd_server import EtcdServer
from vcnb.cache.config import CacheConfig
from vcnb.cache.embedded import EmbeddedCache
from vcnb.cache.jobs.record import JobOptions
from vcnb.cache.jobs.request import Request
from vcnb.cache.protocol import JobType
from vcnb.clock import RealClock
from vcnb.loop import EngineLoop

pytestmark = [pytest.mark.integration, pytest.mark.timeout(120)]


@pytest.fixture
def cluster():
    with vcnb.connect("memory://", controllers="off", cache_capacity="256Mi") as made:
        yield made


@pytest.fixture
def data(tmp_path):
    return make(tmp_path / "data")


def numbers(handle):
    """Scanned, loaded, skipped, failed."""
    progress = handle.progress()
    return progress.scanned_files, progress.loaded_files, progress.skipped_files, progress.failed_files


def test_row_06_real_loaded_again_it_is_fetched_again(cluster, data):
    first = cluster.cache.load(data).wait()

    second = cluster.cache.load(data).wait()

    assert second.id != first.id
    assert numbers(second) == (10, 10, 0, 0)
    assert second.progress().fetched_bytes == 30 * MIB
    assert first.state == "SUCCEEDED"


def test_row_22_24_real_empty_files_and_metadata_only(cluster, data):
    (data / "zero").write_bytes(b"")

    whole = cluster.cache.load(data).wait()
    cluster.cache.free(data).wait()
    meta = cluster.cache.load(data, metadata_only=True).wait()

    assert numbers(whole) == (11, 11, 0, 0)
    assert whole.progress().loaded_bytes == 30 * MIB
    assert numbers(meta) == (11, 11, 0, 0)
    assert (meta.progress().loaded_bytes, meta.progress().fetched_bytes) == (0, 0)


def test_row_25_a_file_that_is_cached_in_part_is_loaded_and_only_the_rest_is_fetched(cluster, data):
    fs = cluster.cache.filesystem(read_ahead=0)
    for path in sorted(data.iterdir()):
        assert len(fs.cat_file(f"file{path}", start=0, end=100)) == 100
    until(lambda: cluster.cache.coverage(data) == pytest.approx(1 / 3))

    load = cluster.cache.load(data, skip_if_exists=True).wait()

    assert numbers(load) == (10, 10, 0, 0)
    assert load.progress().loaded_bytes == 30 * MIB
    assert load.progress().fetched_bytes == 20 * MIB
    assert cluster.cache.coverage(data) == 1.0


def test_row_30_real_the_bandwidth_is_a_limit_for_each_worker(tmp_path):
    data = make(tmp_path / "data", files=6, size=2 * MIB)
    with vcnb.connect("memory://", controllers="off") as cluster:
        begun = time.monotonic()
        load = cluster.cache.load(data, bandwidth=4 * MIB).wait()

        assert numbers(load) == (6, 6, 0, 0)
        assert time.monotonic() - begun >= 1.8  # 12 MiB at 4 MiB/s, of which the first second is a burst


def test_row_31_real_a_filter_matches_base_names(cluster, data):
    assert numbers(cluster.cache.load(data, file_filter=r"f00[0-5]").wait()) == (6, 6, 0, 0)


def test_row_41_42_real_large_files_are_loaded_in_parts(tmp_path):
    data = make(tmp_path / "data", files=2, size=5 * MIB)
    with vcnb.connect("memory://", controllers="off") as cluster:
        cluster.cache.config["alluxio.worker.load.file.partition.size"] = "2MB"
        load = cluster.cache.load(data).wait()

        assert numbers(load) == (2, 2, 0, 0)
        assert load.progress().units >= 6
        assert cluster.cache.filesystem().cat_file(f"file{data}/f001") == (data / "f001").read_bytes()


def test_row_49_real_a_cache_that_is_too_small_says_so(data):
    with vcnb.connect("memory://", controllers="off", cache_capacity="15Mi") as cluster:
        load = cluster.cache.load(data).wait()

        assert numbers(load) == (10, 10, 0, 0)
        assert load.progress().evicted_bytes >= 15 * MIB
        assert any("CACHE_TOO_SMALL" in warning for warning in load.progress().warnings)
        assert cluster.cache.coverage(data) <= 0.5


def test_row_50_real_with_verify_it_fails_and_names_what_is_missing(data):
    with vcnb.connect("memory://", controllers="off", cache_capacity="15Mi") as cluster:
        load = cluster.cache.load(data, verify=True)

        with pytest.raises(vcnb.CacheJobFailed):
            load.wait()
        assert {file.reason for file in load.failures()} == {"VERIFY_MISSING"}
        assert load.progress().verify_passes == 3


def test_row_79_80_83_real_free_copy_and_move_of_what_is_there_already(cluster, data, tmp_path):
    target = tmp_path / "target"
    target.mkdir()
    for name in ("f000", "f001", "f002"):
        (target / name).write_bytes(b"mine")

    free = cluster.cache.free(data).wait()
    copy = cluster.cache.copy(data, target).wait()
    move = cluster.cache.move(data / "f000", target / "f000")

    assert numbers(free) == (0, 0, 0, 0)
    assert numbers(copy) == (10, 7, 3, 0)
    assert (target / "f000").read_bytes() == b"mine"
    with pytest.raises(vcnb.CacheJobFailed):
        move.wait()
    assert [file.reason for file in move.failures()] == ["FAILED_PRECONDITION"]
    assert (data / "f000").exists()


def test_row_81_a_copy_whose_source_keeps_changing_leaves_no_target(cluster, tmp_path):
    source, target = make(tmp_path / "source", files=1, size=6 * MIB) / "f000", tmp_path / "target"
    copy = cluster.cache.copy(source, target, check_content=True, bandwidth=3 * MIB, max_retries=1)
    over = threading.Event()

    def scribble():
        count = 0
        while not over.wait(0.1):
            count += 1
            draft = source.with_name("draft")
            draft.write_bytes(bytes([count % 251]) * 6 * MIB)
            draft.replace(source)

    writer = threading.Thread(target=scribble)
    writer.start()
    try:
        with pytest.raises(vcnb.CacheJobFailed):
            copy.wait(timeout=60)
    finally:
        over.set()
        writer.join()
    assert copy.progress().retried_units == 1
    assert not target.exists()
    assert [path for path in tmp_path.iterdir() if path.name != "source"] == []

    again = cluster.cache.copy(source, target, check_content=True).wait()

    assert numbers(again) == (1, 1, 0, 0)
    assert target.read_bytes() == source.read_bytes()


def test_row_82_a_copy_that_was_killed_goes_on_and_shows_no_half_file(tmp_path):
    source, target = make(tmp_path / "source", files=10, size=MIB), tmp_path / "target"
    url = f"embedded://x?dir={tmp_path / 'c'}"
    code = f"""
        import os, signal, time, vcnb
        cluster = vcnb.connect({url!r}, controllers="off")
        copy = cluster.cache.copy({str(source)!r}, {str(target)!r}, bandwidth={2 * MIB}, batch_size=1)
        while copy.progress().loaded_files < 3:
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGKILL)
    """
    killed = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], check=False, timeout=60)
    assert killed.returncode == -signal.SIGKILL
    complete = [path for path in target.iterdir() if not path.name.startswith(".")]
    assert 3 <= len(complete) < 10
    assert all(path.read_bytes() == (source / path.name).read_bytes() for path in complete)

    with vcnb.connect(url) as cluster:
        copy = cluster.cache.job("copy", source, target).wait(timeout=60)

        progress = copy.progress()
        assert progress.loaded_files + progress.skipped_files == progress.scanned_files == 10
    assert all((target / path.name).read_bytes() == path.read_bytes() for path in source.iterdir())


def test_row_85_real_lines_of_an_index_file_that_are_missing(cluster, data, tmp_path):
    names = [*sorted(data.iterdir())[:5], data / "gone-1", data / "gone-2"]
    (tmp_path / "index").write_text("\n".join(map(str, names)) + "\r\n\n")

    load = cluster.cache.load(index_file=tmp_path / "index")

    with pytest.raises(vcnb.CacheJobFailed) as error:
        load.wait()
    assert error.value.failed_files == 2
    assert {file.reason for file in load.failures()} == {"NOT_FOUND"}
    assert load.progress().loaded_files == 5


def test_row_86_real_a_quota_of_a_path(cluster, data):
    cluster.cache.config[f"vcnb.quota.{data}"] = 15 * MIB

    load = cluster.cache.load(data, batch_size=1)

    with pytest.raises(vcnb.CacheJobFailed) as error:
        load.wait()
    assert error.value.reason == "QUOTA_EXCEEDED"
    assert 4 <= load.progress().loaded_files <= 5
    assert load.progress().retried_units == 0
    del cluster.cache.config[f"vcnb.quota.file://{data}"]
    assert numbers(cluster.cache.load(data).wait()) == (10, 10, 0, 0)


def test_row_90_a_read_during_the_load_of_the_same_file_is_right(cluster, tmp_path):
    data = make(tmp_path / "data", files=1, size=16 * MIB)
    content = (data / "f000").read_bytes()
    fs = cluster.cache.filesystem(read_ahead=0)
    load = cluster.cache.load(data, bandwidth=8 * MIB)
    until(lambda: load.state == "RUNNING")

    read = [fs.cat_file(f"file{data}/f000", start=start, end=start + MIB) for start in range(0, 16 * MIB, 4 * MIB)]
    load.wait()

    assert read == [content[start : start + MIB] for start in range(0, 16 * MIB, 4 * MIB)]
    passed_through = fs.statistics().source_bytes
    assert passed_through <= 4 * MIB  # what was read before it was loaded
    assert fs.cat_file(f"file{data}/f000") == content
    assert fs.statistics().source_bytes == passed_through
    assert load.progress().loaded_bytes == load.progress().fetched_bytes == 16 * MIB


# row 88: coordinators whose clocks differ


class AheadClock(RealClock):
    """The machine's clock, so many seconds wrong."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def time(self) -> float:
        return super().time() + self.seconds


@pytest.mark.skipif(not Path(EtcdServer.PROGRAM).exists(), reason="NO etcd: install etcd-server")
def test_row_88_clocks_that_differ_by_five_minutes(tmp_path):
    sets = [make(tmp_path / f"data{number}", files=2, size=1000) for number in range(6)]

    async def story(endpoint):
        config = CacheConfig(store_type="ETCD", etcd_endpoints=endpoint, etcd_path=f"/row88/{uuid4().hex}/")
        caches = [
            EmbeddedCache(None, clock, config, name=name)
            for name, clock in (("slow", AheadClock(-150)), ("fast", AheadClock(150)))
        ]
        try:
            for cache in caches:
                await cache.start()
            jobs = []
            for number, data in enumerate(sets):
                request = Request(JobType.LOAD, f"file://{data}", options=JobOptions())
                jobs.append(await caches[number % 2].access.submit(request))
            ended = [
                await caches[(number + 1) % 2].access.wait(job.facts.id, timeout=60) for number, job in enumerate(jobs)
            ]
            reclaimed = sum(cache.metrics.value("alluxio_scheduler_etcd_reclaim") for cache in caches)
            return ended, reclaimed
        finally:
            for cache in caches:
                await cache.stop()

    with EtcdServer(tmp_path) as server, asyncio.Runner(loop_factory=EngineLoop) as runner:
        ended, reclaimed = runner.run(story(server.endpoint))

    assert [facts.state for facts in ended] == ["SUCCEEDED"] * 6
    assert {facts.epoch for facts in ended} == {1}
    assert reclaimed == 0


# complaints about other tools (section 9) that are about the whole


def test_a_success_is_one_that_can_be_looked_at(cluster, data):
    """Loads that "succeed" with 73 % or 451 % cached: here the pages are counted."""
    load = cluster.cache.load(data, replicas=1).wait()

    assert cluster.cache.coverage(data) == 1.0
    assert load.progress().percent == 100.0
    cluster.cache.free(data / "f000").wait()
    assert cluster.cache.coverage(data) == pytest.approx(0.9)


def test_a_cache_has_a_size_and_keeps_to_it(data):
    """A local cache without a limit (filesystem_spec #510)."""
    with vcnb.connect("memory://", controllers="off", cache_capacity="10Mi", cache_workers=2) as cluster:
        cluster.cache.load(data).wait()

        held = [asyncio_run(cluster, worker.status()) for worker in cluster._engine.cache.embedded.workers]
        assert sum(status.used for status in held) <= 10 * MIB


def asyncio_run(cluster, work):
    return cluster._bridge.run(work)


def test_the_queue_has_a_length(cluster, data):
    """What waits cannot be seen elsewhere (rclone #5892)."""
    with vcnb.connect("memory://") as own:
        own.cache.load(data).wait()

        assert own.metrics().value("cachejobs_waiting_jobs") == 0
        assert own.metrics().value("cachejobs_task_seconds_count", worker="worker-1") >= 1


def test_many_small_files_are_one_job_and_no_file_is_lost(cluster, tmp_path):
    """Small files: listing and loading stream, and the numbers add up (Alluxio #12567, #11859, #18074)."""
    data = tmp_path / "small"
    data.mkdir()
    for number in range(3000):
        (data / f"{number}").write_bytes(b"%d" % number)

    load = cluster.cache.load(data, batch_size=2000).wait(timeout=60)

    progress = load.progress()
    assert numbers(load) == (3000, 3000, 0, 0)
    assert progress.loaded_bytes == progress.total_bytes == sum(path.stat().st_size for path in data.iterdir())
    assert cluster.cache.coverage(data) == 1.0
