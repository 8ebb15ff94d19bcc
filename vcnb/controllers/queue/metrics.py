"""What the queue controller shows of the queues, under the names that Volcano exports: PodGroups by phase."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from vcnb.controllers.queue.tally import COUNTED
from vcnb.store.protocol import Obj

__all__ = ["QueueMetrics"]


class QueueMetrics:
    """Five gauges by queue, read from the queues' ``status`` whenever somebody looks."""

    def __init__(self, queues: Callable[[], Iterable[Obj]]) -> None:
        self._queues = queues

    def collect(self) -> Iterator[Any]:
        """The metric families, as prometheus_client wants them (it is imported here)."""
        from prometheus_client.core import GaugeMetricFamily

        queues = list(self._queues())
        for field in COUNTED.values():
            name = f"volcano_queue_pod_group_{field}_count"
            family = GaugeMetricFamily(
                name, f"Number of PodGroups of the queue that are {field}", labels=["queue_name"]
            )
            for queue in queues:
                family.add_metric([queue["metadata"]["name"]], (queue.get("status") or {}).get(field) or 0)
            yield family
