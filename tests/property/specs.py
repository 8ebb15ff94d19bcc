"""Random Jobs that admission accepts."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from vcnb.resources.kinds import JOB

JOB_NAME = "j"
NAMESPACE = "default"

_EVENTS = ("PodFailed", "PodEvicted", "PodPending", "TaskCompleted", "TaskFailed", "Unknown", "*")
_JOB_ACTIONS = ("AbortJob", "RestartJob", "TerminateJob", "CompleteJob")
_TARGETED = ("RestartTask", "RestartPod", "RestartPartition")
_TIMEOUTS = ("10s", "1m", "5m")
_TEMPLATE = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "busybox"}]}}


@st.composite
def policies(draw: st.DrawFn, *, timeouts: bool = True, most: int = 3) -> list[dict[str, Any]]:
    """A list of policies without an event or exit code twice; ``*`` stands alone among events."""
    found: list[dict[str, Any]] = []
    events = draw(st.lists(st.sampled_from(_EVENTS), unique=True, max_size=most))
    if "*" in events:
        events = ["*"]
    for event in events:
        policy: dict[str, Any] = {"event": event, "action": draw(_actions())}
        pending = event == "PodPending"
        if timeouts and (pending or draw(st.integers(0, 3)) == 0):
            policy["timeout"] = draw(st.sampled_from(_TIMEOUTS))
        found.append(policy)
    for code in draw(st.lists(st.sampled_from((3, 137)), unique=True, max_size=1)):
        found.append({"exitCode": code, "action": draw(_actions())})
    return draw(st.permutations(found))


def _actions() -> st.SearchStrategy[str]:
    return st.one_of(st.sampled_from(_JOB_ACTIONS), st.sampled_from(_TARGETED))


@st.composite
def tasks(draw: st.DrawFn, name: str, earlier: list[str], *, timeouts: bool) -> dict[str, Any]:
    """One task; it may depend on the earlier ones, and be partitioned."""
    task: dict[str, Any] = {"name": name, "maxRetry": draw(st.integers(1, 3)), "template": _TEMPLATE}
    if draw(st.integers(0, 4)) == 0:
        size, total = draw(st.integers(1, 2)), draw(st.integers(1, 2))
        task["replicas"] = size * total
        task["partitionPolicy"] = {"totalPartitions": total, "partitionSize": size}
        task["minAvailable"] = size * total
    else:
        task["replicas"] = draw(st.integers(1, 3)) if draw(st.integers(0, 9)) else 0
        everything = draw(st.booleans())
        task["minAvailable"] = task["replicas"] if everything else draw(st.integers(0, task["replicas"]))
    if own := draw(policies(timeouts=timeouts, most=2)) if draw(st.booleans()) else []:
        task["policies"] = own
    if earlier and draw(st.integers(0, 2)) == 0:
        names = draw(st.lists(st.sampled_from(earlier), min_size=1, unique=True))
        task["dependsOn"] = {"name": names, "iteration": draw(st.sampled_from(("any", "all")))}
    return task


@st.composite
def jobs(draw: st.DrawFn, *, timeouts: bool = True) -> dict[str, Any]:
    """A Job ``j`` with one to three tasks; small numbers, so that most steps concern most pods."""
    parts: list[dict[str, Any]] = []
    for name in "abc"[: draw(st.integers(1, 3))]:
        parts.append(draw(tasks(name, [part["name"] for part in parts], timeouts=timeouts)))
    total = sum(part["replicas"] for part in parts)
    wanted = sum(part["minAvailable"] for part in parts)
    spec: dict[str, Any] = {
        "schedulerName": "volcano",
        "queue": "default",
        "minAvailable": wanted if draw(st.booleans()) else draw(st.integers(0, total)),
        "maxRetry": draw(st.integers(1, 4)),
        "tasks": parts,
    }
    if total and draw(st.integers(0, 4)) == 0:
        spec["minSuccess"] = draw(st.integers(1, total))
    if found := draw(policies(timeouts=timeouts)):
        spec["policies"] = found
    if plugins := draw(st.sampled_from(({}, {}, {"env": []}, {"env": [], "svc": []}))):
        spec["plugins"] = plugins
    return {
        "apiVersion": JOB.api_version,
        "kind": JOB.kind,
        "metadata": {"name": JOB_NAME, "namespace": NAMESPACE},
        "spec": spec,
    }
