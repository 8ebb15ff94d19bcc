"""How much each queue may have: Volcano's proportion plugin.

``real capability`` is the most a queue can ever hold, ``deserved`` its fair share now: the machine is handed out by
weight among the queues that still want something, each capped by its real capability and its own demand, what is left
is handed out again, until nothing changes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from vcnb.local.scheduler.amounts import Amounts
from vcnb.local.scheduler.values import Queue

__all__ = ["deserved", "dominant_share", "real_capability"]


class Demanding(Protocol):
    """A queue with what its jobs hold and want together."""

    @property
    def queue(self) -> Queue | None: ...

    @property
    def request(self) -> Amounts: ...


def real_capability(queue: Queue, total: Mapping[str, int], guaranteed: Mapping[str, int]) -> Amounts:
    """min(capability, total - what is guaranteed to all + what is guaranteed to this queue), by name.

    ``guaranteed`` is the sum over all queues. A resource that ``capability`` does not name is limited by the machine.
    """
    names = {**total, **queue.guarantee}
    open_to_all = {name: total.get(name, 0) - guaranteed.get(name, 0) + queue.guarantee.get(name, 0) for name in names}
    return {name: min(amount, queue.capability.get(name, amount)) for name, amount in open_to_all.items()}


def deserved(
    queues: Mapping[str, Demanding], total: Mapping[str, int], guaranteed: Mapping[str, int]
) -> dict[str, Amounts]:
    """The fair share of each queue. ``queues`` are those that have jobs."""
    specs = {name: state.queue for name, state in queues.items() if state.queue is not None}
    caps = {name: real_capability(queue, total, guaranteed) for name, queue in specs.items()}
    shares: dict[str, Amounts] = {name: {} for name in specs}
    unmet = set(specs)
    rest = dict(total)
    while unmet and any(amount > 0 for amount in rest.values()):
        weight = sum(specs[name].weight for name in unmet)
        before = dict(rest)
        for name in sorted(unmet):
            request = queues[name].request
            share = _grown(shares[name], before, specs[name], weight, caps[name], request)
            for resource, amount in share.items():
                rest[resource] = rest.get(resource, 0) - amount + shares[name].get(resource, 0)
            satisfied = all(amount <= share.get(resource, 0) for resource, amount in request.items())
            if satisfied or share == shares[name]:
                unmet.discard(name)
            shares[name] = share
        if rest == before:
            break
    return shares


def _grown(
    share: Amounts, rest: Mapping[str, int], queue: Queue, weight: int, cap: Amounts, request: Mapping[str, int]
) -> Amounts:
    grown: Amounts = {}
    for name in {**rest, **queue.guarantee}:
        amount = share.get(name, 0) + max(rest.get(name, 0), 0) * queue.weight // weight
        amount = min(amount, cap.get(name, 0), request.get(name, 0))
        grown[name] = max(amount, queue.guarantee.get(name, 0))
    return grown


def dominant_share(allocated: Mapping[str, int], deserved: Mapping[str, int]) -> float:
    """The largest part of its share that a queue holds, over the resources; 1 where it holds what it does not deserve."""
    largest = 0.0
    for name, amount in deserved.items():
        held = allocated.get(name, 0)
        if held > 0:
            largest = max(largest, held / amount if amount > 0 else 1.0)
    return largest
