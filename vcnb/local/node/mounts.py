"""Where a container wants its volumes: as mounts of a sandbox, or as variables where nothing can be mounted."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from vcnb.local.node.environment import MissingObject, expand
from vcnb.local.node.rooms import Mount
from vcnb.local.node.volumes import Volume

__all__ = ["container_mounts", "mount_variables"]


def container_mounts(spec: Mapping[str, Any], volumes: Mapping[str, Volume], env: Mapping[str, str]) -> list[Mount]:
    """The ``volumeMounts`` of a container. Raises MissingObject for a subPath that is not in a read-only volume."""
    mounts = []
    for entry in spec.get("volumeMounts") or ():
        volume = volumes.get(entry["name"])
        if volume is None:
            raise MissingObject(f"volumeMount {entry['name']!r} names no volume of the pod")
        source = _source(volume, entry, env)
        mounts.append(Mount(entry["mountPath"], source, volume.read_only or bool(entry.get("readOnly"))))
    return mounts


def _source(volume: Volume, entry: Mapping[str, Any], env: Mapping[str, str]) -> Path:
    inner = str(entry.get("subPath") or "") or expand(str(entry.get("subPathExpr") or ""), env)
    if ".." in PurePosixPath(inner).parts or inner.startswith("/"):
        raise MissingObject(f"subPath {inner!r} must stay inside the volume {volume.name!r}")
    source = volume.path / inner
    if not source.exists():
        if volume.read_only:
            raise MissingObject(f"subPath {inner!r} is not in the volume {volume.name!r}")
        source.mkdir(parents=True, exist_ok=True)
    return source


def mount_variables(spec: Mapping[str, Any], volumes: Mapping[str, Volume]) -> dict[str, str]:
    """``VCNB_MOUNT_<VOLUME>`` for each mounted volume: its directory on this machine. ``-`` and ``.`` become ``_``."""
    variables = {}
    for entry in spec.get("volumeMounts") or ():
        volume = volumes.get(entry["name"])
        if volume is not None:
            name = re.sub(r"[^A-Z0-9]", "_", volume.name.upper())
            variables[f"VCNB_MOUNT_{name}"] = str(volume.path / str(entry.get("subPath") or ""))
    return variables
