"""The scheduler, the queue controller and the job controller together do what was recorded of the real ones.

The calls of one verb fell within one period of the recorded scheduler, so a verb is played as one batch. ``see`` has to
be equal word for word; of the events, each kind, type and reason has to occur, but for texts of passes in between.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from golden import compare, observe
from golden.inprocess import NAMESPACE_NAME, InProcessCluster
from golden.replay import Player, Trace, traces
from vcnb.clock import parse_time
from vcnb.local.scheduler import Conf, Scheduler
from vcnb.resources import kinds
from vcnb.store.memory import MemoryStore
from vcnb.store.protocol import Obj
from vcnb.testing import pod_status

TRACES = traces("scheduling.json")
CONFS = {"default": Conf.strict(), "preempt": Conf.preempting(strict=True)}

PAUSE = 2.0
"""Seconds between two verbs, as some passed in the recordings: creation times differ and failed work is tried again."""

ENDS_EARLY = {"small-overtakes", "reclaim", "no-nodes-room-then"}
"""The recording went on after the steps; its events cover all of it."""


class GangCluster(InProcessCluster):
    """A cluster with the nodes and objects of a trace, and the gang scheduler."""

    def __init__(self, trace: Trace) -> None:
        super().__init__(compat="strict", scheduling="manual")
        self.run(self._furnish(trace))
        self.simulator.settle()

    async def _furnish(self, trace: Trace) -> None:
        for node in trace["nodes"]:
            made = await self.store.create(
                {
                    "apiVersion": "v1",
                    "kind": "Node",
                    "metadata": {"name": node["name"], "labels": node["labels"]},
                    "spec": {"taints": node["taints"]} if node["taints"] else {},
                }
            )
            await self.store.update_status({**made, "status": {"allocatable": node["allocatable"]}})
        for obj in trace["objects"]:
            await self.store.create(obj)
        plane = self.engine.plane
        assert plane is not None
        await plane.add(Scheduler(plane.context, conf=CONFS[trace["conf"]]))


class GangPlayer(Player):
    """Verbs as the recording of the scheduler means them: nothing is bound by a verb."""

    def play_together(self, do: Sequence[Any]) -> None:
        verb, *rest = do
        with self._sim.batch():
            getattr(self, f"_{verb}")(*rest)
        self._sim.settle()
        self._sim.advance(PAUSE)

    def _names(self, which: Any, phases: set[str]) -> list[str]:
        names = super()._names(which, phases)
        pods = {name: self._store.peek(kinds.POD, name, NAMESPACE_NAME) for name in names}
        return [name for name, pod in pods.items() if pod is not None and (which != "all" or pod_status.is_bound(pod))]

    def _queue_command(self, queue: str, action: str) -> None:
        command = {
            "apiVersion": kinds.COMMAND.api_version,
            "kind": kinds.COMMAND.kind,
            "metadata": {"generateName": f"{queue}-{action.lower()}-", "namespace": "default"},
            "action": action,
            "target": {"apiVersion": kinds.QUEUE.api_version, "kind": kinds.QUEUE.kind, "name": queue},
        }
        self._cluster.run(self._store.create(command))


def see(store: MemoryStore, expected: Mapping[str, Any]) -> dict[str, Any]:
    jobs = {job["metadata"]["uid"]: job["metadata"]["name"] for job in store.peek_all(kinds.JOB, NAMESPACE_NAME)}
    return {
        "jobs": {observe._name(job): _job(job) for job in store.peek_all(kinds.JOB, NAMESPACE_NAME)},
        "pods": {observe._name(pod): _pod(pod) for pod in store.peek_all(kinds.POD, NAMESPACE_NAME)},
        "podgroups": {
            jobs[group["metadata"]["ownerReferences"][0]["uid"]]: _group(group)
            for group in store.peek_all(kinds.PODGROUP, NAMESPACE_NAME)
        },
        "queues": {
            observe._name(queue): {"state": queue["status"]["state"]}
            for queue in store.peek_all(kinds.QUEUE)
            if observe._name(queue) not in {"default", "root"}
        },
    }


def _job(job: Obj) -> dict[str, Any]:
    status = job.get("status") or {}
    shown = {"phase": (status.get("state") or {}).get("phase") or ""}
    return shown | {field: status[field] for field in observe.COUNTERS if status.get(field)}


def _pod(pod: Obj) -> dict[str, Any]:
    conditions = {found["type"]: found for found in (pod.get("status") or {}).get("conditions") or ()}
    scheduled, disruption = conditions.get("PodScheduled"), conditions.get("DisruptionTarget")
    shown: dict[str, Any] = {
        "phase": pod["status"]["phase"],
        "node": pod["spec"].get("nodeName"),
        "terminating": bool(pod["metadata"].get("deletionTimestamp")),
        "disruption": disruption and disruption["reason"],
    }
    if scheduled is not None and scheduled["status"] == "False":
        message = scheduled["message"].replace(NAMESPACE_NAME, "<namespace>")
        shown["unscheduled"] = [scheduled["reason"], message]
    return {field: value for field, value in shown.items() if value}


def _group(group: Obj) -> dict[str, Any]:
    status = group.get("status") or {}
    conditions = sorted(status.get("conditions") or (), key=lambda found: parse_time(found["lastTransitionTime"]))
    shown = {
        "phase": status.get("phase"),
        "conditions": {
            found["type"]: [found["reason"], found.get("message", "").replace(NAMESPACE_NAME, "<namespace>")]
            for found in conditions
        },
        "order": [found["type"] for found in conditions],
        "minResources": group["spec"].get("minResources") or {},
    }
    return shown | {field: status[field] for field in ("running", "succeeded", "failed") if status.get(field)}


def _expected(step: Mapping[str, Any]) -> dict[str, Any]:
    wanted = {section: dict(step["see"].get(section) or {}) for section in ("jobs", "pods", "podgroups", "queues")}
    for name, group in wanted["podgroups"].items():
        wanted["podgroups"][name] = {**group, "order": list(group["conditions"])}
    return wanted


def differences(step: Mapping[str, Any], store: MemoryStore) -> list[compare.Difference]:
    wanted = _expected(step)
    found = compare._compare("", wanted, see(store, wanted))
    return [
        difference for difference in found if difference.expected != "<any>" and "<any>" not in str(difference.expected)
    ]


@pytest.mark.parametrize("trace", TRACES, ids=[trace["name"] for trace in TRACES])
def test_scheduling_trace(trace: Trace):
    with GangCluster(trace) as cluster:
        player = GangPlayer(cluster)
        for number, step in enumerate(trace["steps"]):
            player.play_together(step["do"])
            found = differences(step, cluster.store) if "see" in step else []
            lines = "\n".join(f"    {difference}" for difference in found)
            assert not found, f"\n{trace['name']}, step {number}: {str(step['do'])[:200]}\n{lines}"

        happened = {
            (event["involvedObject"]["kind"], event["type"], event["reason"])
            for event in cluster.store.peek_all(kinds.EVENT)
        }
    if trace["name"] not in ENDS_EARLY:
        missing = {
            (kind, severity, reason) for kind, severity, reason, message in trace["events"] if "Binding" not in message
        } - happened
        assert not missing
