"""Playing a recorded trace on the controllers of vcnb, verb by verb, and comparing what is seen after each.

A verb is carried out as single API calls, pod by pod in name order, and the controllers run to idle after each call; the
removal of a pod is two changes with idle in between. See ``orders`` for a few steps that were recorded otherwise.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from golden import compare, observe
from golden.inprocess import PATIENCE, InProcessCluster
from golden.orders import Forced
from vcnb.resources import kinds
from vcnb.resources.kinds import KINDS, Kind, kind_of
from vcnb.store.protocol import Obj
from vcnb.testing import clockwork, pod_status, podgroups, pods
from vcnb.testing.references import Target

Trace: TypeAlias = Mapping[str, Any]

HERE = Path(__file__).parent


def traces(pattern: str) -> list[Trace]:
    """The traces of the files that match, in order of file and place."""
    return [trace for path in sorted(HERE.glob(pattern)) for trace in json.loads(path.read_text(encoding="utf-8"))]


class Mismatch(NamedTuple):
    """The first step of a trace where something differs."""

    trace: str
    step: int
    do: Sequence[Any]
    found: list[compare.Difference]
    seen: Mapping[str, Any]

    def __str__(self) -> str:
        lines = "\n".join(f"    {difference}" for difference in self.found)
        return f"{self.trace}, step {self.step}: {_short(self.do)}\n{lines}"


def _short(do: Sequence[Any]) -> str:
    text = json.dumps(list(do))
    return text if len(text) < 200 else f"{text[:200]} ..."


def replay(trace: Trace, cluster: InProcessCluster, forced: Forced | None = None) -> Mismatch | None:
    """Play a whole trace; the first step that differs, or None when all are equal.

    With ``forced`` one step is played in the order that it was recorded in, and what that order showed is compared too.
    """
    player = Player(cluster)
    for number, step in enumerate(trace["steps"]):
        player.play(step["do"], forced if forced is not None and forced.step == number else None)
        found: list[compare.Difference] = []
        seen = observe.see(cluster.store, cluster.namespace)
        if forced is not None and forced.shown_at == number:
            found += compare.difference_at(forced.path, forced.recorded, seen)
        if "see" in step:
            found += compare.differences(step["see"], seen, step.get("unstable", ()))
        if "detail" in step:
            found += compare.detail_differences(step["detail"], observe.detail(cluster.store, cluster.namespace))
        if found:
            return Mismatch(trace["name"], number, step["do"], found, seen)
    return None


class Player:
    """Carries out verbs; the job submitted or named last is the current one."""

    def __init__(self, cluster: InProcessCluster) -> None:
        self._cluster = cluster
        self._namespace = cluster.namespace
        self._sim = cluster.simulator
        self._store = cluster.store
        self._job = ""
        self._forced: Forced | None = None

    def play(self, do: Sequence[Any], forced: Forced | None = None) -> None:
        """One verb, settled."""
        verb, *rest = do
        self._forced = forced
        together = forced is not None and forced.order == "calls-together"
        with self._sim.batch() if together else nullcontext():
            getattr(self, f"_{verb}")(*rest)
        self._sim.settle()
        if forced is not None:
            assert not self._cluster.engine.faults.waiting, "the forced order did not come about"

    # Objects

    def _submit(self, manifest: Obj) -> None:
        obj = {**manifest, "metadata": {"namespace": self._namespace, **manifest["metadata"]}}
        if kind_of(obj) == kinds.JOB:
            self._job = obj["metadata"]["name"]
        self._cluster.run(self._store.create(obj))

    def _use(self, name: str) -> None:
        self._job = name

    def _command(self, action: str) -> None:
        job = observe.object_of(self._store, kinds.JOB, self._job, self._namespace)
        self._cluster.run(self._store.create(bus_command(job, action)))

    def _scale(self, tasks: Mapping[str, Any], min_available: int | None = None) -> None:
        job = observe.object_of(self._store, kinds.JOB, self._job, self._namespace)
        spec: dict[str, Any] = {"tasks": [scaled(task, tasks.get(task["name"], {})) for task in job["spec"]["tasks"]]}
        if min_available is not None:
            spec["minAvailable"] = min_available
        self._cluster.run(self._store.patch(kinds.JOB, self._job, self._namespace, {"spec": spec}))

    def _delete_object(self, kind: str, name: str) -> None:
        self._cluster.run(self._store.delete(_kind(kind), name, self._namespace))

    def _patch_object(self, kind: str, name: str, patch: Mapping[str, Any]) -> None:
        self._cluster.run(self._store.patch(_kind(kind), name, self._namespace, patch))

    # The scheduler

    def _admit_all(self) -> None:
        self._cluster.run(podgroups.admit_all(self._cluster.engine, self._idle))

    async def _idle(self) -> None:
        await clockwork.settle(self._cluster.engine, PATIENCE)

    def _podgroup(self, phase: str) -> None:
        names = {self._job, f"{self._job}-{self._uid()}"}
        if any(group["metadata"]["name"] in names for group in self._store.peek_all(kinds.PODGROUP, self._namespace)):
            self._sim.podgroup(self._job, phase, namespace=self._namespace)

    def _uid(self) -> str:
        job = self._store.peek(kinds.JOB, self._job, self._namespace)
        return str(job["metadata"]["uid"]) if job is not None else ""

    # The kubelet

    def _run(self, which: Any) -> None:
        self._each(which, {"Pending"}, self._sim.run)

    def _pending(self, which: Any) -> None:
        self._each(which, set(), self._sim.pending)

    def _succeed(self, which: Any) -> None:
        self._each(which, {"Pending", "Running"}, self._sim.succeed)

    def _fail(self, which: Any, options: Mapping[str, Any] | None = None) -> None:
        self._each(which, {"Pending", "Running"}, self._sim.fail, **(options or {}))

    def _restart_container(self, which: Any, count: int) -> None:
        self._each(which, set(), self._sim.restart_container, count=count)

    def _delete(self, which: Any) -> None:
        self._each(which, set(), self._sim.delete)

    def _evict(self, which: Any) -> None:
        self._each(which, set(), self._sim.evict)

    def _reap(self) -> None:
        at_once = self._forced.pods if self._forced is not None else ()
        if not at_once:
            self._sim.reap(namespace=self._namespace)
            return
        for pod in self._store.peek_all(kinds.POD, self._namespace):
            if pod_status.is_terminating(pod):
                with self._sim.batch() if pod["metadata"]["name"] in at_once else nullcontext():
                    self._sim.reap(pod)

    def _each(self, which: Any, phases: set[str], verb: Callable[..., None], **options: Any) -> None:
        """The verb for each pod that is there, by name; ``"all"`` means those in ``phases`` that are not terminating."""
        names = self._names(which, phases)
        if self._forced is not None and self._forced.order == "after-marking":
            for late in self._forced.pods:
                names.remove(late)
                self._cluster.engine.faults.before_delete(late, lambda late=late: self._report_succeeded(late))
        for name in names:
            if self._store.peek(kinds.POD, name, self._namespace) is None:
                continue
            verb(name, namespace=self._namespace, **options)

    async def _report_succeeded(self, name: str) -> None:
        await pods.report(self._cluster.engine, Target(self._namespace, name), pod_status.succeeded, pods.at_once)

    def _names(self, which: Any, phases: set[str]) -> list[str]:
        if which == "all":
            return sorted(
                pod["metadata"]["name"]
                for pod in self._store.peek_all(kinds.POD, self._namespace)
                if pod_status.phase_of(pod) in phases and not pod_status.is_terminating(pod)
            )
        if isinstance(which[0], str):
            which = [which]
        return sorted("-".join(map(str, (self._job, *pod)[-3:])) for pod in which)

    # Time, and nothing

    def _advance(self, seconds: float) -> None:
        self._sim.advance(seconds)

    def _settle(self) -> None:
        """Settling follows every verb."""

    def _detail(self) -> None:
        """Only asks for more to be recorded."""


def bus_command(job: Obj, action: str) -> dict[str, Any]:
    """A Command as vcctl creates it: the job is its target and its owner."""
    meta = job["metadata"]
    reference = {
        "apiVersion": job["apiVersion"],
        "kind": job["kind"],
        "name": meta["name"],
        "uid": meta["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }
    return {
        "apiVersion": kinds.COMMAND.api_version,
        "kind": kinds.COMMAND.kind,
        "metadata": {
            "generateName": f"{meta['name']}-{action.lower()}-",
            "namespace": meta["namespace"],
            "ownerReferences": [reference],
        },
        "action": action,
        "target": reference,
    }


def scaled(task: Obj, change: int | Mapping[str, int]) -> dict[str, Any]:
    """The task with other replicas, or with other replicas and minAvailable."""
    return {**task, **({"replicas": change} if isinstance(change, int) else change)}


def _kind(name: str) -> Kind:
    """A Job is Volcano's here; no other kind of a trace has a namesake."""
    return next(kind for kind in KINDS if kind.kind == name)
