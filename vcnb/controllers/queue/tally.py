"""What is in each queue: PodGroups by phase and the resources that their pods hold, kept up change by change.

Nothing is counted anew when a pod changes, so a change costs the same however many pods there are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from vcnb.resources.quantity import Quantity
from vcnb.resources.views.pods import pod_requests
from vcnb.store.protocol import Obj

__all__ = ["COUNTED", "Holding", "Tally", "as_resource_list", "holding_of"]


COUNTED = {
    "Pending": "pending",
    "Inqueue": "inqueue",
    "Running": "running",
    "Unknown": "unknown",
    "Completed": "completed",
}
"""Phase of a PodGroup -> field of a queue's status. A PodGroup without a phase counts as Pending."""

GROUP_ANNOTATION = "scheduling.k8s.io/group-name"
_FINISHED = {"Succeeded", "Failed"}
_ONE_POD = {"pods": Quantity.parse(1)}


class Holding(NamedTuple):
    """A pod that has a node: its PodGroup and what it holds there, one ``pods`` included."""

    group: str
    resources: Mapping[str, Quantity]


def holding_of(pod: Obj, before: Holding | None = None) -> Holding | None:
    """What a pod holds of its queue; None while it has no node, once it has ended, and while it terminates.

    ``before`` is what it held in an earlier state: what a pod asks for never changes.
    """
    meta = pod["metadata"]
    if not pod["spec"].get("nodeName") or meta.get("deletionTimestamp"):
        return None
    if (pod.get("status") or {}).get("phase") in _FINISHED:
        return None
    group = (meta.get("annotations") or {}).get(GROUP_ANNOTATION)
    if not group:
        return None
    key = f"{meta.get('namespace', '')}/{group}"
    if before is not None and before.group == key:
        return before
    return Holding(key, {**pod_requests(pod["spec"]), **_ONE_POD})


class _Group:
    __slots__ = ("counted", "held", "phase", "pods", "queue")

    def __init__(self) -> None:
        self.queue = ""
        self.phase = ""
        self.counted = False
        self.held: Counter[str] = Counter()
        self.pods = 0


class Tally:
    """Sums by queue. ``touched`` collects the queues whose sums changed, for whoever writes them."""

    def __init__(self) -> None:
        self._groups: dict[str, _Group] = {}
        self._pods: dict[str, Holding] = {}
        self._phases: dict[str, Counter[str]] = {}
        self._held: dict[str, Counter[str]] = {}
        self.touched: set[str] = set()

    def put_group(self, key: str, queue: str, phase: str) -> None:
        """A PodGroup is new, or in another queue or phase."""
        group = self._groups.setdefault(key, _Group())
        phase = phase if phase in COUNTED else "Pending"
        if group.counted and (group.queue, group.phase) == (queue, phase):
            return
        self._count(group, -1)
        group.queue, group.phase, group.counted = queue, phase, True
        self._count(group, 1)

    def drop_group(self, key: str) -> None:
        """A PodGroup is gone."""
        group = self._groups.get(key)
        if group is None:
            return
        self._count(group, -1)
        group.counted = False
        if not group.pods:
            del self._groups[key]

    def put_pod(self, key: str, holding: Holding | None) -> None:
        """A pod changed; None when it holds nothing."""
        before = self._pods.get(key)
        if before is holding:
            return
        if before is not None:
            self._hold(before, -1)
            del self._pods[key]
        if holding is not None:
            self._pods[key] = holding
            self._hold(holding, 1)

    def holding(self, key: str) -> Holding | None:
        """What a pod holds as far as it was told here."""
        return self._pods.get(key)

    def phases(self, queue: str) -> Mapping[str, int]:
        """PodGroups of a queue by phase."""
        return self._phases.get(queue, {})

    def has_groups(self, queue: str) -> bool:
        """Whether any PodGroup names the queue."""
        return bool(self._phases.get(queue))

    def held(self, queues: Iterable[str]) -> dict[str, int]:
        """Nano-amounts by resource that pods of these queues hold together."""
        total: Counter[str] = Counter()
        for queue in queues:
            total.update(self._held.get(queue, {}))
        return {name: amount for name, amount in sorted(total.items()) if amount}

    def _count(self, group: _Group, sign: int) -> None:
        if not group.counted:
            return
        _add(self._phases, group.queue, {group.phase: 1}, sign)
        _add(self._held, group.queue, group.held, sign)
        self.touched.add(group.queue)

    def _hold(self, holding: Holding, sign: int) -> None:
        group = self._groups.setdefault(holding.group, _Group())
        group.pods += sign
        amounts = {name: amount.nanos for name, amount in holding.resources.items()}
        for name, amount in amounts.items():
            group.held[name] += sign * amount
        if group.counted:
            _add(self._held, group.queue, amounts, sign)
            self.touched.add(group.queue)
        elif not group.pods:
            del self._groups[holding.group]


def _add(sums: dict[str, Counter[str]], queue: str, amounts: Mapping[str, int], sign: int) -> None:
    total = sums.setdefault(queue, Counter())
    for name, amount in amounts.items():
        left = total[name] + sign * amount
        if left:
            total[name] = left
        else:
            del total[name]
    if not total:
        del sums[queue]


def as_resource_list(nanos: Mapping[str, int]) -> dict[str, Any]:
    """Amounts as they stand in ``status.allocated``."""
    return {
        name: str(Quantity(amount, "BinarySI" if name == "memory" else "DecimalSI")) for name, amount in nanos.items()
    }
