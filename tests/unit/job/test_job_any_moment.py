"""Whatever happens in whatever order: the counters tell the truth, and a restart of the controllers changes nothing.

The recorded traces are played under the default behaviour; what they show differs from upstream, so it is not compared
with the recording, but with what is there, and with a second run in which the controllers are restarted after every step.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest

from golden import observe
from golden.inprocess import NAMESPACE_NAME, InProcessCluster
from golden.replay import Player, Trace, traces
from vcnb.controllers.job import finished_pods
from vcnb.controllers.job.status import COUNTERS
from vcnb.resources import names
from vcnb.resources.kinds import JOB, POD
from vcnb.resources.phases import FINISHED
from vcnb.store.protocol import Obj

TRACES = traces("job-*.json")[::3]


def check(cluster: InProcessCluster, step: str) -> None:
    """Compare the status of every job with its pods."""
    for job in cluster.store.peek_all(JOB, NAMESPACE_NAME):
        uid, status = job["metadata"]["uid"], job.get("status") or {}
        pods = [
            pod
            for pod in cluster.store.peek_all(POD, NAMESPACE_NAME)
            if pod["metadata"]["ownerReferences"][0]["uid"] == uid
        ]
        told = Counter({field: status[field] for field in COUNTERS if status.get(field)})
        seen = count(job, pods)
        if status["state"]["phase"] in FINISHED:
            # The result of a finished job stays when its pods are cleared away.
            seen = Counter({**seen, **{field: max(seen[field], told[field]) for field in ("succeeded", "failed")}})
        assert told == +seen, step
        if status.get("history"):
            assert status["history"][-1]["phase"] == status["state"]["phase"], step
        by_task = Counter[str]()
        for entry in (status.get("taskStatusCount") or {}).values():
            by_task.update({phase.lower(): number for phase, number in entry["phase"].items()})
        assert by_task == told - Counter(terminating=told["terminating"]), step


def count(job: Obj, pods: list[Obj]) -> Counter[str]:
    found = Counter[str]()
    for pod in pods:
        if pod["metadata"].get("deletionTimestamp"):
            found["terminating"] += 1
            continue
        assert names.OUT_OF_SYNC not in pod["metadata"]["annotations"], f"{pod['metadata']['name']} is marked and stays"
        found[pod["status"]["phase"].lower()] += 1
    replicas = {task["name"]: task["replicas"] for task in job["spec"]["tasks"]}
    found["succeeded"] += sum(index < replicas[task] for task, index in finished_pods.noted(job))
    return found


def play(trace: Trace, *, restarting: bool) -> list[str]:
    """What is seen after each step."""
    seen = []
    with InProcessCluster(compat="default") as cluster:
        player = Player(cluster)
        for number, step in enumerate(trace["steps"]):
            player.play(step["do"])
            check(cluster, f"{trace['name']}, step {number}: {step['do'][0]}")
            if restarting:
                cluster.simulator.restart_controllers()
                check(cluster, f"{trace['name']}, step {number}: restarted after {step['do'][0]}")
            seen.append(json.dumps(observe.see(cluster.store, NAMESPACE_NAME), sort_keys=True))
    return seen


@pytest.mark.parametrize("trace", TRACES, ids=[trace["name"] for trace in TRACES])
def test_a_restart_at_any_moment_changes_nothing(trace: Any):
    assert play(trace, restarting=True) == play(trace, restarting=False)
