"""Plugin ``tensorflow``: the variable ``TF_CONFIG`` of TensorFlow's distribution strategies."""

from __future__ import annotations

import json
from typing import Any, ClassVar

from vcnb.controllers.job.plugins.flags import Flag
from vcnb.controllers.job.plugins.layout import Layout, layout_of
from vcnb.controllers.job.plugins.plugin import Plugin, edit_containers, pod_number, pod_task, with_env
from vcnb.store.protocol import Obj

__all__ = ["TensorflowPlugin"]

CLUSTER_ROLES = ("ps", "worker", "chief", "evaluator")
"""In the order of the keys of ``cluster``."""
POD_ROLES = ("chief", "worker", "ps", "evaluator")
"""In the order in which a pod's task is compared."""


class TensorflowPlugin(Plugin):
    """Adds ``TF_CONFIG`` to every container of every pod, but not to a Job that is a single pod.

    The value is compact JSON: ``cluster`` lists ``host:port`` of the pods of each role, ``task`` says which one this pod
    is. The container port is not declared; names of hosts resolve through ``svc``, which admission adds.
    """

    name: ClassVar[str] = "tensorflow"
    flags: ClassVar[tuple[Flag, ...]] = (
        *(Flag(role, role, f"task that plays the {role}") for role in CLUSTER_ROLES),
        Flag("port", 2222, "port written after every host"),
    )

    def on_pod_create(self, pod: dict[str, Any], job: Obj) -> None:
        layout = layout_of(job)
        if len(layout.tasks) == 1 and layout.tasks[0].replicas == 1:
            return
        task = pod_task(pod)
        role = next((role for role in POD_ROLES if self.arguments.text(role) == task), task)
        arguments = tuple(self.arguments.values.items())
        cluster = layout.derived((self.name, arguments), lambda: self._cluster(layout))
        value = f'{{"cluster":{cluster},"task":{{"type":{json.dumps(role)},"index":{pod_number(pod, self.name)}}}}}'
        entries = ({"name": "TF_CONFIG", "value": value},)
        wins = self.behaviour.template_wins
        edit_containers(pod, lambda container: with_env(container, entries, template_wins=wins), init=False)

    def _cluster(self, layout: Layout) -> str:
        port = self.arguments.number("port")
        cluster: dict[str, list[str]] = {}
        for role in CLUSTER_ROLES:
            task = layout.task(self.arguments.text(role))
            if task is not None and task.replicas > 0:
                cluster[role] = [f"{task.host(index)}:{port}" for index in range(task.replicas)]
        return json.dumps(cluster, separators=(",", ":"))
