"""What a coordinator tells its metrics (reference 5.3)."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from vcnb.cache.coordinator.run import JobRun
from vcnb.cache.jobs.record import Counters, JobRecord
from vcnb.cache.metrics import CacheMetrics
from vcnb.cache.protocol import JobType

__all__ = ["count_end", "show_gauges"]

_FILES = ("scanned_files", "loaded_files", "skipped_files", "failed_files")
_BYTES = ("total_bytes", "loaded_bytes", "skipped_bytes", "failed_bytes")

Values = dict[tuple[str, ...], float]


def count_end(metrics: CacheMetrics, record: JobRecord, counters: Counters) -> None:
    """Count a job that has ended here, and what it did."""
    metrics.count("cachejobs_jobs_finished", record.type, record.state)
    seconds = (record.end_ms - record.start_ms) / 1000
    metrics.observe("cachejobs_job_duration_seconds", seconds, record.type)
    done = "freed" if record.type == JobType.FREE else "loaded"
    for result, files, size in (
        (done, counters.loaded_files, counters.loaded_bytes),
        ("skipped", counters.skipped_files, counters.skipped_bytes),
        ("failed", counters.failed_files, counters.failed_bytes),
        ("vanished", counters.vanished_files, counters.vanished_bytes),
    ):
        metrics.count("cachejobs_files", record.type, result, by=files)
        metrics.count("cachejobs_bytes", record.type, result, by=size)
    metrics.count("cachejobs_ufs_fetched_bytes", by=counters.fetched_bytes)


def show_gauges(
    metrics: CacheMetrics,
    runs: Mapping[str, JobRun],
    inflight: Callable[[], Mapping[str, int]],
    lease_age: Callable[[], float],
) -> None:
    """Let the gauges show the jobs that run now."""

    def jobs() -> Values:
        found: Values = {}
        for run in runs.values():
            key = (run.record.type.value, run.record.state.value)
            found[key] = found.get(key, 0) + 1
        return found

    def numbers(names: tuple[str, ...]) -> Callable[[], Values]:
        def read() -> Values:
            lives = {uuid: run.plan.live() for uuid, run in runs.items()}
            return {(uuid, name.split("_")[0]): getattr(live, name) for uuid, live in lives.items() for name in names}

        return read

    metrics.gauge("cachejobs_jobs", jobs)
    metrics.gauge("cachejobs_job_files", numbers(_FILES))
    metrics.gauge("cachejobs_job_bytes", numbers(_BYTES))
    metrics.gauge("cachejobs_job_throughput_bytes", lambda: {(uuid,): run.throughput() for uuid, run in runs.items()})
    metrics.gauge("cachejobs_tasks_inflight", lambda: {(name,): float(count) for name, count in inflight().items()})
    metrics.gauge("cachejobs_retry_queue", lambda: {(uuid,): float(run.plan.retrying) for uuid, run in runs.items()})
    metrics.gauge("cachejobs_coordinator_lease_age_seconds", lambda: {(): lease_age()})
