"""The numbers that Volcano exports (reference section 12)."""

from __future__ import annotations

import pytest

from vcnb.controllers.job.metrics import COMPLETED, FAILED, LATENCY, JobMetrics


def test_counters_by_job_and_queue():
    metrics = JobMetrics()
    registry = metrics.registry()
    metrics.finished(COMPLETED, "ns/j", "q")
    metrics.finished(COMPLETED, "ns/j", "q")
    metrics.finished(FAILED, "ns/k", "default")

    assert registry.get_sample_value(COMPLETED, {"job_name": "ns/j", "queue_name": "q"}) == 2
    assert registry.get_sample_value(FAILED, {"job_name": "ns/k", "queue_name": "default"}) == 1
    assert (metrics.value(COMPLETED, "ns/j", "q"), metrics.value(FAILED, "ns/j", "q")) == (2, 0)


def test_counters_of_a_deleted_job_go():
    metrics = JobMetrics()
    metrics.finished(COMPLETED, "ns/j", "q")
    metrics.finished(COMPLETED, "ns/k", "q")

    metrics.forget("ns/j")

    assert (metrics.value(COMPLETED, "ns/j", "q"), metrics.value(COMPLETED, "ns/k", "q")) == (0, 1)


def test_latency_of_pods():
    metrics = JobMetrics()
    for milliseconds in (10, 50, 60_000, 70_000):
        metrics.pod_created(milliseconds)
    registry = metrics.registry()

    def bucket(bound: str) -> float | None:
        return registry.get_sample_value(f"{LATENCY}_bucket", {"le": bound})

    assert (bucket("50"), bucket("60000"), bucket("+Inf")) == (2, 3, 4)
    assert registry.get_sample_value(f"{LATENCY}_sum") == pytest.approx(130_060)
    assert registry.get_sample_value(f"{LATENCY}_count") == 4


def test_planes_count_for_themselves_and_the_text_has_volcanos_names():
    from prometheus_client import generate_latest

    one, other = JobMetrics(), JobMetrics()
    one.finished(COMPLETED, "ns/j", "q")

    text = generate_latest(one.registry()).decode()

    assert f'{COMPLETED}{{job_name="ns/j",queue_name="q"}} 1.0' in text
    assert "ns/j" not in generate_latest(other.registry()).decode()
