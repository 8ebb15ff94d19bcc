"""What a client asks of the cache: submissions, progress, failures, waiting, stopping, rerunning; and flows."""

from __future__ import annotations

import asyncio

import pytest

from unit.cache_jobs.cache_fakes import MIB, ROOT, Stage, play
from vcnb.cache.config import CacheConfig, parse_duration, parse_size
from vcnb.cache.errors import CacheJobFailed, EtcdNotEnabled, QueueFull
from vcnb.cache.flows import FlowCacheJobs
from vcnb.cache.jobs.record import Counters, JobOptions, JobRecord, JobState
from vcnb.cache.metrics import HELP
from vcnb.cache.protocol import JobType
from vcnb.cache.service import CacheService, ProgressReport
from vcnb.controllers.flow.cachejobs import CachePhase, CacheRequest
from vcnb.errors import InvalidObject, NotFound, WaitTimeout

W, R, V, S, F, X = JobState


async def service(stage: Stage, *, coordinator: bool = True) -> CacheService:
    mine = await stage.coordinator() if coordinator else None
    return CacheService(stage.store, stage.clock, config=stage.config, coordinator=mine)


async def timed(stage: Stage, work):
    """Await something while the virtual time passes."""
    task = asyncio.get_running_loop().create_task(work)
    while not task.done():
        await stage.advance(0.5)
    return await task


def test_load_wait_and_progress() -> None:
    async def story(stage: Stage) -> None:
        cache = await service(stage)
        answer = await cache.load(f" {ROOT}/ ")
        assert (answer.outcome, answer.record.path) == ("created", ROOT)
        record = await timed(stage, cache.wait(answer.id))
        assert record.state == S
        report = await cache.progress(answer.id)
        assert (report.percent, report.eta, report.total_known) == (100.0, None, True)
        assert report.counters.loaded_files == 10
        assert report.average_throughput == pytest.approx(30 * MIB / report.elapsed)
        assert list(await cache.failures(answer.id)) == []
        assert (await cache.job("load", f"{ROOT}/")).uuid == answer.id

    stage = Stage()
    for worker in stage.workers:
        worker.seconds = 1.0
    play(stage, story)


def test_progress_while_it_runs_has_percent_and_eta_and_never_too_much() -> None:
    async def story(stage: Stage) -> None:
        cache = await service(stage)
        answer = await cache.load(ROOT)
        seen = []
        while not (report := await cache.progress(answer.id)).record.finished:
            if report.percent is not None:
                seen.append((report.percent, report.eta, report.current_throughput))
            await stage.advance(1.0)
        percents = [percent for percent, _, _ in seen]
        assert percents == sorted(percents)
        assert 0 < percents[len(percents) // 2] < 100
        assert max(percents) <= 100
        assert any(eta is not None and eta > 0 and speed > 0 for _, eta, speed in seen)

    stage = Stage(workers=1, batch_size=1)
    stage.workers[0].seconds = 4.0
    play(stage, story)


def test_percent_is_not_100_while_a_file_is_open() -> None:
    record = JobRecord(JobType.LOAD, ROOT, "u", state=R)
    counters = Counters(scanned_files=2, loaded_files=1, total_bytes=5, loaded_bytes=5)
    assert ProgressReport(record, counters, total_known=True).percent == 99.9
    assert ProgressReport(record, counters, total_known=False).percent is None
    assert ProgressReport(record, Counters(), total_known=True).percent == 0.0


def test_duplicate_resumed_and_the_warning_of_a_rival() -> None:
    async def story(stage: Stage) -> None:
        cache = await service(stage, coordinator=False)
        first = await cache.load(ROOT)
        again = await cache.load(ROOT, replicas=2)
        assert (again.outcome, again.id, again.differing) == ("already_exists", first.id, ("replicas",))
        rival = await cache.free(ROOT)
        assert "LOAD job of the same path is WAITING" in rival.warnings[0]
        assert await cache.stop(first.id)
        assert not await cache.stop(first.id)
        resumed = await cache.load(ROOT, skip_if_exists=True)
        assert (resumed.outcome, resumed.id) == ("resumed", first.id)
        assert cache.metrics.value("cachejobs_submissions_rejected", "duplicate") == 1

    play(Stage(), story)


def test_row_63_a_token_gives_the_same_job_also_after_its_end() -> None:
    async def story(stage: Stage) -> None:
        cache = await service(stage)
        first = await cache.load(ROOT, token="t")
        await timed(stage, cache.wait(first.id))
        again = await cache.load(ROOT, token="t")
        assert (again.id, again.outcome) == (first.id, "already_exists")
        other = await cache.load(ROOT)
        assert other.id != first.id

    play(Stage(), story)


def test_row_14_unknown_jobs() -> None:
    async def story(stage: Stage) -> None:
        cache = await service(stage, coordinator=False)
        with pytest.raises(NotFound, match="no load job"):
            await cache.job("LOAD", "s3://b/none")
        with pytest.raises(NotFound):
            await cache.progress("none")

    play(Stage(), story)


def test_row_18_the_queue_is_full() -> None:
    async def story(stage: Stage) -> None:
        cache = await service(stage, coordinator=False)
        await cache.load("s3://b/1")
        with pytest.raises(QueueFull):
            await cache.load("s3://b/2")
        assert cache.metrics.value("cachejobs_submissions_rejected", "queue_full") == 1

    play(Stage(waiting_capacity=1), story)


def test_rows_19_29_refused_submissions_write_nothing() -> None:
    async def story(stage: Stage) -> None:
        cache = await service(stage, coordinator=False)
        for options in ({"replicas": 0}, {"bandwidth": 0}, {"batch_size": 0}, {"file_filter": "("}):
            with pytest.raises(InvalidObject):
                await cache.load(ROOT, **options)
        with pytest.raises(InvalidObject, match="wildcards"):
            await cache.load("s3://b/*")
        with pytest.raises(TypeError, match="no option 'replica'"):
            await cache.load(ROOT, replica=1)
        assert await cache.list() == []
        assert cache.metrics.value("cachejobs_submissions_rejected", "invalid") == 5

    play(Stage(), story)


def test_wait_raises_with_the_first_failed_file() -> None:
    async def story(stage: Stage) -> None:
        cache = await service(stage)
        answer = await cache.load(ROOT)
        with pytest.raises(CacheJobFailed, match=rf"{ROOT}/f3: PERMISSION_DENIED 403 Forbidden") as error:
            await timed(stage, cache.wait(answer.id))
        assert (error.value.failed_files, error.value.state) == (1, "FAILED")
        record = await cache.wait(answer.id, check=False)
        assert record.state == F
        (failure,) = await cache.failures(answer.id)
        assert (failure.path, failure.tries) == (f"{ROOT}/f3", 1)

    stage = Stage()
    stage.source.fail[f"{ROOT}/f3"] = PermissionError("403 Forbidden")
    play(stage, story)


def test_wait_times_out_and_the_job_goes_on() -> None:
    async def story(stage: Stage) -> None:
        cache = await service(stage, coordinator=False)
        answer = await cache.load(ROOT)
        with pytest.raises(WaitTimeout, match="WAITING after 3 s"):
            await timed(stage, cache.wait(answer.id, timeout=3))
        assert (await cache.by_id(answer.id)).state == W

    play(Stage(), story)


def test_list_filters_and_pages() -> None:
    async def story(stage: Stage) -> None:
        cache = await service(stage, coordinator=False)
        ids = [(await cache.load(f"s3://b/{n}")).id for n in range(5)]
        await cache.free("s3://b/0")
        assert [record.uuid for record in await cache.list("LOAD", "ALL")] == ids[::-1]
        first = await cache.list("load", "waiting", limit=2)
        rest = await cache.list("load", "waiting", limit=9, after=first[-1].uuid)
        assert [record.uuid for record in (*first, *rest)] == ids[::-1]
        assert await cache.list("ALL", "RUNNING") == []

    play(Stage(), story)


def test_row_70_rerun_needs_a_shared_store() -> None:
    async def story(stage: Stage) -> None:
        cache = await service(stage, coordinator=False)
        await cache.load(ROOT)
        with pytest.raises(EtcdNotEnabled, match=r"^UnavailableException: Job ETCD is not enabled$"):
            await cache.rerun(path=ROOT)

    play(Stage(), story)


def test_rows_72_73_rerun_all_of_a_coordinator() -> None:
    async def story(stage: Stage) -> None:
        cache = await service(stage)
        ids = [(await cache.load(f"{ROOT}/f{n}")).id for n in range(5)]
        await stage.advance(5)
        for worker in stage.workers:
            worker.seconds = 0
        owned = await cache.list(coordinator="A")
        assert {record.state for record in owned} == {R}
        assert len(owned) == 5
        for job in ids[:2]:
            run = stage.coordinators[0].runs[job]
            run.plan.cancel("CANCELLED", "")  # type: ignore[arg-type]
            run.progressed()
            await stage.rest()
        again = await cache.rerun(coordinator="A")
        assert [rerun.outcome for rerun in again] == ["requeued"] * 3
        with pytest.raises(NotFound):
            await cache.rerun(path="s3://b/none")
        waiting = await cache.load("s3://b/later")
        assert (await cache.rerun(id=waiting.id))[0].outcome == "unchanged(WAITING)"

    stage = Stage(shared=True)
    for worker in stage.workers:
        worker.seconds = 1000.0
    play(stage, story)


def test_row_58_progress_through_another_coordinator() -> None:
    async def story(stage: Stage) -> None:
        first = await service(stage)
        answer = await first.load(ROOT)
        await stage.advance(8)
        elsewhere = CacheService(stage.store, stage.clock, config=stage.config)
        here, there = await first.progress(answer.id), await elsewhere.progress(answer.id)
        assert here.state == there.state == R
        assert 0 <= here.counters.loaded_files - there.counters.loaded_files <= 9
        assert there.counters.loaded_files > 0

    stage = Stage(shared=True, files={f"{ROOT}/{n}": 5 for n in range(100)}, batch_size=1)
    for worker in stage.workers:
        worker.seconds = 1.0
    play(stage, story)


# Flows


def test_a_flow_submits_observes_and_stops() -> None:
    async def story(stage: Stage) -> None:
        cache = await service(stage)
        flows = FlowCacheJobs(cache)
        moved: list[str] = []
        unsubscribe = flows.subscribe(moved.append)
        request = CacheRequest("flow/node/0", "load", {"path": ROOT, "batchSize": 2, "skipIfExists": True})
        job = await flows.submit(request)
        assert await flows.submit(request) == job
        assert (await cache.by_id(job)).options == JobOptions(batch_size=2, skip_if_exists=True)
        await stage.ended(job)
        state = await flows.observe(job)
        assert state is not None
        assert (state.phase, state.failed_count, state.progress["loaded_files"]) == (CachePhase.SUCCEEDED, 0, 10)
        assert set(moved) == {job}
        unsubscribe()
        await flows.stop(job)
        await flows.stop("unknown")
        assert await flows.observe("unknown") is None

    play(Stage(), story)


def test_a_flow_is_told_what_failed() -> None:
    async def story(stage: Stage) -> None:
        flows = FlowCacheJobs(await service(stage))
        job = await flows.submit(CacheRequest("t", "load", {"path": ROOT}))
        await stage.ended(job)
        state = await flows.observe(job)
        assert state is not None
        assert (state.phase, state.failed_count) == (CachePhase.FAILED, 1)
        assert (state.failed[0].path, state.failed[0].reason) == (f"{ROOT}/f3", "PERMISSION_DENIED 403")
        assert state.message == "PERMISSION_DENIED: Job partially failed. 1 of 10 files failed"

    stage = Stage()
    stage.source.fail[f"{ROOT}/f3"] = PermissionError("403")
    play(stage, story)


def test_a_flow_with_an_unknown_option_is_refused() -> None:
    async def story(stage: Stage) -> None:
        flows = FlowCacheJobs(await service(stage))
        with pytest.raises(InvalidObject, match="replicaz"):
            await flows.submit(CacheRequest("t", "load", {"path": ROOT, "replicaz": 2}))

    play(Stage(), story)


# Configuration and metrics


def test_properties_have_their_names_and_defaults() -> None:
    given = {
        "alluxio.coordinator.failure.detection.timeout": "15s",
        "alluxio.coordinator.scheduler.etcd.max.retries": "2",
        "alluxio.coordinator.scheduler.etcd.read.timeout": "10s",
        "alluxio.coordinator.scheduler.etcd.write.timeout": "15s",
        "alluxio.coordinator.scheduler.interval.time": "2s",
        "alluxio.coordinator.scheduler.job.etcd.path": "/alluxio/jobs/",
        "alluxio.coordinator.scheduler.job.etcd.poll.interval": "1s",
        "alluxio.coordinator.scheduler.max.tasks.per.worker": "3",
        "alluxio.coordinator.scheduler.running.job.capacity": "100",
        "alluxio.coordinator.scheduler.waiting.job.capacity": "300000",
        "alluxio.job.batch.size": "200",
        "alluxio.job.cleanup.interval": "1H",
        "alluxio.job.retention.time": "7d",
        "alluxio.worker.job.load.executor.threads.max": "2048",
        "alluxio.worker.load.file.partition.size": "256MiB",
    }
    assert CacheConfig.from_properties(given) == CacheConfig()
    assert set(given) < set(CacheConfig().properties())


def test_etcd_without_an_endpoint_is_refused() -> None:
    name = "alluxio.coordinator.job.meta.store.type"
    with pytest.raises(InvalidObject, match="endpoints"):
        CacheConfig.from_properties({name: "ETCD"})
    config = CacheConfig.from_properties({name: "ETCD", "alluxio.etcd.endpoints": "http://a:1, http://b:1"})
    assert config.endpoints == ("http://a:1", "http://b:1")
    with pytest.raises(InvalidObject, match=r"alluxio\.no"):
        CacheConfig.from_properties({"alluxio.no": 1, "alluxio.job.batch.size": "many"})


@pytest.mark.parametrize(
    ("text", "seconds"), [("1H", 3600), ("15s", 15), ("500", 0.5), ("500ms", 0.5), ("7 days", 604800), ("2min", 120)]
)
def test_durations(text: str, seconds: float) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize(
    ("text", "size"), [("256MiB", 1 << 28), ("100MB", 100 << 20), ("4096", 4096), ("1.5g", 3 << 29)]
)
def test_sizes(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "ten", "5 parsecs"])
def test_no_duration(text: str) -> None:
    with pytest.raises(ValueError):
        parse_duration(text)


def test_metrics_show_what_happened() -> None:
    async def story(stage: Stage) -> None:
        cache = await service(stage)
        answer = await cache.load(ROOT)
        await stage.advance(0.5)
        metrics = stage.metrics
        assert metrics.value("cachejobs_jobs", "LOAD", "RUNNING") == 1
        assert metrics.value("cachejobs_tasks_inflight", "W1") > 0
        assert metrics.value("cachejobs_job_files", answer.id, "scanned") == 10
        await timed(stage, cache.wait(answer.id))
        assert metrics.value("alluxio_scheduler_etcd_claim") == 1
        assert metrics.value("cachejobs_jobs_finished", "LOAD", "SUCCEEDED") == 1
        assert metrics.value("cachejobs_files", "LOAD", "loaded") == 10
        assert metrics.value("cachejobs_bytes", "LOAD", "loaded") == 30 * MIB
        assert metrics.value("cachejobs_job_duration_seconds", "LOAD") == 1
        from prometheus_client import generate_latest

        text = generate_latest(metrics.registry()).decode()
        for name in HELP:
            assert name in text
        assert 'cachejobs_files_total{result="loaded",type="LOAD"} 10.0' in text

    stage = Stage()
    for worker in stage.workers:
        worker.seconds = 1.0
    play(stage, story)
