"""What this machine offers, and the Node object that says so."""

from __future__ import annotations

import os
import platform
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from vcnb.local.node.addresses import HOST_ADDRESS
from vcnb.local.node.processes import boot_id
from vcnb.resources.quantity import Quantity
from vcnb.store.protocol import Obj

__all__ = ["RUNTIME_ANNOTATION", "RUNTIME_REASON_ANNOTATION", "capacity_of", "node_object", "node_status"]

RUNTIME_ANNOTATION = "vcnb/runtime"
"""Annotation of the Node: sandbox or process."""
RUNTIME_REASON_ANNOTATION = "vcnb/runtime-reason"
"""Annotation of the Node: why it is that runtime."""

_DEFAULT_PODS = 110


def _cgroup() -> Path | None:
    """This process's cgroup (version 2)."""
    try:
        lines = Path("/proc/self/cgroup").read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    return next((Path("/sys/fs/cgroup") / line[3:].lstrip("/") for line in lines if line.startswith("0::")), None)


def _first_word(path: Path | None) -> list[str]:
    try:
        return path.read_text(encoding="ascii").split() if path is not None else []
    except OSError:
        return []


def _cpus() -> str:
    """Processors that this process may use, less where a cgroup quota allows less."""
    count = len(os.sched_getaffinity(0))
    group = _cgroup()
    quota = _first_word(group / "cpu.max" if group else None)
    if len(quota) == 2 and quota[0].isdigit():
        return str(Quantity.parse(f"{min(count * 1000, int(quota[0]) * 1000 // int(quota[1]))}m"))
    return str(count)


def _memory() -> str:
    """Memory of the machine in KiB, less where the cgroup's limit is less."""
    words = _first_word(Path("/proc/meminfo"))
    total = int(words[1]) if len(words) > 1 else os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 1024
    group = _cgroup()
    limit = _first_word(group / "memory.max" if group else None)
    if limit and limit[0].isdigit():
        total = min(total, int(limit[0]) // 1024)
    return f"{total}Ki"


def capacity_of(cpus: object = None, memory: object = None, pods: int | None = None) -> dict[str, str]:
    """``cpu``, ``memory`` and ``pods`` of the node; what is not given is what the machine has, and 110 pods."""
    return {
        "cpu": str(Quantity.parse(str(cpus))) if cpus else _cpus(),
        "memory": str(Quantity.parse(str(memory))) if memory else _memory(),
        "pods": str(pods or _DEFAULT_PODS),
    }


def node_object(name: str, runtime: str, reason: str) -> dict[str, Any]:
    """The Node without its status."""
    machine = platform.machine()
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {
                "kubernetes.io/hostname": name,
                "kubernetes.io/os": "linux",
                "kubernetes.io/arch": {"x86_64": "amd64", "aarch64": "arm64"}.get(machine, machine),
            },
            "annotations": {RUNTIME_ANNOTATION: runtime, RUNTIME_REASON_ANNOTATION: reason},
        },
        "spec": {},
    }


def node_status(name: str, capacity: dict[str, str], now: str, runtime: str, before: Obj | None) -> dict[str, Any]:
    """The Node's status: capacity, addresses, and Ready since when."""
    conditions = ((before or {}).get("status") or {}).get("conditions") or ()
    ready: Mapping[str, Any] = next((entry for entry in conditions if entry["type"] == "Ready"), {})
    since = ready.get("lastTransitionTime") if ready.get("status") == "True" else None
    return {
        "capacity": capacity,
        "allocatable": capacity,
        "conditions": [
            {
                "type": "Ready",
                "status": "True",
                "reason": "KubeletReady",
                "message": f"the node agent starts pods ({runtime} runtime)",
                "lastHeartbeatTime": now,
                "lastTransitionTime": since or now,
            }
        ],
        "addresses": [{"type": "InternalIP", "address": HOST_ADDRESS}, {"type": "Hostname", "address": name}],
        "nodeInfo": {
            "architecture": platform.machine(),
            "bootID": boot_id(),
            "containerRuntimeVersion": f"{runtime}://vcnb",
            "kernelVersion": platform.release(),
            "kubeletVersion": "vcnb",
            "machineID": "",
            "operatingSystem": "linux",
            "osImage": _os_image(),
            "systemUUID": socket.gethostname(),
        },
    }


def _os_image() -> str:
    try:
        return platform.freedesktop_os_release().get("PRETTY_NAME", "Linux")
    except OSError:
        return "Linux"
