"""What a scheduler does to PodGroups, done by hand."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vcnb.errors import NotFound, ObjectRef
from vcnb.resources.kinds import JOB, PODGROUP
from vcnb.store.protocol import Obj
from vcnb.testing.references import Target

if TYPE_CHECKING:
    from vcnb.testing.engine import Engine
    from vcnb.testing.pods import Pause

__all__ = ["admit_all", "find", "is_pending", "set_phase"]


def find(engine: Engine, job: Target) -> Obj:
    """The job's PodGroup: ``<job>-<uid>``, or ``<job>`` as older controllers named it. Raises NotFound."""
    found = engine.store.peek(JOB, job.name, job.namespace)
    names = [f"{job.name}-{found['metadata']['uid']}"] if found is not None else []
    for name in [*names, job.name]:
        podgroup = engine.store.peek(PODGROUP, name, job.namespace)
        if podgroup is not None:
            return podgroup
    what = f"job {job.name!r} has no PodGroup" if found is not None else f"there is no job {job.name!r}"
    raise NotFound(f"{what} in namespace {job.namespace!r}", ObjectRef("PodGroup", job.name, job.namespace))


def is_pending(podgroup: Obj) -> bool:
    """Whether the PodGroup waits to be admitted; no phase counts as Pending."""
    return ((podgroup.get("status") or {}).get("phase") or "Pending") == "Pending"


async def set_phase(engine: Engine, podgroup: Obj, phase: str, pause: Pause) -> None:
    """One write of ``status.phase``; the same phase again is no change."""
    meta = podgroup["metadata"]
    await engine.store.patch(PODGROUP, meta["name"], meta["namespace"], {"status": {"phase": phase}})
    await pause()


async def admit_all(engine: Engine, pause: Pause) -> None:
    """Every PodGroup that waits becomes Inqueue, by namespace and name."""
    for podgroup in sorted(
        engine.store.peek_all(PODGROUP), key=lambda found: (found["metadata"]["namespace"], found["metadata"]["name"])
    ):
        meta = podgroup["metadata"]
        current = engine.store.peek(PODGROUP, meta["name"], meta["namespace"])
        if current is not None and is_pending(current):
            await set_phase(engine, current, "Inqueue", pause)
