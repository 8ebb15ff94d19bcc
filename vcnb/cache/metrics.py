"""What the Job Service counts, under the names of reference 5.3.

Counting is plain Python; ``prometheus_client`` is imported only when somebody asks for a registry. Byte counters are
exposed with ``_bytes_total`` by Alluxio; ours have the bytes in their names.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

__all__ = ["HELP", "CacheMetrics"]

HELP: Final[Mapping[str, tuple[str, tuple[str, ...], str]]] = {
    "alluxio_scheduler_etcd_poll": ("counter", (), "Polls of the job store"),
    "alluxio_scheduler_etcd_claim": ("counter", (), "Jobs claimed"),
    "alluxio_scheduler_etcd_reclaim": ("counter", (), "Jobs recovered from failed coordinators"),
    "alluxio_scheduler_etcd_latency_ms": ("histogram", (), "Milliseconds of operations on the job store"),
    "alluxio_scheduler_job_access_etcd": ("counter", ("type",), "Accesses of the job store: list, get, transaction"),
    "alluxio_distributed_load_failure": ("counter", ("reason", "final_attempt"), "Units that failed"),
    "cachejobs_jobs": ("gauge", ("type", "state"), "Jobs that this coordinator runs"),
    "cachejobs_jobs_finished": ("counter", ("type", "state"), "Jobs that ended here"),
    "cachejobs_job_wait_seconds": ("histogram", ("type",), "Seconds from submission to the first claim"),
    "cachejobs_job_duration_seconds": ("histogram", ("type",), "Seconds from the first claim to the end"),
    "cachejobs_files": ("counter", ("type", "result"), "Files done"),
    "cachejobs_bytes": ("counter", ("type", "result"), "Bytes done"),
    "cachejobs_ufs_fetched_bytes": ("counter", (), "Bytes read from sources"),
    "cachejobs_ufs_requests": ("counter", ("op", "code"), "Requests to sources that have ended"),
    "cachejobs_ufs_request_seconds": ("histogram", ("op", "code"), "Seconds of a request to a source"),
    "cachejobs_job_files": ("gauge", ("job", "kind"), "Files of the jobs that run now"),
    "cachejobs_job_bytes": ("gauge", ("job", "kind"), "Bytes of the jobs that run now"),
    "cachejobs_job_throughput_bytes": ("gauge", ("job",), "Bytes per second of the jobs that run now"),
    "cachejobs_tasks_inflight": ("gauge", ("worker",), "Tasks that workers have"),
    "cachejobs_retry_queue": ("gauge", ("job",), "Units that wait to be tried again"),
    "cachejobs_task_seconds": ("histogram", ("type", "worker"), "Seconds of a task"),
    "cachejobs_coordinator_lease_age_seconds": ("gauge", (), "Seconds since the lease was renewed"),
    "cachejobs_claims_lost": ("counter", (), "Claims that another coordinator won"),
    "cachejobs_fenced_writes": ("counter", (), "Writes refused because the job is another coordinator's now"),
    "cachejobs_submissions_rejected": ("counter", ("reason",), "Submissions refused"),
    "cachejobs_waiting_jobs": ("gauge", (), "Jobs that wait in the queue"),
    "alluxio_cached_storage": ("gauge", (), "Bytes of pages"),
    "alluxio_cached_capacity": ("gauge", (), "Bytes of pages that there is room for"),
    "alluxio_cached_evicted_data": ("counter", (), "Bytes of pages that went to make room"),
    "alluxio_cached_data_read": ("counter", (), "Bytes that reads found in the cache"),
    "alluxio_external_data_read": ("counter", (), "Bytes that reads fetched from sources"),
    "cachejobs_cache_bytes": ("gauge", ("worker",), "Bytes of pages of a worker"),
    "cachejobs_cache_capacity_bytes": ("gauge", ("worker",), "Bytes of pages that a worker has room for"),
    "cachejobs_cache_pinned_bytes": ("gauge", ("worker",), "Bytes of pinned pages of a worker"),
    "cachejobs_cache_evicted_bytes": ("counter", ("worker",), "Bytes that went to make room, since the worker started"),
    "cachejobs_read_bytes": ("counter", ("source",), "Bytes of reads by where they came from: cache, ufs"),
}
"""Kind, labels and help of every metric. Prometheus shows counters with ``_total`` appended."""

_SECONDS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800, 7200)
_MILLISECONDS: Final = (0.1, 0.25, 0.5, 1, 2, 5, 10, 25, 50, 100, 250, 500, 1000, 5000, 15000)

Labels = tuple[str, ...]


class _Histogram:
    def __init__(self, bounds: tuple[float, ...]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.sum = 0.0

    def observe(self, value: float) -> None:
        self.counts[bisect_left(self.bounds, value)] += 1
        self.sum += value


class CacheMetrics:
    """Counters, histograms, and gauges that are computed when they are read."""

    def __init__(self) -> None:
        self._counts: dict[tuple[str, Labels], float] = {}
        self._histograms: dict[tuple[str, Labels], _Histogram] = {}
        self._gauges: dict[str, Callable[[], Mapping[Labels, float]]] = {}

    def count(self, name: str, *labels: str, by: float = 1) -> None:
        """Add to a counter."""
        key = (name, labels)
        self._counts[key] = self._counts.get(key, 0) + by

    def observe(self, name: str, value: float, *labels: str) -> None:
        """Add an observation to a histogram."""
        key = (name, labels)
        histogram = self._histograms.get(key)
        if histogram is None:
            bounds = _MILLISECONDS if name.endswith("_ms") else _SECONDS
            histogram = self._histograms[key] = _Histogram(bounds)
        histogram.observe(value)

    def gauge(self, name: str, values: Callable[[], Mapping[Labels, float]]) -> None:
        """Say where the values of a gauge come from, by labels; or of a counter that somebody else counts."""
        self._gauges[name] = values

    def value(self, name: str, *labels: str) -> float:
        """The present value of a counter or gauge, or the number of observations of a histogram."""
        if name in self._gauges:
            return self._gauges[name]().get(labels, 0)
        if (name, labels) in self._histograms:
            return sum(self._histograms[name, labels].counts)
        return self._counts.get((name, labels), 0)

    def registry(self) -> CollectorRegistry:
        """A registry that shows the present numbers whenever it is read."""
        from prometheus_client import CollectorRegistry

        registry = CollectorRegistry()
        registry.register(self.collector())
        return registry

    def collector(self) -> Any:
        """What shows the present numbers in another registry."""
        return _Collector(self)

    def families(self) -> Iterator[Any]:
        """The numbers as prometheus_client's metric families."""
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily

        for name, (kind, labels, text) in HELP.items():
            if kind == "counter":
                counter = CounterMetricFamily(name, text, labels=labels)
                for (counted, values), number in sorted(self._counts.items()):
                    if counted == name:
                        counter.add_metric(values, number)
                for values, number in sorted(self._gauges.get(name, dict)().items()):
                    counter.add_metric(values, number)
                yield counter
            elif kind == "gauge":
                gauge = GaugeMetricFamily(name, text, labels=labels)
                for values, number in sorted(self._gauges.get(name, dict)().items()):
                    gauge.add_metric(values, number)
                yield gauge
            else:
                family = HistogramMetricFamily(name, text, labels=labels)
                for (observed, values), histogram in sorted(self._histograms.items(), key=lambda item: item[0]):
                    if observed == name:
                        family.add_metric(values, _buckets(histogram), histogram.sum)
                yield family


class _Collector:
    def __init__(self, metrics: CacheMetrics) -> None:
        self._metrics = metrics

    def collect(self) -> Iterator[Any]:
        return self._metrics.families()

    def describe(self) -> list[Any]:
        return []


def _buckets(histogram: _Histogram) -> list[tuple[str, float]]:
    total, buckets = 0, []
    for bound, count in zip((*histogram.bounds, float("inf")), histogram.counts, strict=True):
        total += count
        buckets.append(("+Inf" if bound == float("inf") else str(float(bound)), float(total)))
    return buckets
