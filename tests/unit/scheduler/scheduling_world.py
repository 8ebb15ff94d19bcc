"""A cluster of values for tests of the pure scheduler: jobs are submitted, passes run and are applied, pods live and die.

With ``incremental`` the passes run on one ClusterState that is told every change, as in a real cluster; without it each
pass sees a fresh snapshot.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from vcnb.local.scheduler import Conf, Outcome, Snapshot, schedule
from vcnb.local.scheduler.amounts import Amounts, compared, parse_amounts
from vcnb.local.scheduler.schedule import run_pass
from vcnb.local.scheduler.state import ClusterState
from vcnb.local.scheduler.values import Node, Pod, PodGroup, PriorityClass, Queue, demand

NS = "ns"


def node(name: str = "n1", cpu: Any = 4, memory: str = "8Gi", pods: int = 110, **more: Any) -> Node:
    extra = more.pop("extra", {})
    return Node(name, parse_amounts({"cpu": cpu, "memory": memory, **extra}), pods, **more)


@dataclass(frozen=True)
class Task:
    """Pods of one role: so many, each with these requests; further fields go into Pod and Demand."""

    count: int
    cpu: Any = 1
    name: str = "w"
    minimum: int | None = None
    requests: Mapping[str, Any] | None = None
    selector: Mapping[str, str] | None = None
    tolerations: tuple[Mapping[str, Any], ...] = ()
    pod: Mapping[str, Any] = field(default_factory=dict)

    @property
    def request(self) -> Amounts:
        return parse_amounts({"cpu": self.cpu} if self.requests is None else self.requests)


@dataclass
class Job:
    name: str
    tasks: Sequence[Task]
    minimum: int
    delayed: bool
    made: bool = False


class World:
    """See the module. Time goes on by a second with each thing that happens."""

    def __init__(
        self, *nodes: Node, conf: Conf | None = None, queues: Sequence[Queue] = (), incremental: bool = False
    ) -> None:
        self.conf = conf or Conf()
        self.now = 1000.0
        self.nodes = {found.name: found for found in (nodes or (node(),))}
        self.queues = {queue.name: queue for queue in (Queue("default"), *queues)}
        self.classes: dict[str, PriorityClass] = {}
        self.groups: dict[str, PodGroup] = {}
        self.pods: dict[str, Pod] = {}
        self.jobs: dict[str, Job] = {}
        self.events: list[tuple[str, str, str]] = []
        self.evicted: list[str] = []
        self.passes = 0
        self._serial = 0
        self.state = ClusterState() if incremental else None
        if self.state is not None:
            for found in self.nodes.values():
                self.state.put_node(found)
            for queue in self.queues.values():
                self.state.put_queue(queue)

    # -- what there is

    def snapshot(self) -> Snapshot:
        return Snapshot(
            self.now,
            tuple(self.nodes.values()),
            tuple(self.pods.values()),
            tuple(self.groups.values()),
            tuple(self.queues.values()),
            tuple(self.classes.values()),
        )

    def phase(self, job: str) -> str:
        return self.groups[f"{NS}/{job}"].status.phase

    def phases(self) -> dict[str, str]:
        return {group.name: group.status.phase for group in self.groups.values()}

    def condition(self, job: str, kind: str) -> str | None:
        """The message of a condition."""
        conditions = self.groups[f"{NS}/{job}"].status.conditions
        return next((found.message for found in conditions if found.type == kind), None)

    def newest(self, job: str) -> str:
        conditions = self.groups[f"{NS}/{job}"].status.conditions
        return max(conditions, key=lambda found: found.time).type if conditions else ""

    def bound(self, job: str = "") -> list[str]:
        return sorted(pod.name for pod in self.pods.values() if pod.node and (not job or pod.group == f"{NS}/{job}"))

    def waiting(self, job: str = "") -> dict[str, tuple[str, str] | None]:
        return {
            pod.name: pod.condition
            for pod in self.pods.values()
            if not pod.node and (not job or pod.group == f"{NS}/{job}")
        }

    # -- what people do

    def submit(
        self,
        name: str,
        *tasks: Task,
        minimum: int | None = None,
        queue: str = "default",
        priority: str = "",
        delayed: bool = True,
        min_resources: bool = True,
        settle: bool = True,
        **more: Any,
    ) -> World:
        """A job; ``delayed``: its pods are made once its group is admitted, as those of a VCJob are."""
        self._tick()
        total = sum(task.count for task in tasks)
        minimum = total if minimum is None else minimum
        self.jobs[name] = Job(name, tasks, minimum, delayed)
        group = PodGroup(
            NS,
            name,
            uid=self._uid(name),
            queue=queue,
            min_member=minimum,
            min_task_member={t.name: t.count if t.minimum is None else t.minimum for t in tasks},
            min_resources=_minimum(tasks, minimum) if min_resources else None,
            priority_class=priority,
            created=self.now,
            **more,
        )
        self._put_group(group)
        if not delayed:
            self._make(self.jobs[name])
        return self.settle() if settle else self

    def _make(self, job: Job) -> None:
        job.made = True
        for task in job.tasks:
            for number in range(task.count):
                self.make_pod(job.name, task, number)

    def make_pod(self, job: str, task: Task, number: int) -> None:
        wanted = demand(task.name, task.request, task.selector, None, task.tolerations)
        name = f"{job}-{task.name}-{number}"
        self._put_pod(
            Pod(NS, name, self._uid(name), wanted, f"{NS}/{job}", ordinal=number, created=self.now, **task.pod)
        )

    def priority_class(self, name: str, value: int, **more: Any) -> None:
        self.classes[name] = PriorityClass(name, value, **more)
        if self.state is not None:
            self.state.put_priority_class(self.classes[name])

    def put_queue(self, queue: Queue) -> World:
        self.queues[queue.name] = queue
        if self.state is not None:
            self.state.put_queue(queue)
        return self.settle()

    def put_node(self, found: Node) -> World:
        self.nodes[found.name] = found
        if self.state is not None:
            self.state.put_node(found)
        return self.settle()

    def remove_job(self, name: str) -> World:
        for pod in [pod for pod in self.pods.values() if pod.group == f"{NS}/{name}"]:
            self._drop_pod(pod)
        del self.groups[f"{NS}/{name}"]
        del self.jobs[name]
        if self.state is not None:
            self.state.drop_group(f"{NS}/{name}")
        return self.settle()

    # -- what becomes of pods

    def run(self, *names: str) -> World:
        return self._become("Running", names or self.bound(), {"Bound"})

    def succeed(self, *names: str) -> World:
        return self._become("Succeeded", names or self.bound(), {"Bound", "Running"})

    def fail(self, *names: str) -> World:
        return self._become("Failed", names, {"Bound", "Running"})

    def delete(self, *names: str) -> World:
        """Marked: it stays until it is reaped."""
        return self._become("Releasing", names, {"Bound", "Running"})

    def reap(self, *, come_back: bool = True) -> World:
        for pod in [pod for pod in self.pods.values() if pod.status == "Releasing"]:
            self._drop_pod(pod)
            if come_back and pod.group.partition("/")[2] in self.jobs:
                self._put_pod(pod._replace(uid=self._uid(pod.name), status="Pending", node="", condition=None))
        return self.settle()

    def ungate(self, job: str) -> World:
        for pod in list(self.pods.values()):
            if pod.group == f"{NS}/{job}":
                self._put_pod(pod._replace(gated=False))
        return self.settle()

    def _become(self, status: str, names: Sequence[str], of: set[str]) -> World:
        self._tick()
        for name in names:
            pod = self.pods[f"{NS}/{name}"]
            if pod.status in of:
                self._put_pod(pod._replace(status=status))
        return self.settle()

    # -- passes

    def settle(self) -> World:
        """Passes until nothing changes any more."""
        for _ in range(200):
            if not self.one_pass():
                return self
        raise AssertionError("the scheduler does not come to rest")

    def one_pass(self) -> bool:
        self.passes += 1
        self._tick(0.001)
        if self.state is not None:
            if not (self.state.changed or self.state.freed):
                return False
            outcome = run_pass(self.state, self.conf, self.now)
        else:
            outcome = schedule(self.snapshot(), self.conf)
        return self._apply(outcome)

    def _apply(self, outcome: Outcome) -> bool:
        for bind in outcome.binds:
            pod = self.pods[bind.pod.key]
            assert pod.status == "Pending", f"{pod.name} is bound twice"
            self._put_pod(pod._replace(status="Bound", node=bind.node, condition=None))
        for eviction in outcome.evictions:
            self.evicted.append(f"{eviction.pod.name} {eviction.action}")
            self._put_pod(self.pods[eviction.pod.key]._replace(status="Releasing"))
        for change in outcome.groups:
            self._put_group(replace(self.groups[change.group.key], status=change.status))
        for reason in outcome.pods:
            pod = self.pods[reason.pod.key]
            self._put_pod(pod._replace(condition=(reason.reason, reason.message)))
        for notice in outcome.notices:
            event = (notice.group.name, notice.type, notice.message)
            if event not in self.events:
                self.events.append(event)
            if self.state is not None:
                self.state.told(notice)
        for job in self.jobs.values():
            if job.delayed and not job.made and self.phase(job.name) not in {"", "Pending"}:
                self._make(job)
        return bool(outcome.binds or outcome.evictions or outcome.groups or outcome.pods)

    # -- values

    def _put_group(self, group: PodGroup) -> None:
        self.groups[group.key] = group
        if self.state is not None:
            self.state.put_group(group)

    def _put_pod(self, pod: Pod) -> None:
        self.pods[pod.key] = pod
        if self.state is not None:
            self.state.put_pod(pod)

    def _drop_pod(self, pod: Pod) -> None:
        del self.pods[pod.key]
        if self.state is not None:
            self.state.drop_pod(pod.key)

    def _uid(self, name: str) -> str:
        self._serial += 1
        return f"{name}-{self._serial:06}"

    def _tick(self, seconds: float = 1.0) -> None:
        self.now += seconds


def _minimum(tasks: Sequence[Task], minimum: int) -> Amounts:
    """As the job controller computes minResources: the first pods by task, or minima first."""
    minima = [task.count if task.minimum is None else task.minimum for task in tasks]
    order = [task for task in tasks for _ in range(task.count)]
    if minimum >= sum(minima):
        first = [task for task, least in zip(tasks, minima, strict=True) for _ in range(least)]
        rest = [task for task, least in zip(tasks, minima, strict=True) for _ in range(task.count - least)]
        order = first + rest
    total: Amounts = {}
    for task in order[:minimum]:
        for name, amount in task.request.items():
            total[name] = total.get(name, 0) + amount
    return compared(total)
