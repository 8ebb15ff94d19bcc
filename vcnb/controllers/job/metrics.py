"""What the Job controller counts, under the names that Volcano exports.

Counting is plain Python; ``prometheus_client`` is imported only when somebody asks for a registry. Each control plane
has its own.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

__all__ = ["COMPLETED", "FAILED", "LATENCY", "JobMetrics"]

COMPLETED: Final = "volcano_job_completed_phase_count"
FAILED: Final = "volcano_job_failed_phase_count"
LATENCY: Final = "volcano_controller_job_to_pod_creation_latency_milliseconds"

_HELP: Final = {
    COMPLETED: "Number of times that the job came into phase Completed",
    FAILED: "Number of times that the job came into phase Failed",
    LATENCY: "Milliseconds from the creation of a job to that of each of its pods",
}
_BUCKETS: Final = tuple(50 * 1200 ** (step / 29) for step in range(30))


class JobMetrics:
    """Two counters by job and queue, and the latency of pod creations."""

    def __init__(self) -> None:
        self._counts: dict[str, dict[tuple[str, str], int]] = {COMPLETED: {}, FAILED: {}}
        self._buckets = [0] * (len(_BUCKETS) + 1)
        self._sum = 0.0

    def finished(self, metric: str, key: str, queue: str) -> None:
        """A job (``<namespace>/<name>``) came into Completed or Failed."""
        counts = self._counts[metric]
        counts[key, queue] = counts.get((key, queue), 0) + 1

    def pod_created(self, milliseconds: float) -> None:
        """A pod was made that long after its job."""
        self._buckets[bisect_left(_BUCKETS, milliseconds)] += 1
        self._sum += milliseconds

    def forget(self, key: str) -> None:
        """The job was deleted: its counters go."""
        for counts in self._counts.values():
            for labels in [labels for labels in counts if labels[0] == key]:
                del counts[labels]

    def value(self, metric: str, key: str, queue: str = "default") -> int:
        """One counter of one job."""
        return self._counts[metric].get((key, queue), 0)

    def registry(self) -> CollectorRegistry:
        """A registry that shows the present numbers whenever it is read."""
        from prometheus_client import CollectorRegistry

        registry = CollectorRegistry(auto_describe=False)
        registry.register(self)
        return registry

    def collect(self) -> Iterator[Any]:
        """The metric families, as prometheus_client wants them."""
        from prometheus_client.core import HistogramMetricFamily, Metric

        for name, counts in self._counts.items():
            # A counter family would be given another name (``_total``) than Volcano's.
            family = Metric(name, _HELP[name], "unknown")
            for (key, queue), number in counts.items():
                family.add_sample(name, {"job_name": key, "queue_name": queue}, number)
            yield family
        total, buckets = 0, []
        for bound, number in zip((*(f"{bound:g}" for bound in _BUCKETS), "+Inf"), self._buckets, strict=True):
            total += number
            buckets.append((bound, total))
        yield HistogramMetricFamily(LATENCY, _HELP[LATENCY], buckets=buckets, sum_value=self._sum)
