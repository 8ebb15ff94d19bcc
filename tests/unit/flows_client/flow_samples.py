"""Flows for tests: templates of one pod each, and a simulated cluster whose pods succeed or fail as told."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import vcnb

FLOW_API = "flow.volcano.sh/v1alpha1"


def template(name: str, **spec: Any) -> dict[str, Any]:
    """A JobTemplate with one pod."""
    container = {"name": "c", "image": "busybox", "command": ["true"]}
    pod = {"restartPolicy": "Never", "containers": [container]}
    task = {"name": "w", "replicas": 1, "template": {"spec": pod}}
    return {
        "apiVersion": FLOW_API,
        "kind": "JobTemplate",
        "metadata": {"name": name},
        "spec": {"minAvailable": 1, "tasks": [task], **spec},
    }


def jobflow(name: str, *nodes: str | Mapping[str, Any], **spec: Any) -> dict[str, Any]:
    """A JobFlow; ``"b<a,c"`` is node b that waits for a and c."""
    entries = [_node(node) if isinstance(node, str) else dict(node) for node in nodes]
    return {"apiVersion": FLOW_API, "kind": "JobFlow", "metadata": {"name": name}, "spec": {"flows": entries, **spec}}


def _node(text: str) -> dict[str, Any]:
    name, _, targets = text.partition("<")
    return {"name": name, **({"dependsOn": {"targets": targets.split(",")}} if targets else {})}


def submit(cluster: vcnb.Cluster, flow: Mapping[str, Any]) -> vcnb.FlowHandle:
    """The flow with a template for every node that needs one."""
    names = [node.get("templateRef", node["name"]) for node in flow["spec"]["flows"] if "switch" not in node]
    handles = cluster.submit([*(template(name) for name in dict.fromkeys(names)), flow])
    return handles[-1]


def end(cluster: vcnb.Cluster, job: str, *, exit_code: int = 0) -> None:
    """Run a job's pods and let them succeed, or fail with an exit code."""
    for pod in cluster.jobs[job].pods:
        cluster.simulator.run(pod)
        if exit_code:
            cluster.simulator.fail(pod, exit_code=exit_code)
        else:
            cluster.simulator.succeed(pod)


def task(command: str = "true", name: str = "w", **options: Any) -> vcnb.Task:
    return vcnb.Task(name, image="busybox", command=["sh", "-c", command], **options)
