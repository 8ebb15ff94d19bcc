"""A flow and its jobs without store and controllers: what ``advance`` decides is carried out on plain values."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from vcnb.clock import rfc3339
from vcnb.controllers.flow.advance import advance, decide
from vcnb.controllers.flow.cachejobs import CacheJobState
from vcnb.controllers.flow.naming import flow_uid
from vcnb.controllers.flow.progress import Progress
from vcnb.controllers.flow.world import Decision
from vcnb.store.protocol import Obj

START = 1_767_225_600.0
ENDED = {"Completed", "Failed", "Terminated"}
TEMPLATE = {
    "metadata": {"name": "t", "namespace": "default"},
    "spec": {
        "minAvailable": 1,
        "tasks": [{"name": "t", "replicas": 1, "template": {"spec": {"containers": [{"name": "c", "image": "i"}]}}}],
    },
}


def flow_of(*nodes: Mapping[str, Any], **spec: Any) -> dict[str, Any]:
    """A JobFlow with these nodes, as a store would hold it."""
    return {
        "apiVersion": "flow.volcano.sh/v1alpha1",
        "kind": "JobFlow",
        "metadata": {"name": "f", "namespace": "default", "uid": "flow-uid", "resourceVersion": "1"},
        "spec": {"flows": list(nodes), **spec},
    }


class FlowModel:
    """The World of one flow, and what happens in it."""

    def __init__(self, flow: Obj) -> None:
        self.flow: Obj = flow
        self.jobs: dict[str, dict[str, Any]] = {}
        self.removed: dict[str, Obj] = {}
        self.templates: dict[str, Obj] = {}
        self.codes: dict[str, int] = {}
        self.created: list[str] = []
        self.now = START
        self.wake_at: float | None = None
        self.progress: Progress | None = None
        self.changed: set[str] = set()
        self.decisions: list[Decision] = []

    # World

    def job(self, name: str) -> Obj | None:
        return self.jobs.get(name)

    def lost(self, name: str) -> Obj | None:
        return self.removed.get(name)

    def template(self, name: str) -> Obj | None:
        return self.templates.get(name, {**TEMPLATE, "metadata": {"name": name, "namespace": "default"}})

    def pods(self, job: Obj) -> Sequence[Obj]:
        name = job["metadata"]["name"]
        code = self.codes.get(name)
        if code is None:
            return ()
        state = {"terminated": {"exitCode": code}}
        return (
            {"metadata": {"name": f"{name}-t-0"}, "status": {"containerStatuses": [{"name": "c", "state": state}]}},
        )

    def cache(self, id: str) -> CacheJobState | None:
        return None

    # What happens

    def own_jobs(self) -> list[Obj]:
        return [job for job in self.jobs.values() if flow_uid(job) == self.flow["metadata"]["uid"]]

    def move(self, name: str, phase: str, code: int | None = None) -> None:
        """A job comes into a phase."""
        job = self.jobs[name]
        before = job.get("status") or {}
        conditions = [*(before.get("conditions") or ()), {"status": phase}]
        self.jobs[name] = {**job, "status": {"state": {"phase": phase}, "conditions": conditions}}
        if code is not None:
            self.codes[name] = code
        self.changed.add(name)

    def remove(self, name: str) -> None:
        """A job is deleted."""
        self.removed[name] = self.jobs.pop(name)
        self.changed.add(name)

    def restart(self) -> None:
        """The controller forgets everything that is not in the store."""
        self.progress = None
        self.changed.clear()
        self.removed.clear()

    def edit(self, flow: Obj) -> None:
        """Somebody changes the flow's spec or annotations."""
        self.flow = {**flow, "status": self.flow.get("status") or {}}
        self.progress = None

    def step(self) -> Decision:
        """One pass, carried out."""
        if self.progress is None:
            self.progress = Progress(self.flow, self, self.own_jobs(), self.now)
        for name in sorted(self.changed):
            self.progress.job_changed(name)
        self.changed.clear()
        decision = advance(self.progress, self.now)
        decision.told.clear()
        self.decisions.append(decision)
        if decision.status is not None:
            stored = json.loads(json.dumps(decision.status))
            version = str(int(self.flow["metadata"]["resourceVersion"]) + 1)
            metadata = {**self.flow["metadata"], "resourceVersion": version}
            self.flow = {**self.flow, "metadata": metadata, "status": stored}
            self.progress.stored(self.flow)
        for creation in decision.create:
            assert creation.name not in self.jobs, f"{creation.name} is made twice"
            uid = f"uid-{len(self.created)}"
            metadata = {**creation.job["metadata"], "uid": uid, "creationTimestamp": rfc3339(self.now)}
            self.jobs[creation.name] = {**creation.job, "metadata": metadata}
            self.removed.pop(creation.name, None)
            self.created.append(creation.name)
        for name in decision.delete:
            self.remove(name)
        for name in decision.terminate:
            self.move(name, "Terminated")
        self.wake_at = decision.wake_at
        return decision

    def settle(self) -> None:
        """Passes until nothing is left to do now."""
        for _ in range(1000):
            decision = self.step()
            if not (decision.again or self.changed):
                return
        raise AssertionError("the flow does not come to rest")

    def decide_anew(self) -> Decision:
        """What a controller that has just started would decide."""
        return decide(self.flow, self, self.own_jobs(), self.now)

    # What is seen

    @property
    def status(self) -> Mapping[str, Any]:
        return self.flow.get("status") or {}

    @property
    def nodes(self) -> Mapping[str, Mapping[str, Any]]:
        return self.status.get("nodes") or {}

    @property
    def phases(self) -> dict[str, str]:
        return {name: entry["phase"] for name, entry in self.nodes.items()}

    @property
    def phase(self) -> str:
        return str((self.status.get("state") or {}).get("phase") or "")

    @property
    def active(self) -> list[str]:
        """Jobs that are there and have not ended."""
        return [
            name
            for name, job in self.jobs.items()
            if ((job.get("status") or {}).get("state") or {}).get("phase") not in ENDED
        ]
