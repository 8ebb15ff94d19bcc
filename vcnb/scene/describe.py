"""``describe``: everything about an object as indented text, in kubectl's manner."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from vcnb.scene.job import phases
from vcnb.scene.snapshot import JobSnapshot
from vcnb.scene.tables import text_table
from vcnb.scene.words import age, mark, seconds_of, span
from vcnb.store.protocol import Obj

__all__ = ["describe", "describe_object"]

COUNTERS = ("pending", "running", "succeeded", "failed", "terminating", "unknown")


def describe(snapshot: JobSnapshot) -> str:
    """A job: what was asked for, how it stands, its phases, tasks, pods and events."""
    job = snapshot.job
    meta, spec, status = job["metadata"], job.get("spec", {}), job.get("status", {})
    phase = str(status.get("state", {}).get("phase", ""))
    fields: dict[str, Any] = {
        "Name": meta["name"],
        "Namespace": meta.get("namespace", ""),
        "UID": meta.get("uid", ""),
        "Age": age(meta.get("creationTimestamp"), snapshot.now),
        "Labels": _pairs(meta.get("labels")),
        "Queue": spec.get("queue", ""),
        "Priority class": spec.get("priorityClassName", "<none>"),
        "Phase": f"{mark(phase).shape} {phase or 'new: no controller has seen it yet'}",
        "Min available": spec.get("minAvailable", 0),
        "Retries": f"{status.get('retryCount', 0)} of {spec.get('maxRetry', 3)}",
        "Pods": ", ".join(f"{status[name]} {name}" for name in COUNTERS if status.get(name)) or "<none>",
        "Plugins": ", ".join(spec.get("plugins", {})) or "<none>",
        "Policies": _policies(spec.get("policies")),
    }
    sections = [
        _fields(fields),
        _table("Phases", ("phase", "after"), _phase_rows(job)),
        _table("Tasks", ("task", "replicas", "min", "image", "policies"), _task_rows(spec)),
        _table("Pods", ("pod", "phase", "node", "exit", "age"), _pod_rows(snapshot)),
        _group(snapshot),
        _events(snapshot.events, snapshot.now),
    ]
    return "\n".join(section for section in sections if section)


def describe_object(obj: Obj, events: Sequence[Obj], now: float) -> str:
    """Any other object: its metadata, then spec and status as YAML, then events."""
    from vcnb.resources.manifest import dump

    meta = obj["metadata"]
    fields = {
        "Name": meta["name"],
        **({"Namespace": meta["namespace"]} if "namespace" in meta else {}),
        "Kind": obj.get("kind", ""),
        "UID": meta.get("uid", ""),
        "Age": age(meta.get("creationTimestamp"), now),
        "Labels": _pairs(meta.get("labels")),
        "Annotations": _pairs(meta.get("annotations")),
    }
    rest = {key: value for key, value in obj.items() if key not in ("apiVersion", "kind", "metadata")}
    return "\n".join(
        part for part in (_fields(fields), dump(rest).rstrip() if rest else "", _events(events, now)) if part
    )


def _fields(fields: Mapping[str, Any]) -> str:
    width = max(len(name) for name in fields) + 1
    return "\n".join(f"{name + ':':<{width}}  {value}" for name, value in fields.items())


def _pairs(values: Mapping[str, Any] | None) -> str:
    return ", ".join(f"{key}={value}" for key, value in (values or {}).items()) or "<none>"


def _policies(policies: Iterable[Mapping[str, Any]] | None) -> str:
    return ", ".join(_policy(policy) for policy in policies or ()) or "<none>"


def _policy(policy: Mapping[str, Any]) -> str:
    events = [*policy.get("events", ()), *([policy["event"]] if policy.get("event") else [])]
    when = "/".join(dict.fromkeys(events)) or f"exit {policy.get('exitCode')}"
    after = f" after {policy['timeout']}" if policy.get("timeout") else ""
    return f"{when} -> {policy.get('action', '')}{after}"


def _phase_rows(job: Obj) -> Iterator[tuple[str, str]]:
    created = seconds_of(job["metadata"].get("creationTimestamp"))
    for phase, entered in phases(job):
        known = entered is not None and created is not None
        yield phase, span(entered - created) if known and entered is not None and created is not None else ""


def _task_rows(spec: Mapping[str, Any]) -> Iterator[tuple[Any, ...]]:
    for task in spec.get("tasks", ()):
        containers = task.get("template", {}).get("spec", {}).get("containers", ())
        images = ", ".join(container.get("image", "") for container in containers)
        minimum = task.get("minAvailable", task.get("replicas", 0))
        yield task.get("name", ""), task.get("replicas", 0), minimum, images, _policies(task.get("policies"))


def _pod_rows(snapshot: JobSnapshot) -> Iterator[tuple[Any, ...]]:
    for pod in snapshot.pods:
        status = pod.get("status", {})
        codes = [
            item["state"]["terminated"].get("exitCode", 0)
            for item in status.get("containerStatuses", ())
            if "terminated" in item.get("state", {})
        ]
        phase = "Terminating" if pod["metadata"].get("deletionTimestamp") else status.get("phase", "")
        node = pod.get("spec", {}).get("nodeName", "<none>")
        born = age(pod["metadata"].get("creationTimestamp"), snapshot.now)
        yield pod["metadata"]["name"], phase, node, ",".join(map(str, codes)), born


def _table(title: str, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    found = list(rows)
    if not found:
        return f"{title}: <none>"
    return "\n".join([f"{title}:", *(f"  {line}" for line in text_table(header, found).splitlines())])


def _group(snapshot: JobSnapshot) -> str:
    if snapshot.podgroup is None:
        return ""
    spec, status = snapshot.podgroup.get("spec", {}), snapshot.podgroup.get("status", {})
    lines = [f"Gang: {status.get('phase') or 'Pending'}, minMember {spec.get('minMember', 0)}"]
    lines.extend(
        f"  {condition.get('type')}: {condition.get('message') or condition.get('reason')}"
        for condition in status.get("conditions", ())
    )
    return "\n".join(lines)


def _events(events: Sequence[Obj], now: float) -> str:
    rows = [
        (
            event.get("type", ""),
            event.get("reason", ""),
            age(event.get("lastTimestamp") or event.get("eventTime"), now),
            event.get("count", 1),
            event.get("involvedObject", {}).get("name", ""),
            str(event.get("message", "")).strip(),
        )
        for event in events
    ]
    return _table("Events", ("type", "reason", "age", "count", "object", "message"), rows)
