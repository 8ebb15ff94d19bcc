"""Plugin ``hcclrank``: the rank that Huawei's collective communication library reads from a pod's annotation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from vcnb.controllers.job.plugins.flags import Flag
from vcnb.controllers.job.plugins.layout import layout_of
from vcnb.controllers.job.plugins.plugin import Plugin, PluginApi, PluginError, pod_task
from vcnb.resources.names import TASK_INDEX
from vcnb.store.protocol import Obj

__all__ = ["HcclrankPlugin"]

ANNOTATION = "hccl/rankIndex"


class HcclrankPlugin(Plugin):
    """Sets annotation ``hccl/rankIndex``: masters count from 0, workers after them.

    An annotation of the template stays; a literal variable ``RANK`` of a container (also pytorch's, which runs before)
    is taken over for any task. It leaves no key in ``controlledResources``.
    """

    name: ClassVar[str] = "hcclrank"
    flags: ClassVar[tuple[Flag, ...]] = (
        Flag("master", "master", "task of the masters"),
        Flag("worker", "worker", "task of the workers"),
    )

    async def on_job_add(self, job: Obj, controlled: dict[str, str], api: PluginApi) -> None:
        """There is nothing to make."""

    def on_pod_create(self, pod: dict[str, Any], job: Obj) -> None:
        metadata = pod["metadata"]
        if (metadata.get("annotations") or {}).get(ANNOTATION):
            return
        rank = _rank_of_env(pod) or self._rank_of_task(pod, job)
        if rank is not None:
            metadata["annotations"] = {**(metadata.get("annotations") or {}), ANNOTATION: rank}

    def _rank_of_task(self, pod: Mapping[str, Any], job: Obj) -> str | None:
        task, master = pod_task(pod), self.arguments.text("master")
        if task == master:
            return _index(pod)
        if task != self.arguments.text("worker"):
            return None
        return str(layout_of(job).replicas(master) + int(_index(pod)))


def _rank_of_env(pod: Mapping[str, Any]) -> str | None:
    """The literal value of the first variable ``RANK``; None when there is none."""
    for container in pod["spec"].get("containers") or ():
        for entry in container.get("env") or ():
            if entry.get("name") == "RANK":
                return entry.get("value") or None
    return None


def _index(pod: Mapping[str, Any]) -> str:
    metadata = pod["metadata"]
    index = (metadata.get("labels") or {}).get(TASK_INDEX)
    if not index or not index.isdigit():
        raise PluginError(f"plugin hcclrank: pod {metadata['name']} has no index in its label {TASK_INDEX}")
    return str(index)
