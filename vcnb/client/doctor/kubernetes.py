"""What a Kubernetes cluster has and allows: reached, versions, definitions, controllers, namespace, queues, permissions."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Final, NamedTuple

from vcnb.client.doctor.report import Finding, Level
from vcnb.client.kube.access import Access
from vcnb.client.kube.schemas import Schemas
from vcnb.client.url import Target
from vcnb.clock import RealClock
from vcnb.errors import ApiError, Forbidden, MissingKind, NotFound, VcnbError
from vcnb.kube.controller import volcano_holder
from vcnb.kube.controller.process import LEASE_NAME, LEASE_NAMESPACE
from vcnb.resources import kinds
from vcnb.resources.kinds import Kind
from vcnb.resources.views import NodeView, QueueView
from vcnb.store.kubernetes import KubernetesStore, open_store

__all__ = ["kubernetes"]

AREA: Final = "kubernetes"
_ALL: Final = ("create", "get", "list", "watch", "update", "patch", "delete")


class Need(NamedTuple):
    """What one does with a kind. ``level``: how bad it is when it is not allowed."""

    purpose: str
    kind: Kind
    verbs: Sequence[str]
    level: Level = "problem"
    subresource: str = ""
    cluster: bool = False


_CLIENT: Final = (
    Need("jobs", kinds.JOB, _ALL),
    Need("suspend, resume, terminate", kinds.COMMAND, ("create", "list")),
    Need("pods of jobs", kinds.POD, ("get", "list", "watch")),
    Need("logs", kinds.POD, ("get",), subresource="log"),
    Need("why()", kinds.PODGROUP, ("get", "list", "watch"), "note"),
    Need("events, why()", kinds.EVENT, ("list", "watch"), "note"),
    Need("functions and notebooks as jobs", kinds.SECRET, ("create", "get", "patch", "delete"), "note"),
    Need("flows", kinds.JOBFLOW, _ALL, "note"),
    Need("flows", kinds.JOBTEMPLATE, _ALL, "note"),
    Need("flows that Volcano cannot run", kinds.CONFIGMAP, _ALL, "note"),
    Need("flows that Volcano cannot run", kinds.COMMAND, ("watch", "delete"), "note"),
    Need("flows that Volcano cannot run", kinds.EVENT, ("create", "patch"), "note"),
    Need("flows that Volcano cannot run", kinds.LEASE, ("create", "get", "update"), "note"),
    Need("queues", kinds.QUEUE, ("get", "list"), "note", cluster=True),
    Need("how full the cluster is", kinds.NODE, ("list", "watch"), "note", cluster=True),
)
_CONTROLLERS: Final = (
    Need("controllers=on", kinds.JOB, ("update", "patch"), subresource="status"),
    Need("controllers=on", kinds.POD, ("create", "delete", "patch")),
    Need("controllers=on", kinds.PODGROUP, ("create", "update", "patch", "delete")),
    Need("controllers=on", kinds.COMMAND, ("watch", "delete")),
    Need("controllers=on", kinds.SERVICE, ("create", "get", "list", "watch", "delete")),
    Need("controllers=on", kinds.CONFIGMAP, ("create", "get", "list", "watch", "update", "delete")),
    Need("controllers=on", kinds.SECRET, ("create", "get", "list", "watch", "delete")),
    Need("controllers=on", kinds.EVENT, ("create", "patch")),
    Need("controllers=on", kinds.LEASE, ("create", "get", "update")),
)


async def kubernetes(target: Target) -> AsyncIterator[Finding]:
    """Look at the cluster of ``target``, by a connection of its own."""
    clock = RealClock()
    options = target.options
    try:
        store = await open_store(
            target.name or None, kubeconfig=options.kubeconfig, clock=clock, namespace=options.namespace
        )
    except VcnbError as error:
        yield Finding(AREA, "connection", "problem", str(error))
        return
    try:
        access = Access(store.connection, clock)
        yield Finding(AREA, "connection", "ok", store.where)
        version = await store.connection.version()
        yield Finding(AREA, "server", "ok", f"Kubernetes {version.get('gitVersion')}")
        missing = False
        async for finding in _definitions(store):
            missing = missing or finding.level == "problem"
            yield finding
        yield await _controllers(store, clock, controllers=options.controllers, missing=missing)
        yield await _namespace(store)
        if not missing:
            yield await _queues(store)
        yield await _nodes(store, access)
        needs = (*_CLIENT, *(_CONTROLLERS if options.controllers != "off" else ()))
        async for finding in _permissions(access, store.namespace, needs):
            yield finding
    finally:
        await store.close()


async def _definitions(store: KubernetesStore) -> AsyncIterator[Finding]:
    """Volcano's kinds, and whether vcnb's own fields are kept."""
    missing: list[str] = []
    for kind in (kinds.JOB, kinds.COMMAND, kinds.PODGROUP, kinds.QUEUE, kinds.JOBFLOW, kinds.JOBTEMPLATE):
        try:
            await store.list(kind, store.namespace, field_selector="metadata.name=vcnb-is-it-there")
        except MissingKind:
            missing.append(f"{kind.plural}.{kind.group}")
        except ApiError:
            continue  # permissions come later
    if missing:
        yield Finding(
            AREA,
            "definitions",
            "problem",
            f"the server has no {', '.join(missing)}",
            "ask the administrator to install Volcano, or only its definitions: vcnb crds | kubectl apply --server-side -f -",
        )
        return
    schemas = Schemas(store.connection)
    await schemas.load(kinds.JOBFLOW)
    probe = {"kind": "JobFlow", "spec": {"params": {}}}
    kept = schemas.of(kinds.JOBFLOW) is not None and not schemas.pruned(kinds.JOBFLOW, probe)
    more = "with vcnb's own fields" if kept else "Volcano's; flows with vcnb's own fields are kept in ConfigMaps"
    yield Finding(AREA, "definitions", "ok", more)


async def _controllers(store: KubernetesStore, clock: RealClock, *, controllers: str, missing: bool) -> Finding:
    """Who works on jobs."""
    try:
        volcano = await volcano_holder(store, clock)
        own = [
            holder
            for where in dict.fromkeys((LEASE_NAMESPACE, store.namespace))
            if (holder := await volcano_holder(store, clock, namespace=where, name=LEASE_NAME)) is not None
        ]
    except VcnbError as error:
        return Finding(AREA, "controllers", "note", f"whether any run cannot be told: {error}")
    if volcano is not None and controllers == "on":
        return Finding(
            AREA,
            "controllers",
            "problem",
            f"Volcano's run ({volcano}), and controllers=on asks for ours",
            "connect without controllers=on",
        )
    if volcano is not None:
        return Finding(AREA, "controllers", "ok", f"Volcano's run ({volcano})")
    if own:
        return Finding(AREA, "controllers", "ok", f"vcnb's run ({own[0]})")
    if controllers != "off" or missing:
        return Finding(AREA, "controllers", "note", "none run; with controllers=on this process runs them")
    return Finding(
        AREA,
        "controllers",
        "problem",
        "none seem to run: no Lease of Volcano's or vcnb's is held, so jobs would wait",
        "ask the administrator to start Volcano or `vcnb controller`, or run ours from the notebook: ?controllers=on",
    )


async def _namespace(store: KubernetesStore) -> Finding:
    name = store.namespace
    try:
        found = await store.get(kinds.NAMESPACE, name)
    except NotFound:
        return Finding(AREA, "namespace", "problem", f"there is no {name!r}", f"kubectl create namespace {name}")
    except Forbidden:
        return Finding(AREA, "namespace", "ok", f"{name} (it may not be looked at, which is common)")
    except ApiError as error:
        return Finding(AREA, "namespace", "note", f"{name}: {error}")
    phase = (found.get("status") or {}).get("phase", "Active")
    level: Level = "ok" if phase == "Active" else "problem"
    return Finding(AREA, "namespace", level, f"{name} is {phase}", "" if level == "ok" else "choose another namespace")


async def _queues(store: KubernetesStore) -> Finding:
    try:
        queues = [QueueView(obj) for obj in (await store.list(kinds.QUEUE)).items]
    except ApiError as error:
        return Finding(AREA, "queues", "note", f"they cannot be seen: {error}")
    shown = ", ".join(f"{queue.name} ({queue.state.value or 'Open'})" for queue in queues) or "none"
    default = next((queue for queue in queues if queue.name == "default"), None)
    if default is None:
        advice = "jobs that name no queue go to 'default'; ask the administrator to create it, or name another one"
        return Finding(AREA, "queues", "note", f"{shown}; there is no queue 'default'", advice)
    if not default.open:
        return Finding(AREA, "queues", "note", shown, "the queue 'default' starts nothing new; name another one")
    return Finding(AREA, "queues", "ok", shown)


async def _nodes(store: KubernetesStore, access: Access) -> Finding:
    if not await access.allowed("list", kinds.NODE):
        return Finding(AREA, "nodes", "ok", "they may not be seen, which is common")
    nodes = [NodeView(obj) for obj in (await store.list(kinds.NODE)).items]
    ready = sum(
        any(
            item.get("type") == "Ready" and item.get("status") == "True" for item in node.status.get("conditions") or ()
        )
        for node in nodes
    )
    if not ready:
        return Finding(
            AREA, "nodes", "note", f"none of {len(nodes)} is ready", "pods start when one is; ask the administrator"
        )
    return Finding(AREA, "nodes", "ok", f"{ready} of {len(nodes)} ready")


async def _permissions(access: Access, namespace: str, needs: Sequence[Need]) -> AsyncIterator[Finding]:
    """One finding for each need that is not met, and one for all that are."""
    asked = [(need, verb) for need in needs for verb in need.verbs]
    answers = await asyncio.gather(
        *(
            access.allowed(verb, need.kind, None if need.cluster else namespace, need.subresource)
            for need, verb in asked
        )
    )
    denied: dict[Need, list[str]] = {}
    for (need, verb), allowed in zip(asked, answers, strict=True):
        if not allowed:
            denied.setdefault(need, []).append(verb)
    for need, verbs in denied.items():
        resource = f"{need.kind.plural}/{need.subresource}" if need.subresource else need.kind.plural
        where = "in the whole cluster" if need.cluster else f"in namespace {namespace}"
        role = "ClusterRole" if need.cluster else "Role"
        yield Finding(
            AREA,
            "permissions",
            need.level,
            f"you may not {', '.join(verbs)} {resource} {where}: needed for {need.purpose}",
            f'ask the administrator for a {role} with apiGroups: ["{need.kind.group}"], resources: ["{resource}"], '
            f"verbs: [{', '.join(verbs)}]",
        )
    if not denied:
        yield Finding(AREA, "permissions", "ok", f"all {len(asked)} that are needed in namespace {namespace}")
