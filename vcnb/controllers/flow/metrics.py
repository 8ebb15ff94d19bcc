"""What the JobFlow controller counts, under the names that Volcano exports."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from vcnb.resources.phases import FlowPhase

__all__ = ["FlowMetrics"]

_NAMES: Final = {
    FlowPhase.SUCCEED.value: "volcano_jobflow_succeed_phase_count",
    FlowPhase.FAILED.value: "volcano_jobflow_failed_phase_count",
}
_HELP: Final = {
    FlowPhase.SUCCEED.value: "Number of flows that came into phase Succeed",
    FlowPhase.FAILED.value: "Number of flows that came into phase Failed",
}


class FlowMetrics:
    """Two counters by namespace."""

    def __init__(self) -> None:
        self._counts: dict[str, dict[str, int]] = {phase: {} for phase in _NAMES}

    def moved(self, namespace: str, before: str, after: str) -> None:
        """A flow's phase changed; only coming into Succeed or Failed counts."""
        counts = self._counts.get(after)
        if counts is not None and before != after:
            counts[namespace] = counts.get(namespace, 0) + 1

    def value(self, phase: str, namespace: str = "default") -> int:
        """How many flows of a namespace came into ``Succeed`` or ``Failed``."""
        return self._counts[phase].get(namespace, 0)

    def collect(self) -> Iterator[Any]:
        """The metric families, as prometheus_client wants them (it is imported here)."""
        from prometheus_client.core import Metric

        for phase, counts in self._counts.items():
            family = Metric(_NAMES[phase], _HELP[phase], "unknown")
            for namespace, number in counts.items():
                family.add_sample(_NAMES[phase], {"jobflow_namespace": namespace}, number)
            yield family
