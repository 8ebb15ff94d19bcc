"""Plugin ``svc``: lets the pods of a Job find each other by name.

Objects: ConfigMap ``J-svc`` with the hosts of every task, headless Service ``J``, and NetworkPolicy ``J``, which admits
only traffic from pods of the same Job. Pods get a host name, the subdomain ``J``, the hosts as files in ``/etc/volcano``
and, unless disabled, as variables ``VC_<TASK>_HOSTS`` and ``VC_<TASK>_NUM``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from vcnb.controllers.job.plugins.flags import Flag
from vcnb.controllers.job.plugins.layout import Layout, layout_of
from vcnb.controllers.job.plugins.objects import create_if_absent, find, remove
from vcnb.controllers.job.plugins.plugin import (
    Plugin,
    PluginApi,
    edit_containers,
    metadata_for,
    with_env,
    with_mount,
)
from vcnb.resources.kinds import CONFIGMAP, NETWORKPOLICY, SERVICE
from vcnb.resources.names import JOB_NAME, JOB_NAMESPACE
from vcnb.store.protocol import Obj

__all__ = ["MOUNT_PATH", "SvcPlugin", "fits_a_variable", "hosts_data"]

MOUNT_PATH = "/etc/volcano"
MODE_0644 = 0o644
VARIABLE_LIMIT = 128 * 1024
"""Linux starts no process with a ``NAME=value`` of this size or more (MAX_ARG_STRLEN, its closing zero included)."""

PUBLISH = "publish-not-ready-addresses"
NO_POLICY = "disable-network-policy"
INJECT = "inject-hosts-env"


@dataclass(frozen=True)
class _Shared:
    """The parts that are the same in every pod of a Job."""

    env: tuple[Mapping[str, Any], ...]
    volume: Mapping[str, Any]
    mount: Mapping[str, Any]


class SvcPlugin(Plugin):
    """See the module's text; ``J`` is the Job's name."""

    name: ClassVar[str] = "svc"
    flags: ClassVar[tuple[Flag, ...]] = (
        Flag(PUBLISH, default=False, help="the Service also lists pods that are not ready"),
        Flag(NO_POLICY, default=False, help="make no NetworkPolicy"),
        Flag(INJECT, default=True, help="give containers the VC_* variables; =false for Jobs with very many pods"),
    )

    async def on_job_add(self, job: Obj, controlled: dict[str, str], api: PluginApi) -> None:
        if self.registered(controlled):
            if self.behaviour.restore_objects:
                await self._write_hosts(job, api)
            return
        await self._write_hosts(job, api)
        for service in self._services(job):
            if await self._make_service(service, job, api):
                controlled[self.key] = self.name
        if not self.arguments.on(NO_POLICY):
            policy = network_policy(job)
            if await create_if_absent(api, policy, NETWORKPOLICY, job, check_owner=self.behaviour.check_owner):
                controlled[self.key] = self.name
        controlled[self.key] = self.name

    async def on_job_update(self, job: Obj, controlled: dict[str, str], api: PluginApi) -> None:
        if self.behaviour.restore_objects:
            # A restart has removed everything; the pods that are made while Restarting need it all, not the files alone.
            await self.on_job_add(job, controlled, api)
        else:
            await self._write_hosts(job, api)

    def on_pod_create(self, pod: dict[str, Any], job: Obj) -> None:
        layout = layout_of(job)
        key = (self.name, self.arguments.on(INJECT), self.behaviour.bound_hosts_variables)
        shared = layout.derived(key, lambda: self._shared(layout))
        spec = pod["spec"]
        spec["hostname"] = spec.get("hostname") or pod["metadata"]["name"]
        spec["subdomain"] = spec.get("subdomain") or layout.name
        spec["volumes"] = [*(spec.get("volumes") or ()), shared.volume]
        wins = self.behaviour.template_wins
        edit_containers(pod, lambda c: with_mount(with_env(c, shared.env), shared.mount, template_wins=wins), init=True)

    async def on_job_delete(self, job: Obj, controlled: dict[str, str], api: PluginApi) -> None:
        if not self.registered(controlled) and not self.behaviour.restore_objects:
            return
        check = self.behaviour.check_owner
        await remove(api, CONFIGMAP, configmap_name(layout_of(job)), job, check_owner=check)
        for service in self._services(job):
            await remove(api, SERVICE, service, job, check_owner=check)
        controlled.pop(self.key, None)
        if not self.arguments.on(NO_POLICY):
            await remove(api, NETWORKPOLICY, layout_of(job).name, job, check_owner=check)

    def _services(self, job: Obj) -> list[str]:
        """The Job's name, and each other subdomain of its templates."""
        layout = layout_of(job)
        others = [task.own_subdomain for task in layout.tasks] if self.behaviour.serve_subdomains else []
        return list(dict.fromkeys([layout.name, *filter(None, others)]))

    async def _make_service(self, name: str, job: Obj, api: PluginApi) -> bool:
        service = headless_service(job, name, publish_not_ready=self.arguments.on(PUBLISH))
        # A Service of somebody else under a template's own subdomain is the one that the template means.
        check = self.behaviour.check_owner and name == layout_of(job).name
        return await create_if_absent(api, service, SERVICE, job, check_owner=check)

    async def _write_hosts(self, job: Obj, api: PluginApi) -> None:
        layout = layout_of(job)
        data = layout.derived("svc-hosts", lambda: hosts_data(layout))
        name = configmap_name(layout)
        found = await find(api, CONFIGMAP, name, job, check_owner=self.behaviour.check_owner)
        if found is None:
            obj = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata_for(job, name), "data": data}
            await api.create(obj)
        elif found.get("data") != data:
            await api.update({**found, "data": data})

    def _shared(self, layout: Layout) -> _Shared:
        name = configmap_name(layout)
        return _Shared(
            env=tuple(self._variables(layout)) if self.arguments.on(INJECT) else (),
            volume={"name": name, "configMap": {"name": name, "defaultMode": MODE_0644}},
            mount={"name": name, "mountPath": MOUNT_PATH},
        )

    def _variables(self, layout: Layout) -> list[Mapping[str, Any]]:
        names: list[str] = []
        for task in layout.tasks:
            hosts, number = f"VC_{task.variable}_HOSTS", f"VC_{task.variable}_NUM"
            fits = fits_a_variable(hosts, task.hosts_text) or not self.behaviour.bound_hosts_variables
            names += [hosts, number] if fits else [number]
        configmap = configmap_name(layout)
        return [{"name": key, "valueFrom": {"configMapKeyRef": {"name": configmap, "key": key}}} for key in names]


def fits_a_variable(name: str, value: str) -> bool:
    """Whether a process can be started with this variable; "=" and the closing zero count too."""
    return len(name) + len(value) + 2 <= VARIABLE_LIMIT


def configmap_name(layout: Layout) -> str:
    """The name of the ConfigMap and of the volume: ``J-svc``."""
    return f"{layout.name}-svc"


def hosts_data(layout: Layout) -> dict[str, str]:
    """The ConfigMap's data: per task the hosts by line, the hosts joined with commas, and their number."""
    data: dict[str, str] = {}
    for task in layout.tasks:
        data[f"{task.name.replace('-', '_')}.host"] = "\n".join(task.hosts)
        data[f"VC_{task.variable}_HOSTS"] = task.hosts_text
        data[f"VC_{task.variable}_NUM"] = str(len(task.hosts))
    return data


def pods_of(job: Obj) -> dict[str, str]:
    """The labels that all pods of a Job carry, and only they."""
    layout = layout_of(job)
    return {JOB_NAME: layout.name, JOB_NAMESPACE: layout.namespace}


def headless_service(job: Obj, name: str, *, publish_not_ready: bool) -> dict[str, Any]:
    """The Service that gives ``hostname.name`` an address for every pod of the Job."""
    spec: dict[str, Any] = {"clusterIP": "None", "selector": pods_of(job)}
    if publish_not_ready:
        spec["publishNotReadyAddresses"] = True
    return {"apiVersion": "v1", "kind": "Service", "metadata": metadata_for(job, name), "spec": spec}


def network_policy(job: Obj) -> dict[str, Any]:
    """Traffic into the Job's pods only from pods of the same Job; whatever they send is free."""
    selector = {"matchLabels": pods_of(job)}
    return {
        "apiVersion": NETWORKPOLICY.api_version,
        "kind": "NetworkPolicy",
        "metadata": metadata_for(job, layout_of(job).name),
        "spec": {
            "podSelector": selector,
            "policyTypes": ["Ingress"],
            "ingress": [{"from": [{"podSelector": selector}]}],
        },
    }
