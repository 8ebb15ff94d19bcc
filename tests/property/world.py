"""One job on a simulated cluster, the verbs of a random history, and everything that was ever stored about the job."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Self

from golden.replay import bus_command
from property.flaky import MOST_CALLS, FlakyCluster
from property.specs import JOB_NAME, NAMESPACE
from vcnb.resources.kinds import JOB, POD, PODGROUP
from vcnb.store.protocol import Obj, Watch
from vcnb.testing import pod_status, podgroups
from vcnb.testing.pods import at_once

FAR = 1100.0
"""Seconds after which every back-off and every timeout of a policy is over."""


class World:
    """The cluster and its one job. A verb that makes no sense at the moment does nothing."""

    def __init__(self) -> None:
        self.cluster = FlakyCluster("default", "manual", collect_garbage=True, namespace=NAMESPACE)
        self.sim = self.cluster.simulator
        self.store = self.cluster.store
        self.flaky = self.cluster.flaky
        self.admits = True
        self.stored: list[Obj] = []
        """Every version of the job that was stored, of all its incarnations."""
        self._watches: list[Watch] = []
        self._tasks: list[asyncio.Task[None]] = []
        self.cluster.run(self._begin())

    async def _begin(self) -> None:
        jobs, groups = await self.store.watch(JOB), await self.store.watch(PODGROUP)
        self._watches = [jobs, groups]
        self._tasks = [asyncio.create_task(self._remember(jobs)), asyncio.create_task(self._schedule(groups))]

    async def _remember(self, watch: Watch) -> None:
        while events := await watch.batch():
            self.stored += [event.object for event in events if event.type in {"ADDED", "MODIFIED"}]

    async def _schedule(self, watch: Watch) -> None:
        """A scheduler that admits every PodGroup as soon as it comes, while ``admits``."""
        while events := await watch.batch():
            for event in events:
                meta = event.object["metadata"]
                there = self.store.peek(PODGROUP, meta["name"], NAMESPACE) is not None
                if self.admits and event.type == "ADDED" and podgroups.is_pending(event.object) and there:
                    await podgroups.set_phase(self.cluster.engine, event.object, "Inqueue", at_once)

    def close(self) -> None:
        self.flaky.live()
        self.cluster.run(self._end())
        self.cluster.__exit__()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    async def _end(self) -> None:
        for watch in self._watches:
            await watch.close()
        for work in self._tasks:
            work.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    # What is there

    @property
    def job(self) -> Obj | None:
        return self.store.peek(JOB, JOB_NAME, NAMESPACE)

    @property
    def pods(self) -> list[Obj]:
        """All pods by name, those of earlier jobs of the name too."""
        return self.store.peek_all(POD, NAMESPACE)

    @property
    def podgroup(self) -> Obj | None:
        """The PodGroup of the present job."""
        job = self.job
        return None if job is None else self.store.peek(PODGROUP, f"{JOB_NAME}-{job['metadata']['uid']}", NAMESPACE)

    @property
    def running(self) -> bool:
        """Whether the controllers run."""
        return self.cluster.engine.plane is not None

    def named(self, pick: int, fits: Callable[[Obj], bool]) -> str | None:
        """One of the pods that fit, by number; None when none does."""
        names = [pod["metadata"]["name"] for pod in self.pods if fits(pod)]
        return names[pick % len(names)] if names else None

    # Verbs

    def submit(self, job: Obj) -> None:
        if self.job is None:
            self.cluster.run(self.store.create(job))
            self.sim.settle()

    def command(self, action: str) -> None:
        if (job := self.job) is not None:
            self.cluster.run(self.store.create(bus_command(job, action)))
            self.sim.settle()

    def delete_job(self) -> None:
        if self.job is not None:
            self.cluster.run(self.store.delete(JOB, JOB_NAME, NAMESPACE))
            self.sim.settle()

    def scale(self, task: int, replicas: int, lower: int) -> None:
        """New replicas of one task; its minAvailable and the job's follow, as the admission rules want."""
        job = self.job
        if job is None:
            return
        parts = [dict(part) for part in job["spec"]["tasks"]]
        part = parts[task % len(parts)]
        if "partitionPolicy" in part:
            return
        part["replicas"], part["minAvailable"] = replicas, max(0, replicas - lower)
        total = sum(each["replicas"] for each in parts)
        spec = {"tasks": parts, "minAvailable": min(job["spec"]["minAvailable"], total)}
        self.cluster.run(self.store.patch(JOB, JOB_NAME, NAMESPACE, {"spec": spec}))
        self.sim.settle()

    def podgroup_becomes(self, phase: str) -> None:
        if self.podgroup is not None:
            self.sim.podgroup(JOB_NAME, phase, namespace=NAMESPACE)

    def delete_podgroup(self) -> None:
        if (group := self.podgroup) is not None:
            self.cluster.run(self.store.delete(PODGROUP, group["metadata"]["name"], NAMESPACE))
            self.sim.settle()

    def report(self, verb: str, pick: int, option: int = 1) -> None:
        """What a kubelet, or somebody who deletes pods, does to one pod."""
        fits, act = _VERBS[verb]
        if (name := self.named(pick, fits)) is not None:
            act(self, name, option)

    def waits(self, verb: str, pick: int) -> bool:
        """Whether the pod that a report would be about has not run yet."""
        name = self.named(pick, _VERBS[verb][0])
        return any(pod["metadata"]["name"] == name and _waits(pod) for pod in self.pods)

    def together(self, reports: Sequence[tuple[str, int]]) -> None:
        """Reports about several pods that reach the controllers at once."""
        touched: set[str] = set()
        with self.sim.batch():
            for verb, pick in reports:
                fits, act = _VERBS[verb]
                name = self.named(pick, lambda pod, fits=fits: fits(pod) and pod["metadata"]["name"] not in touched)
                if name is not None:
                    touched.add(name)
                    act(self, name, 1)

    def run_all(self) -> None:
        while (name := self.named(0, _waits)) is not None:
            self.sim.run(name)

    def preempt(self, name: str) -> None:
        """The scheduler takes the pod away for others: it says so in a condition, and deletes it."""
        condition = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}
        patch = {"status": {"conditions": [condition]}}
        self.cluster.run(self.store.patch(POD, name, NAMESPACE, patch, subresource="status"))
        self.sim.delete(name)

    def reap(self) -> None:
        self.sim.reap(namespace=NAMESPACE)

    def wait(self, seconds: float) -> None:
        self.flaky.most += MOST_CALLS * int(seconds / 10)
        self.sim.advance(seconds)

    # Trouble

    def crash(self) -> None:
        """The controllers are gone without a word, and come again from the store."""
        self.flaky.die_after(0)
        self.sim.stop_controllers()
        self.flaky.live()
        self.sim.start_controllers()

    def recover(self) -> None:
        """Faults end, controllers run, PodGroups are admitted, and all back-offs are over."""
        self.flaky.live()
        self.admits = True
        if not self.running:
            self.sim.start_controllers()
        group = self.podgroup
        if group is not None and podgroups.is_pending(group):
            self.podgroup_becomes("Inqueue")
        self.wait(FAR)

    def finish(self) -> None:
        """Recover, and let what is terminating go until nothing is."""
        self.recover()
        for _ in range(60):
            if not any(pod_status.is_terminating(pod) for pod in self.pods):
                return
            self.reap()
            self.recover()
        raise AssertionError("pods keep being replaced although nobody touches them")

    def check_calls(self) -> None:
        """The verb before came to rest. Counts anew."""
        calls, most = self.flaky.calls, self.flaky.most
        self.flaky.calls, self.flaky.most = 0, MOST_CALLS
        assert calls <= most, f"{calls} writes, and no end"


def _waits(pod: Obj) -> bool:
    return pod_status.phase_of(pod) == "Pending" and not pod_status.is_terminating(pod)


def _unfinished(pod: Obj) -> bool:
    return not pod_status.is_final(pod)


def _runs(pod: Obj) -> bool:
    return pod_status.phase_of(pod) == "Running"


def _stays(pod: Obj) -> bool:
    return not pod_status.is_terminating(pod)


_EXIT_CODES = (1, 3, 137)

_VERBS: dict[str, tuple[Callable[[Obj], bool], Callable[[World, str, int], None]]] = {
    "run": (_waits, lambda world, name, option: world.sim.run(name, ready=option > 0)),
    "ready": (_runs, lambda world, name, option: world.sim.ready(name, option > 0)),
    "pending": (_unfinished, lambda world, name, _: world.sim.pending(name)),
    "succeed": (_unfinished, lambda world, name, _: world.sim.succeed(name)),
    "fail": (_unfinished, lambda world, name, option: world.sim.fail(name, _EXIT_CODES[option % 3])),
    "restart": (_runs, lambda world, name, option: world.sim.restart_container(name, option)),
    "delete": (_stays, lambda world, name, _: world.sim.delete(name)),
    "evict": (lambda _: True, lambda world, name, _: world.sim.evict(name)),
    "preempt": (lambda pod: _runs(pod) and _stays(pod), lambda world, name, _: world.preempt(name)),
}

REPORTS = tuple(_VERBS)
TOGETHER = tuple(verb for verb in REPORTS if verb != "preempt")
