"""What a trace records of a cluster: the ``see`` and the ``detail`` of one step, in the recordings' own words."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping
from typing import Any

from vcnb.resources import kinds
from vcnb.resources.kinds import Kind
from vcnb.store.memory import MemoryStore
from vcnb.store.protocol import Obj

OTHERS = (
    kinds.CONFIGMAP,
    kinds.SERVICE,
    kinds.SECRET,
    kinds.PERSISTENTVOLUMECLAIM,
    kinds.NETWORKPOLICY,
    kinds.COMMAND,
)
COUNTERS = ("pending", "running", "succeeded", "failed", "terminating", "unknown")
FLOW_LISTS = ("pendingJobs", "runningJobs", "completedJobs", "failedJobs", "terminatedJobs", "unKnowJobs")
OUT_OF_SYNC = "volcano.sh/controller-out-of-sync"
GENERATED_CLAIM = re.compile(r"-pvc-[0-9a-z]{12}")


def see(store: MemoryStore, namespace: str) -> dict[str, Any]:
    """Everything that ``see`` shows; what is 0 or empty is left out, as in the recordings."""
    uids = _uids(store, namespace)
    shown: dict[str, Any] = {
        "jobs": {_name(job): _job(job) for job in store.peek_all(kinds.JOB, namespace)},
        "pods": {_name(pod): _pod(pod) for pod in store.peek_all(kinds.POD, namespace)},
        "podgroups": {_name(group): _podgroup(group) for group in store.peek_all(kinds.PODGROUP, namespace)},
        "flows": {_name(flow): _flow(flow) for flow in store.peek_all(kinds.JOBFLOW, namespace)},
        "templates": {_name(found): _template(found) for found in store.peek_all(kinds.JOBTEMPLATE, namespace)},
        "others": {
            kind.kind: sorted(names)
            for kind in OTHERS
            if (names := [_claimless(_name(other)) for other in store.peek_all(kind, namespace)])
        },
    }
    return _renamed(shown, dict.fromkeys(uids, "<uid>"))


def _uids(store: MemoryStore, namespace: str) -> dict[str, str]:
    return {job["metadata"]["uid"]: _name(job) for job in store.peek_all(kinds.JOB, namespace)} | {
        owner["uid"]: owner["name"]
        for kind in (kinds.POD, kinds.PODGROUP)
        for obj in store.peek_all(kind, namespace)
        for owner in obj["metadata"].get("ownerReferences") or ()
    }


def _renamed(value: Any, names: Mapping[str, str]) -> Any:
    text = json.dumps(value)
    for old, new in names.items():
        text = text.replace(old, new)
    return json.loads(text)


def _name(obj: Obj) -> str:
    return str(obj["metadata"]["name"])


def _claimless(text: str) -> str:
    return GENERATED_CLAIM.sub("-pvc-<random>", text)


def _job(job: Obj) -> dict[str, Any]:
    status = job.get("status") or {}
    shown: dict[str, Any] = {"phase": (status.get("state") or {}).get("phase") or ""}
    for field in (*COUNTERS, "retryCount", "minAvailable"):
        shown[field] = status.get(field) or 0
    shown["taskStatusCount"] = {
        task: counts
        for task, entry in (status.get("taskStatusCount") or {}).items()
        if (counts := {phase: n for phase, n in (entry.get("phase") or {}).items() if n})
    }
    shown["conditions"] = [entry["status"] for entry in status.get("conditions") or ()]
    shown["controlledResources"] = sorted(_claimless(key) for key in status.get("controlledResources") or ())
    return _without_empty(shown)


def _pod(pod: Obj) -> dict[str, Any]:
    meta = pod["metadata"]
    annotations = meta.get("annotations") or {}
    shown = {
        "phase": (pod.get("status") or {}).get("phase") or "Pending",
        "version": annotations.get("volcano.sh/job-version"),
        "terminating": bool(meta.get("deletionTimestamp")),
        "outOfSync": OUT_OF_SYNC in annotations,
    }
    return _without_empty(shown)


def _podgroup(group: Obj) -> dict[str, Any]:
    spec = {key: value for key, value in group["spec"].items() if value}
    return _without_empty({**spec, "phase": (group.get("status") or {}).get("phase") or "Pending"})


def _flow(flow: Obj) -> dict[str, Any]:
    status = flow.get("status") or {}
    shown: dict[str, Any] = {"phase": (status.get("state") or {}).get("phase") or ""}
    for field in FLOW_LISTS:
        shown[field] = status.get(field) or []
    shown["jobStatusList"] = [
        [entry["name"], entry.get("state") or "", entry.get("restartCount") or 0]
        for entry in status.get("jobStatusList") or ()
    ]
    return _without_empty(shown)


def _template(template: Obj) -> list[str]:
    return sorted((template.get("status") or {}).get("jobDependsOnList") or ())


def _without_empty(shown: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in shown.items() if value}


# Detail: the full text of what the controller and its plugins wrote


def detail(store: MemoryStore, namespace: str) -> dict[str, Any]:
    """The full text of pods, PodGroups, jobs and of what plugins wrote, with the API server's defaults filled in."""
    shown: dict[str, Any] = {}
    builders = {
        kinds.POD: _pod_detail,
        kinds.JOB: _job_detail,
        kinds.CONFIGMAP: lambda found: found.get("data") or {},
        kinds.SERVICE: _service_detail,
        kinds.NETWORKPOLICY: lambda found: {
            key: found["spec"].get(key) for key in ("ingress", "podSelector", "policyTypes")
        },
        kinds.SECRET: _secret_detail,
        kinds.PERSISTENTVOLUMECLAIM: lambda found: {
            key: found["spec"].get(key) for key in ("accessModes", "resources", "storageClassName")
        },
    }
    for kind, build in builders.items():
        for found in store.peek_all(kind, namespace):
            shown[_claimless(f"{kind.kind}/{_name(found)}")] = build(found)
    for group in store.peek_all(kinds.PODGROUP, namespace):
        meta = group["metadata"]
        shown["PodGroup"] = {
            "annotations": meta.get("annotations"),
            "labels": meta.get("labels"),
            "spec": {key: value for key, value in group["spec"].items() if value},
        }
    jobs = [_name(job) for job in store.peek_all(kinds.JOB, namespace)]
    known = {
        key: value if key.startswith("ConfigMap/") else _without_random(value, jobs) for key, value in shown.items()
    }
    named = {uid: f"<uid:{name}>" for uid, name in _uids(store, namespace).items()}
    return dict(_renamed(known, {**named, namespace: "<namespace>"}))


def _without_random(value: Any, jobs: list[str]) -> Any:
    """Drop lists and entries that hold a name made of random characters: claims, and the pod volumes for them."""
    random = re.compile(rf"-pvc-[0-9a-z]{{12}}|\"(?:{'|'.join(map(re.escape, jobs))})-[0-9a-z]{{12}}\"")
    if not isinstance(value, dict):
        return value
    kept: dict[str, Any] = {}
    for key, entry in value.items():
        if isinstance(entry, dict):
            kept[key] = _without_random(entry, jobs)
        elif not random.search(json.dumps({key: entry})):
            kept[key] = entry
    return kept


def _pod_detail(pod: Obj) -> dict[str, Any]:
    meta, spec = pod["metadata"], pod["spec"]
    return {
        "annotations": meta.get("annotations"),
        "labels": meta.get("labels"),
        "hostname": spec.get("hostname"),
        "subdomain": spec.get("subdomain"),
        "schedulerName": spec.get("schedulerName"),
        "priorityClassName": spec.get("priorityClassName"),
        "containers": [_container(found) for found in spec.get("containers") or ()],
        "initContainers": [_container(found) for found in spec.get("initContainers") or ()],
        "volumes": sorted(map(_volume, spec.get("volumes") or ()), key=lambda volume: volume["name"]),
    }


def _container(container: Obj) -> dict[str, Any]:
    shown = {key: container[key] for key in ("name", "image", "command", "args") if container.get(key)}
    if container.get("env"):
        shown["env"] = sorted(container["env"], key=lambda entry: entry["name"])
    if container.get("ports"):
        shown["ports"] = sorted(({"protocol": "TCP", **port} for port in container["ports"]), key=_text)
    if container.get("volumeMounts"):
        shown["volumeMounts"] = sorted(container["volumeMounts"], key=_text)
    return shown


def _volume(volume: Obj) -> dict[str, Any]:
    """As the API server stores it: files of a ConfigMap or Secret have mode 0644 unless told otherwise."""
    return {
        key: {"defaultMode": 0o644, **value} if key in {"configMap", "secret"} else value
        for key, value in volume.items()
    }


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


def _job_detail(job: Obj) -> dict[str, Any]:
    return {
        "controlledResources": (job.get("status") or {}).get("controlledResources") or {},
        "labels": job["metadata"].get("labels"),
        "spec": job["spec"],
    }


def _service_detail(service: Obj) -> dict[str, Any]:
    spec = service["spec"]
    address = spec.get("clusterIP")
    return {
        "clusterIP": address if address == "None" else "<ip>",
        "ports": [{"protocol": "TCP", **port} for port in spec["ports"]] if spec.get("ports") else None,
        "publishNotReadyAddresses": spec.get("publishNotReadyAddresses") or None,
        "selector": spec.get("selector"),
    }


def _secret_detail(secret: Obj) -> dict[str, Any]:
    data = secret.get("data") or {}
    plain = {"config": base64.b64decode(data["config"]).decode()} if "config" in data else {}
    return {"keys": sorted(data), "type": secret.get("type") or "Opaque", "plain": plain}


def object_of(store: MemoryStore, kind: Kind, name: str, namespace: str) -> Obj:
    """The stored object; a trace names none that is not there."""
    found = store.peek(kind, name, namespace)
    assert found is not None, f"there is no {kind} {name}"
    return found
