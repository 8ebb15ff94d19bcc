"""Plugin ``env``: tells every container which pod of its task it is."""

from __future__ import annotations

from typing import Any, ClassVar

from vcnb.controllers.job.plugins.plugin import Plugin, edit_containers, pod_index, with_env
from vcnb.store.protocol import Obj

__all__ = ["EnvPlugin"]


class EnvPlugin(Plugin):
    """Adds ``VK_TASK_INDEX`` (the old spelling) and ``VC_TASK_INDEX``: the pod's index in its task, from 0.

    Appended after the template's own variables, so the process sees the real index even where a template sets one.
    """

    name: ClassVar[str] = "env"

    def on_pod_create(self, pod: dict[str, Any], job: Obj) -> None:
        index = pod_index(pod)
        entries = ({"name": "VK_TASK_INDEX", "value": index}, {"name": "VC_TASK_INDEX", "value": index})
        edit_containers(pod, lambda container: with_env(container, entries), init=True)
