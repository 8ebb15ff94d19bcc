"""One job on a simulated cluster, and what can be said about it.

The scheduler is a stub that admits every new PodGroup at once (unless ``admit=False``), the kubelet is the test. A pod is
named without the job: ``a-0`` is ``j-a-0``. After every call the controllers have come to rest.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from itertools import groupby
from typing import Any, Self

from golden.inprocess import InProcessCluster
from golden.observe import OUT_OF_SYNC
from golden.replay import bus_command
from scenario.notation import policy, task
from vcnb.clock import parse_time
from vcnb.controllers.runtime.context import Compat
from vcnb.resources import kinds
from vcnb.resources.kinds import EVENT, JOB, POD, PODGROUP, Kind
from vcnb.store.protocol import Obj, Watch
from vcnb.testing import podgroups
from vcnb.testing.pods import at_once

JOB_NAME = "j"
LETTERS = {"P": "pending", "R": "running", "S": "succeeded", "F": "failed", "T": "terminating", "U": "unknown"}


class Scene:
    """A cluster with at most one job, ``j``."""

    def __init__(self, compat: Compat, *, admit: bool = True, collect_garbage: bool = False) -> None:
        self.compat = compat
        self.cluster = InProcessCluster(compat, collect_garbage=collect_garbage, namespace="default")
        self.sim = self.cluster.simulator
        self.store = self.cluster.store
        self._admit = admit
        self._statuses: list[Obj] = []
        self._watches: list[Watch] = []
        self._tasks: list[asyncio.Task[None]] = []
        self.cluster.run(self._begin())

    async def _begin(self) -> None:
        jobs, groups = await self.store.watch(JOB), await self.store.watch(PODGROUP)
        self._watches = [jobs, groups]
        self._tasks = [asyncio.create_task(self._remember(jobs)), asyncio.create_task(self._schedule(groups))]

    async def _remember(self, watch: Watch) -> None:
        while events := await watch.batch():
            self._statuses += [event.object.get("status") or {} for event in events]

    async def _schedule(self, watch: Watch) -> None:
        while events := await watch.batch():
            for event in events:
                if self._admit and event.type == "ADDED" and self._there(event.object):
                    await podgroups.set_phase(self.cluster.engine, event.object, "Inqueue", at_once)

    def _there(self, podgroup: Obj) -> bool:
        meta = podgroup["metadata"]
        return podgroups.is_pending(podgroup) and self.store.peek(PODGROUP, meta["name"], "default") is not None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.cluster.run(self._end())
        self.cluster.__exit__(*exc)

    async def _end(self) -> None:
        for watch in self._watches:
            await watch.close()
        for work in self._tasks:
            work.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    # Steps

    def create(
        self,
        *tasks: str | dict[str, Any],
        MA: int | None = None,  # noqa: N803 the notation's own name
        MR: int = 3,  # noqa: N803 the notation's own name
        policies: tuple[str, ...] | list[str] = (),
        **spec: Any,
    ) -> Self:
        """Submit the job; MA (default: the sum of the tasks') and MR are its minAvailable and maxRetry."""
        parts = [task(each) if isinstance(each, str) else each for each in tasks]
        body: dict[str, Any] = {
            "schedulerName": "volcano",
            "queue": "default",
            "minAvailable": sum(part["minAvailable"] for part in parts) if MA is None else MA,
            "maxRetry": MR,
            "tasks": parts,
            **spec,
        }
        if policies:
            body["policies"] = [policy(each) for each in policies]
        self.submit(
            {
                "apiVersion": JOB.api_version,
                "kind": JOB.kind,
                "metadata": {"name": JOB_NAME, "namespace": "default"},
                "spec": body,
            }
        )
        return self

    def submit(self, obj: Obj) -> None:
        """Create any object."""
        self.cluster.run(self.store.create(obj))
        self.sim.settle()

    def boot(self, *tasks: str | dict[str, Any], **spec: Any) -> Self:
        """Create; all pods Running, one after the other; the PodGroup Running."""
        self.create(*tasks, **spec)
        self.run_all()
        self.sim.podgroup(JOB_NAME, "Running")
        return self

    def run(self, *pods: str, ready: bool = True) -> None:
        for pod in pods:
            self.sim.run(_full(pod), ready)

    def run_all(self) -> None:
        """Every Pending pod that is not terminating, by name."""
        for name in self.pods:
            pod = self.pod(name)
            if pod["status"]["phase"] == "Pending" and not pod["metadata"].get("deletionTimestamp"):
                self.run(name)

    def pending(self, *pods: str) -> None:
        for pod in pods:
            self.sim.pending(_full(pod))

    def succeed(self, *pods: str) -> None:
        for pod in pods:
            self.sim.succeed(_full(pod))

    def fail(self, *pods: str, exit_code: int = 1) -> None:
        for pod in pods:
            self.sim.fail(_full(pod), exit_code)

    def restart_container(self, pod: str, count: int) -> None:
        self.sim.restart_container(_full(pod), count)

    def delete(self, *pods: str) -> None:
        for pod in pods:
            self.sim.delete(_full(pod))

    def reap(self) -> None:
        self.sim.reap()

    def wait(self, seconds: float) -> None:
        self.sim.advance(seconds)

    def podgroup_becomes(self, phase: str) -> None:
        self.sim.podgroup(JOB_NAME, phase)

    def command(self, action: str) -> None:
        """A bus Command for the job, as vcctl sends it."""
        self.submit(bus_command(self.job, action))

    def scale(self, *, MA: int | None = None, **tasks: int) -> None:  # noqa: N803 the notation's own name
        """New replicas (and minAvailable, the same) of the named tasks, and of the job, in one patch."""
        changed = [
            {**each, "replicas": tasks[each["name"]], "minAvailable": tasks[each["name"]]}
            if each["name"] in tasks
            else each
            for each in self.job["spec"]["tasks"]
        ]
        spec = {"tasks": changed} | ({} if MA is None else {"minAvailable": MA})
        self.cluster.run(self.store.patch(JOB, JOB_NAME, "default", {"spec": spec}))
        self.sim.settle()

    # What is seen

    def peek(self, kind: Kind, name: str) -> Obj | None:
        return self.store.peek(kind, name, "default")

    @property
    def job(self) -> Obj:
        found = self.peek(JOB, JOB_NAME)
        assert found is not None, "there is no job"
        return found

    @property
    def uid(self) -> str:
        return str(self.job["metadata"]["uid"])

    @property
    def status(self) -> Mapping[str, Any]:
        return self.job.get("status") or {}

    @property
    def phase(self) -> str:
        return phase_of(self.status)

    @property
    def phases(self) -> list[str]:
        """All phases so far, in order, without repeats."""
        return [phase for phase, _ in groupby(map(phase_of, self._statuses)) if phase]

    @property
    def statuses(self) -> list[Obj]:
        """All stored statuses so far."""
        return self._statuses

    @property
    def counts(self) -> dict[str, int]:
        """The counters that are not 0: ``{"P": 1, "R": 1}``."""
        return counts_of(self.status)

    @property
    def task_counts(self) -> dict[str, dict[str, int]]:
        return {
            name: {phase: n for phase, n in entry["phase"].items() if n}
            for name, entry in (self.status.get("taskStatusCount") or {}).items()
        }

    @property
    def retries(self) -> int:
        return int(self.status.get("retryCount") or 0)

    @property
    def version(self) -> int:
        return int(self.status.get("version") or 0)

    @property
    def conditions(self) -> list[str]:
        return [entry["status"] for entry in self.status.get("conditions") or ()]

    @property
    def pods(self) -> list[str]:
        """Names of the pods that are there, terminating ones too."""
        return [pod["metadata"]["name"].removeprefix(f"{JOB_NAME}-") for pod in self.store.peek_all(POD, "default")]

    @property
    def kept(self) -> list[str]:
        """Names of the pods that are there and not terminating."""
        return [name for name in self.pods if not self.pod(name)["metadata"].get("deletionTimestamp")]

    @property
    def terminating(self) -> list[str]:
        return [name for name in self.pods if self.pod(name)["metadata"].get("deletionTimestamp")]

    def pod(self, name: str) -> Obj:
        found = self.peek(POD, _full(name))
        assert found is not None, f"there is no pod {name}"
        return found

    def pod_uid(self, name: str) -> str:
        return str(self.pod(name)["metadata"]["uid"])

    def annotation(self, pod: str, key: str) -> str:
        return str(self.pod(pod)["metadata"]["annotations"][f"volcano.sh/{key}"])

    def marked(self, pod: str) -> bool:
        """Whether the controller marked the pod out of sync."""
        return OUT_OF_SYNC in self.pod(pod)["metadata"]["annotations"]

    @property
    def podgroup(self) -> Obj | None:
        return self.peek(PODGROUP, f"{JOB_NAME}-{self.uid}")

    @property
    def podgroup_uid(self) -> str:
        assert self.podgroup is not None, "there is no PodGroup"
        return str(self.podgroup["metadata"]["uid"])

    def events(self, reason: str | None = None) -> list[str]:
        """Messages of the job's Events (of one reason), each as often as it was recorded, by first occurrence."""
        return [message for _, found, message in self.all_events() if reason in {None, found}]

    def all_events(self) -> list[tuple[str, str, str]]:
        """Type, reason and message of the job's Events, each as often as it was recorded."""
        found = [event for event in self.store.peek_all(EVENT) if event["involvedObject"]["name"] == JOB_NAME]
        found.sort(key=lambda event: (event["firstTimestamp"], int(event["metadata"]["resourceVersion"])))
        return [(event["type"], event["reason"], event["message"]) for event in found for _ in range(event["count"])]

    @property
    def created(self) -> int:
        """How many pods were ever created for the job."""
        return self.sim.created(JOB_NAME)

    def metric(self, name: str) -> float:
        """The value that is exported for the job, 0 when there is none yet."""
        assert self.cluster.engine.plane is not None, "the controllers do not run"
        labels = {"job_name": f"default/{JOB_NAME}", "queue_name": "default"}
        return self.cluster.engine.plane.metrics().get_sample_value(name, labels) or 0

    def names(self, kind: Kind) -> list[str]:
        return [found["metadata"]["name"] for found in self.store.peek_all(kind, "default")]

    @property
    def commands(self) -> list[str]:
        return self.names(kinds.COMMAND)

    @property
    def last_transition(self) -> float:
        return parse_time(self.status["state"]["lastTransitionTime"])


def counts_of(status: Obj) -> dict[str, int]:
    """The counters of a status that are not 0."""
    return {letter: status[field] for letter, field in LETTERS.items() if status.get(field)}


def phase_of(status: Obj) -> str:
    """The phase in a status; empty before the first sync."""
    return str((status.get("state") or {}).get("phase") or "")


def _full(pod: str) -> str:
    return f"{JOB_NAME}-{pod}"
