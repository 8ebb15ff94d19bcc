"""Plugin ``ray``: starts a Ray cluster from a head task and worker tasks.

Object: Service ``J-head-svc`` with the head's three ports.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, ClassVar

from vcnb.controllers.job.plugins.flags import Arguments, Flag, parse
from vcnb.controllers.job.plugins.layout import layout_of
from vcnb.controllers.job.plugins.objects import create_if_absent, remove
from vcnb.controllers.job.plugins.plugin import (
    DEFAULT_BEHAVIOUR,
    Container,
    Plugin,
    PluginApi,
    PluginBehaviour,
    PluginError,
    edit_containers,
    metadata_for,
    pod_task,
    with_port,
)
from vcnb.resources.kinds import SERVICE
from vcnb.resources.names import JOB_NAME, JOB_NAMESPACE, TASK_SPEC
from vcnb.store.protocol import Obj

__all__ = ["RayPlugin"]

PORTS = (("gcs", "port"), ("dashboard", "dashboardPort"), ("client-server", "clientPort"))
"""Name of each port of the head, and the flag with its number."""
GUIDE_ALIAS = {"clientPort": "clientServerPort"}


class RayPlugin(Plugin):
    """Replaces the command of one container of each head and worker pod by ``ray start ...``; arguments stay.

    Other containers, other tasks and initContainers are left alone. A Job without the head task cannot make any pod.
    """

    name: ClassVar[str] = "ray"
    flags: ClassVar[tuple[Flag, ...]] = (
        Flag("head", "head", "task of the head"),
        Flag("worker", "worker", "task of the workers"),
        Flag("headContainer", "head", "container of the head pod that runs Ray"),
        Flag("workerContainer", "worker", "container of the worker pods that runs Ray"),
        Flag("port", 6379, "port of the global control store"),
        Flag("dashboardPort", 8265, "port of the dashboard"),
        Flag("clientPort", 10001, "port of the Ray client server"),
    )

    @classmethod
    def read(cls, args: Sequence[str] | None, behaviour: PluginBehaviour = DEFAULT_BEHAVIOUR) -> Arguments:
        if not behaviour.accept_guide_flags:
            return parse(cls.flags, args)
        return parse([dataclasses.replace(flag, alias=GUIDE_ALIAS.get(flag.name, "")) for flag in cls.flags], args)

    async def on_job_add(self, job: Obj, controlled: dict[str, str], api: PluginApi) -> None:
        if self.registered(controlled):
            return
        await create_if_absent(api, self._service(job), SERVICE, job, check_owner=self.behaviour.check_owner)
        controlled[self.key] = self.name

    async def on_job_update(self, job: Obj, controlled: dict[str, str], api: PluginApi) -> None:
        if self.behaviour.restore_objects:
            await self.on_job_add(job, controlled, api)

    def on_pod_create(self, pod: dict[str, Any], job: Obj) -> None:
        head = layout_of(job).task(self.arguments.text("head"))
        if head is None:
            wanted = self.arguments.text("head")
            raise PluginError(f"plugin ray: the Job has no head task {wanted!r}; name it with --head=<task>")
        task = pod_task(pod)
        if task == head.name:
            edit_containers(pod, self._as_head, init=False)
        elif task == self.arguments.text("worker"):
            address = f"{head.host(0)}:{self.arguments.number('port')}"
            edit_containers(pod, lambda container: self._as_worker(container, address), init=False)

    async def on_job_delete(self, job: Obj, controlled: dict[str, str], api: PluginApi) -> None:
        if not self.registered(controlled) and not self.behaviour.restore_objects:
            return
        await remove(api, SERVICE, service_name(job), job, check_owner=self.behaviour.check_owner)
        controlled.pop(self.key, None)

    def _as_head(self, container: Container) -> Container:
        if container.get("name") != self.arguments.text("headContainer"):
            return container
        for name, flag in PORTS:
            container = with_port(container, name, self.arguments.number(flag))
        port, dashboard, client = (self.arguments.number(flag) for _, flag in PORTS)
        start = (
            f"ray start --head --block --dashboard-host=0.0.0.0 --port={port}"
            f" --dashboard-port={dashboard} --ray-client-server-port={client}"
        )
        return {**container, "command": ["sh", "-c", start]}

    def _as_worker(self, container: Container, address: str) -> Container:
        if container.get("name") != self.arguments.text("workerContainer"):
            return container
        return {**container, "command": ["sh", "-c", f"ray start --block --address={address}"]}

    def _service(self, job: Obj) -> dict[str, Any]:
        layout = layout_of(job)
        numeric = self.behaviour.numeric_target_ports
        ports = []
        for name, flag in PORTS:
            number = self.arguments.number(flag)
            ports.append({"name": name, "protocol": "TCP", "port": number, "targetPort": number if numeric else name})
        selector = {
            JOB_NAME: layout.name,
            JOB_NAMESPACE: layout.namespace,
            TASK_SPEC: self.arguments.text("head"),
        }
        metadata = metadata_for(job, service_name(job))
        spec = {"selector": selector, "ports": ports}
        return {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec}


def service_name(job: Obj) -> str:
    """The name of the head's Service: ``J-head-svc``."""
    return f"{layout_of(job).name}-head-svc"
