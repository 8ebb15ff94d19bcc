"""The Job of a flow node: template, flow-level settings, patch, and what its program may know of its place. Pure."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from vcnb.admission.jobpatch import apply_patch
from vcnb.controllers.flow.convert import job_from_template
from vcnb.controllers.flow.expressions import as_text, fill
from vcnb.controllers.flow.naming import FLOW_UID, created_by, owner_of
from vcnb.controllers.flow.spec import FlowSpec, Node
from vcnb.resources import names
from vcnb.store.protocol import Obj

__all__ = ["Place", "build_job"]

_DEFAULTED_BY_SERVER: Final[Mapping[str, Any]] = {"queue": names.DEFAULT_QUEUE, "maxRetry": names.DEFAULT_MAX_RETRY}
"""What Volcano's schema writes into every patch on a Kubernetes API server."""


@dataclass(frozen=True, slots=True)
class Place:
    """Which of a node's jobs it is: the item of ``forEach``, the iteration of ``loop``, the attempt."""

    attempt: int = 0
    index: int | None = None
    item: Any = None
    iteration: int | None = None

    @property
    def variables(self) -> dict[str, Any]:
        """What expressions may call it."""
        found: dict[str, Any] = {}
        if self.index is not None:
            found = {"item": self.item, "index": self.index}
        if self.iteration is not None:
            found["iteration"] = self.iteration
        return found


def build_job(
    flow: Obj,
    spec: FlowSpec,
    node: Node,
    template: Obj,
    name: str,
    place: Place,
    variables: Callable[[str], Mapping[str, Any]],
    *,
    server_defaults: bool = False,
    owned: bool = True,
) -> dict[str, Any]:
    """The Job to create. Raises PatchError for a patch that does not fit, ConditionError for one that has no value.

    The template's values win over the flow's, the patch over both. With ``server_defaults`` a patch's ``queue: default``
    and ``maxRetry: 3`` count as not given, since a Kubernetes API server writes them into every patch. ``owned=False``
    notes the flow in an annotation instead of an owner reference.
    """
    job = job_from_template(template, name)
    metadata = job["metadata"]
    namespace = flow["metadata"].get("namespace") or names.DEFAULT_NAMESPACE
    origin = {names.CREATED_BY_JOBFLOW: created_by(namespace, flow["metadata"]["name"])}
    metadata["labels"] |= origin
    metadata["annotations"] |= {**_own_annotations(template), **origin}
    if owned:
        metadata["ownerReferences"] = [owner_of(flow)]
    else:
        metadata["annotations"][FLOW_UID] = flow["metadata"]["uid"]
    metadata["namespace"] = namespace
    body = _with_flow_settings(job["spec"], spec)
    patch = node.patch
    if patch and server_defaults:
        patch = {key: value for key, value in patch.items() if _DEFAULTED_BY_SERVER.get(key) != value}
    if patch:
        body = apply_patch(body, _in_texts(fill(patch, variables)))
    if spec.extended:
        _add_labels(metadata, spec, node, place, flow["metadata"]["name"])
        body = _with_environment(body, _environment(flow, node, place))
    job["spec"] = body
    return job


def _own_annotations(template: Obj) -> dict[str, str]:
    """The annotations of a template that are vcnb's own go with its jobs: what a function or notebook is known by."""
    given: Mapping[str, str] = template["metadata"].get("annotations") or {}
    return {key: value for key, value in given.items() if key.startswith("vcnb/")}


def _in_texts(patch: Mapping[str, Any]) -> dict[str, Any]:
    """The filled patch with text where a container can have nothing else: ``env``, ``command``, ``args``."""
    tasks = patch.get("tasks")
    if not isinstance(tasks, list):
        return dict(patch)
    return {**patch, "tasks": [_task_in_texts(task) if isinstance(task, Mapping) else task for task in tasks]}


def _task_in_texts(task: Mapping[str, Any]) -> Mapping[str, Any]:
    template = task.get("template")
    pod = template.get("spec") if isinstance(template, Mapping) else None
    if not isinstance(template, Mapping) or not isinstance(pod, Mapping):
        return task
    lists = {
        field: [_container_in_texts(container) for container in pod[field]]
        for field in ("initContainers", "containers")
        if isinstance(pod.get(field), list)
    }
    return {**task, "template": {**template, "spec": {**pod, **lists}}}


def _container_in_texts(container: Mapping[str, Any]) -> Mapping[str, Any]:
    changed = dict(container)
    for field in ("command", "args"):
        if isinstance(container.get(field), list):
            changed[field] = [as_text(part) for part in container[field]]
    if isinstance(container.get("env"), list):
        changed["env"] = [
            {**entry, "value": as_text(entry["value"])} if entry.get("value") is not None else entry
            for entry in container["env"]
        ]
    return changed


def _with_flow_settings(spec: dict[str, Any], flow: FlowSpec) -> dict[str, Any]:
    """Flow-level plugins below the template's own; queue and priority class where the template names none."""
    changed = dict(spec)
    if flow.plugins:
        changed["plugins"] = {**flow.plugins, **(spec.get("plugins") or {})}
    if flow.queue and (spec.get("queue") or names.DEFAULT_QUEUE) == names.DEFAULT_QUEUE:
        changed["queue"] = flow.queue
    if flow.priority_class and (spec.get("priorityClassName") or "default") == "default":
        changed["priorityClassName"] = flow.priority_class
    return changed


def _add_labels(metadata: dict[str, Any], spec: FlowSpec, node: Node, place: Place, flow: str) -> None:
    labels = {names.FLOW_NODE: node.name, names.FLOW_ATTEMPT: str(place.attempt)}
    if place.index is not None:
        labels[names.FLOW_INDEX] = str(place.index)
    if place.iteration is not None:
        labels[names.FLOW_ITERATION] = str(place.iteration)
    if node.gang and not place.attempt:  # a retry schedules alone
        labels[names.FLOW_GANG] = f"{flow}.{node.gang}"
        metadata["annotations"][names.FLOW_GANG_SIZE] = str(len(spec.gangs[node.gang].nodes))
    metadata["labels"] |= labels


def _environment(flow: Obj, node: Node, place: Place) -> dict[str, str]:
    variables = {
        names.ENV_FLOW_NAME: flow["metadata"]["name"],
        names.ENV_FLOW_NODE: node.name,
        names.ENV_FLOW_ATTEMPT: str(place.attempt),
    }
    if place.index is not None:
        variables[names.ENV_FLOW_ITEM] = json.dumps(place.item, ensure_ascii=False)
        variables[names.ENV_FLOW_ITEM_INDEX] = str(place.index)
    return variables


def _with_environment(spec: Mapping[str, Any], variables: Mapping[str, str]) -> dict[str, Any]:
    """The spec with the variables in every container; one that a container sets itself is left alone."""
    tasks = []
    for task in spec.get("tasks") or ():
        template: Mapping[str, Any] = task.get("template") or {}
        pod = dict(template.get("spec") or {})
        for field in ("initContainers", "containers"):
            if pod.get(field):
                pod[field] = [_container_with(container, variables) for container in pod[field]]
        tasks.append({**task, "template": {**template, "spec": pod}})
    return {**spec, "tasks": tasks}


def _container_with(container: Mapping[str, Any], variables: Mapping[str, str]) -> dict[str, Any]:
    own = list(container.get("env") or ())
    known = {entry.get("name") for entry in own}
    # Before the container's own, so that these may refer to them as $(VC_FLOW_ITEM).
    added = [{"name": name, "value": value} for name, value in variables.items() if name not in known]
    return {**container, "env": [*added, *own]}
