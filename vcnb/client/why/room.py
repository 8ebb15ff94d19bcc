"""Whether there is room for a job: what it needs at once, what there is, and who has it."""

from __future__ import annotations

from collections.abc import Mapping

from vcnb.client.why.answer import Answer, listed
from vcnb.client.why.case import Case
from vcnb.client.why.reasons import lower, since_fact
from vcnb.resources.quantity import ZERO, Quantity, sum_resources
from vcnb.resources.views import NodeView

__all__ = ["amount_text", "room_answer"]


_UNSAID = frozenset({"cpu", "memory", "pods", "ephemeral-storage"})
"""What every node has, even one that does not say how much; of anything else a node without it has none."""


def room_answer(case: Case) -> Answer | None:
    """A job whose PodGroup is not admitted: what it needs at once, what there is, who has it."""
    if case.group is None:
        return Answer(f"{case.name} waits: its PodGroup is not made yet", (since_fact(case),))
    if case.group.admitted:
        return None
    never = case.never or (_beyond(case) if not case.scheduler_facts else "")
    if never:
        return Answer(
            f"{case.name} can never start as it is: {lower(never)}",
            (_need_fact(case), *(fact for fact in case.scheduler_facts if fact != never)),
            "ask for less (resources of the pods, or minAvailable), or use a larger cluster",
        )
    facts = case.scheduler_facts
    because = f": {lower(facts[0])}" if facts else _told(case)
    rivals = case.rivals
    hurry = f"end {listed(rivals)}" if rivals else "end another job"
    return Answer(
        f"{case.name} waits to be admitted to queue {case.group.queue!r}{because}",
        (_need_fact(case), *facts[1:], since_fact(case)),
        f"it starts by itself when there is room; to hurry, {hurry}, or lower minAvailable with job.scale()",
    )


def _told(case: Case) -> str:
    """What the scheduler's events say, when it gives no facts: ``: queue resource quota insufficient ...``."""
    event = next((event for event in reversed(case.group_events) if event.type == "Normal" and event.message), None)
    return f": {event.message.strip()}" if event is not None else "; the scheduler has not said why"


def _beyond(case: Case) -> str:
    """``it needs 6 cpu, the machine has 4 cpu``, when no node could ever give what is needed; else ""."""
    nodes = [NodeView(node) for node in case.snapshot.nodes]
    if not nodes or case.group is None:
        return ""
    total = sum_resources(node.allocatable for node in nodes)
    short = {
        name: needed
        for name, needed in _compared(case.group.min_resources).items()
        if (name in total or name not in _UNSAID) and total.get(name, ZERO) < needed
    }
    if not short:
        return ""
    who = "the machine has" if len(nodes) == 1 else f"all {len(nodes)} nodes together have"
    have = {name: total.get(name, ZERO) for name in short}
    return f"it needs {_amounts(short)} at once, {who} {_amounts(have)}"


def _compared(resources: Mapping[str, Quantity]) -> dict[str, Quantity]:
    """What nodes offer: without ``count/...``, ``requests.*`` and ``limits.*``."""
    return {
        name: amount
        for name, amount in resources.items()
        if not name.startswith(("count/", "requests.", "limits.")) and amount.nanos
    }


def _need_fact(case: Case) -> str:
    need = _compared(case.group.min_resources) if case.group is not None else {}
    return f"at once it needs {_amounts(need)} (minAvailable {case.min_available})" if need else ""


def _amounts(resources: Mapping[str, Quantity]) -> str:
    order = {"cpu": 0, "memory": 1, "pods": 99}
    names = sorted(resources, key=lambda name: (order.get(name, 2), name))
    return (
        ", ".join(f"{(text := amount_text(name, resources[name]))} {_word(name, text)}" for name in names) or "nothing"
    )


def _word(name: str, amount: str) -> str:
    return "pod" if (name, amount) == ("pods", "1") else name


def amount_text(name: str, quantity: Quantity) -> str:
    """``0.5`` cores, ``1.5Gi`` of memory, other resources as they are."""
    if name == "cpu":
        return f"{float(quantity):g}"
    if name in {"memory", "ephemeral-storage"}:
        for size, suffix in ((1 << 40, "Ti"), (1 << 30, "Gi"), (1 << 20, "Mi"), (1 << 10, "Ki")):
            if float(quantity) >= size:
                return f"{float(quantity) / size:.4g}{suffix}"
    return str(quantity)
