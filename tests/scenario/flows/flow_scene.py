"""One flow on a simulated cluster, and what can be said about it.

A flow is written as in the reference: ``"b<a"`` is node b that depends on a. PodGroups are admitted at once unless the
scheduler is the real one; the kubelet is the test. A node's job has one pod, and is moved by its node's name.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from itertools import groupby
from typing import Any, Self

from golden.inprocess import InProcessCluster
from golden.replay import bus_command
from vcnb.controllers.flow.prober import ProbeFailed
from vcnb.controllers.flow.world import Check
from vcnb.controllers.runtime.context import Compat
from vcnb.resources.kinds import EVENT, JOB, JOBFLOW, JOBTEMPLATE, NODE, POD, PODGROUP, Kind
from vcnb.store.protocol import Obj, Watch
from vcnb.testing import Scheduling, podgroups
from vcnb.testing.pods import at_once

FLOW = "f"
Change = Mapping[str, Any]


class FakeProber:
    """Answers probes from two tables; what stands in neither refuses the connection."""

    def __init__(self) -> None:
        self.codes: dict[tuple[str, int, str], int] = {}
        self.open: set[tuple[str, int]] = set()
        self.seen: list[Check] = []

    async def http_get(self, check: Check, timeout: float) -> int:
        self.seen.append(check)
        code = self.codes.get((check.address, check.port, check.path))
        if code is None:
            raise ProbeFailed("connection refused")
        return code

    async def tcp_connect(self, check: Check, timeout: float) -> None:
        self.seen.append(check)
        if (check.address, check.port) not in self.open:
            raise ProbeFailed("connection refused")


def node(text: str, **more: Any) -> dict[str, Any]:
    """``"b<a,c"`` with further fields of the node; ``depends`` are further fields of its dependsOn."""
    name, _, targets = text.partition("<")
    entry: dict[str, Any] = {"name": name}
    depends = dict(more.pop("depends", {}))
    if targets:
        depends["targets"] = targets.split(",")
    if depends:
        entry["dependsOn"] = depends
    return {**entry, **more}


def template(name: str, *, task: str = "t", replicas: int = 1, **spec: Any) -> dict[str, Any]:
    """A JobTemplate with one task."""
    container = {"name": "c", "image": "busybox", "command": ["true"]}
    return {
        "apiVersion": JOBTEMPLATE.api_version,
        "kind": JOBTEMPLATE.kind,
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "schedulerName": "volcano",
            "queue": "default",
            "maxRetry": 3,
            "minAvailable": replicas,
            "tasks": [
                {
                    "name": task,
                    "replicas": replicas,
                    "minAvailable": replicas,
                    "maxRetry": 3,
                    "template": {"spec": {"restartPolicy": "Never", "containers": [container]}},
                }
            ],
            **spec,
        },
    }


class FlowScene:
    """A cluster with one flow, ``f``."""

    def __init__(
        self,
        compat: Compat = "default",
        scheduling: Scheduling = "manual",
        *,
        collect_garbage: bool = True,
        cache: Any = None,
    ) -> None:
        self.compat = compat
        self.prober = FakeProber()
        self.cluster = InProcessCluster(compat, scheduling, collect_garbage=collect_garbage, namespace="default")
        self.sim = self.cluster.simulator
        self.store = self.cluster.store
        self.cache = cache
        self._scheduling = scheduling
        self._flows: list[Obj] = []
        self._made: list[str] = []
        self._watches: list[Watch] = []
        self._tasks: list[asyncio.Task[None]] = []
        self.cluster.run(self._begin())
        self.equip()

    def equip(self) -> None:
        """Give the controllers the prober (and the cache) of this scene."""
        plane = self.cluster.engine.plane
        assert plane is not None
        plane.flows.prober = self.prober
        plane.flows.cache = self.cache

    async def _begin(self) -> None:
        flows, jobs = await self.store.watch(JOBFLOW), await self.store.watch(JOB)
        self._watches = [flows, jobs]
        works = [self._remember(flows), self._remember_jobs(jobs)]
        if self._scheduling == "manual":
            groups = await self.store.watch(PODGROUP)
            self._watches.append(groups)
            works.append(self._admit(groups))
        self._tasks = [asyncio.create_task(work) for work in works]

    async def _remember(self, watch: Watch) -> None:
        while events := await watch.batch():
            self._flows += [event.object for event in events if event.object["metadata"]["name"] == FLOW]

    async def _remember_jobs(self, watch: Watch) -> None:
        while events := await watch.batch():
            self._made += [event.object["metadata"]["name"] for event in events if event.type == "ADDED"]

    async def _admit(self, watch: Watch) -> None:
        while events := await watch.batch():
            for event in events:
                name = event.object["metadata"]["name"]
                if event.type == "ADDED" and self.store.peek(PODGROUP, name, "default") is not None:
                    await podgroups.set_phase(self.cluster.engine, event.object, "Inqueue", at_once)

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

    # Objects

    def submit(self, obj: Obj) -> None:
        """Create any object."""
        self.cluster.run(self.store.create(obj))
        self.sim.settle()

    def patch(self, kind: Kind, name: str, change: Any, type: Any = "merge") -> None:
        self.cluster.run(self.store.patch(kind, name, "default", change, type=type))
        self.sim.settle()

    def delete(self, kind: Kind, name: str) -> None:
        self.cluster.run(self.store.delete(kind, name, "default"))
        self.sim.settle()

    def templates(self, names: str) -> Self:
        """Templates of these names (``"a b c"``), each with one task t of one pod."""
        for name in names.split():
            self.submit(template(name))
        return self

    def flow(self, *nodes: str | dict[str, Any], templates: bool = True, **spec: Any) -> Self:
        """Submit the flow, with a template for each node that has none yet."""
        entries = [node(each) if isinstance(each, str) else each for each in nodes]
        for entry in entries if templates else ():
            wanted = entry.get("templateRef") or entry["name"]
            if not {"switch", "cache"} & set(entry) and self.store.peek(JOBTEMPLATE, wanted, "default") is None:
                self.submit(template(wanted))
        self.submit(
            {
                "apiVersion": JOBFLOW.api_version,
                "kind": JOBFLOW.kind,
                "metadata": {"name": FLOW, "namespace": "default"},
                "spec": {"flows": entries, **spec},
            }
        )
        return self

    def edit(self, *nodes: str | dict[str, Any]) -> None:
        """Give the flow other nodes."""
        entries = [node(each) if isinstance(each, str) else each for each in nodes]
        self.patch(JOBFLOW, FLOW, {"spec": {"flows": entries}})

    def add_node(self, cpu: str = "100") -> None:
        """A machine for the scheduler."""
        self.submit({"apiVersion": "v1", "kind": "Node", "metadata": {"name": f"n{cpu}"}})
        found = self.store.peek(NODE, f"n{cpu}")
        status = {"allocatable": {"cpu": cpu, "memory": "100Gi", "pods": "100"}}
        self.cluster.run(self.store.update_status({**(found or {}), "status": status}))
        self.sim.settle()

    # Events of jobs

    def pods_of(self, job: str) -> list[Obj]:
        found = self.store.peek_all(POD, "default")
        return [pod for pod in found if pod["metadata"]["labels"].get("volcano.sh/job-name") == f"{FLOW}-{job}"]

    def _each(self, jobs: str, verb: Callable[..., Any], **options: Any) -> None:
        for job in jobs.split():
            pods = self.pods_of(job)
            assert pods, f"job {job} has no pods: jobs are {self.jobs}"
            for pod in pods:
                verb(pod["metadata"]["name"], **options)

    def run(self, jobs: str) -> None:
        """R: all pods of these jobs (by node, ``"a b"``) run."""
        self._each(jobs, self.sim.run)

    def complete(self, jobs: str) -> None:
        """C: all pods succeed."""
        self._each(jobs, self.sim.succeed)

    def finish(self, jobs: str) -> None:
        """R, then C."""
        for job in jobs.split():
            self.run(job)
            self.complete(job)

    def fail(self, jobs: str, exit_code: int = 1) -> None:
        """F: all pods fail."""
        self._each(jobs, self.sim.fail, exit_code=exit_code)

    def command(self, job: str, action: str) -> None:
        """A bus Command for a job."""
        found = self.job(job)
        self.submit(bus_command(found, action))

    def terminate(self, job: str) -> None:
        """T: somebody terminates the job."""
        self.command(job, "TerminateJob")
        self.sim.reap()

    def say(self, job: str, message: str) -> None:
        """R, then the first container leaves this termination message and succeeds."""
        self.run(job)
        for pod in self.pods_of(job):
            now = "2026-01-01T00:00:00Z"
            ended = {"exitCode": 0, "reason": "Completed", "startedAt": now, "finishedAt": now, "message": message}
            containers = [
                {**entry, "ready": False, "state": {"terminated": ended}}
                for entry in pod["status"]["containerStatuses"]
            ]
            status = {**pod["status"], "phase": "Succeeded", "containerStatuses": containers}
            self.cluster.run(self.store.update_status({**pod, "status": status}))
        self.sim.settle()

    def address(self, job: str, *addresses: str) -> None:
        """The pods of a running job get these addresses."""
        for pod, address in zip(self.pods_of(job), addresses, strict=True):
            self.cluster.run(self.store.update_status({**pod, "status": {**pod["status"], "podIP": address}}))
        self.sim.settle()

    def wait(self, seconds: float) -> None:
        self.sim.advance(seconds)

    def batch(self) -> Any:
        return self.sim.batch()

    def restart(self) -> None:
        """The controllers start again from the store."""
        self.sim.restart_controllers()
        self.equip()
        self.sim.settle()

    def ask(self, action: str) -> None:
        """A bus Command for the flow."""
        flow = self.object
        target = {"apiVersion": flow["apiVersion"], "kind": flow["kind"], "name": FLOW, "uid": flow["metadata"]["uid"]}
        self.submit(
            {
                "apiVersion": "bus.volcano.sh/v1alpha1",
                "kind": "Command",
                "metadata": {"generateName": "ask-", "namespace": "default"},
                "action": action,
                "target": target,
            }
        )

    # What is seen

    @property
    def object(self) -> Obj:
        found = self.store.peek(JOBFLOW, FLOW, "default")
        assert found is not None, "there is no flow"
        return found

    @property
    def status(self) -> Mapping[str, Any]:
        return self.object.get("status") or {}

    @property
    def phase(self) -> str:
        return str((self.status.get("state") or {}).get("phase") or "")

    @property
    def reason(self) -> str:
        return str((self.status.get("state") or {}).get("reason") or "")

    @property
    def phases(self) -> list[str]:
        """All phases so far, in order, without repeats."""
        seen = (((flow.get("status") or {}).get("state") or {}).get("phase") or "" for flow in self._flows)
        return [phase for phase, _ in groupby(seen) if phase]

    @property
    def jobs(self) -> str:
        """The flow's jobs that are there, by node: ``"a b"``."""
        names = [job["metadata"]["name"] for job in self.store.peek_all(JOB, "default")]
        return " ".join(name.removeprefix(f"{FLOW}-") for name in names)

    @property
    def made(self) -> str:
        """All jobs ever created, in order: ``"a b b-r1"``."""
        return " ".join(name.removeprefix(f"{FLOW}-") for name in self._made)

    def job(self, name: str) -> Obj:
        found = self.store.peek(JOB, f"{FLOW}-{name}", "default")
        assert found is not None, f"there is no job {name}; there are {self.jobs}"
        return found

    def listed(self, name: str) -> str:
        """One of the lists of the status, by node."""
        return " ".join(job.removeprefix(f"{FLOW}-") for job in self.status.get(name) or ())

    def entry(self, name: str) -> Mapping[str, Any]:
        """The node's entry in ``status.nodes``."""
        return (self.status.get("nodes") or {})[name]

    @property
    def nodes(self) -> dict[str, str]:
        """Phase of every node."""
        return {name: entry["phase"] for name, entry in (self.status.get("nodes") or {}).items()}

    def why(self, name: str) -> str:
        """The node's reason."""
        return str(self.entry(name).get("reason") or "")

    def events(self, reason: str | None = None) -> list[str]:
        """Messages of the flow's Events (of one reason)."""
        found = [event for event in self.store.peek_all(EVENT) if event["involvedObject"]["kind"] == JOBFLOW.kind]
        found.sort(key=lambda event: int(event["metadata"]["resourceVersion"]))
        return [event["message"] for event in found if reason in {None, event["reason"]}]

    def env(self, job: str) -> dict[str, str]:
        """What the job's first container has in its environment."""
        container = self.job(job)["spec"]["tasks"][0]["template"]["spec"]["containers"][0]
        return {entry["name"]: entry.get("value", "") for entry in container.get("env") or ()}
