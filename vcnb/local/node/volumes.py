"""A pod's volumes as directories of this machine.

``configMap``, ``secret``, ``downwardAPI`` and ``projected`` volumes are files written from the store; they are rewritten
while the pod runs when their objects change, each file replaced as a whole. ``emptyDir`` lives as long as the pod. A
claim is a directory that lives as long as the PersistentVolumeClaim. ``hostPath`` is the path itself.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from vcnb.errors import VcnbError
from vcnb.local.node.environment import Keys, MissingObject, Sources
from vcnb.local.node.fields import field_value, resource_value
from vcnb.store.protocol import Obj

__all__ = ["File", "Volume", "VolumeError", "files_of", "is_projection", "make_volume", "write_files"]

_DEFAULT_MODE = 0o644
_PROJECTIONS = ("configMap", "secret", "downwardAPI", "projected")


class VolumeError(VcnbError):
    """A volume cannot be provided (yet): a missing host path or claim, a kind that this node does not have."""


@dataclass(frozen=True)
class File:
    """One file of a projected volume."""

    content: bytes
    mode: int = _DEFAULT_MODE


@dataclass(frozen=True)
class Volume:
    """A volume of a pod: where it is on this machine, and whether it may be written to."""

    name: str
    path: Path
    read_only: bool = False


def is_projection(volume: Mapping[str, Any]) -> bool:
    """Whether the volume consists of files written from the store."""
    return any(kind in volume for kind in _PROJECTIONS)


def make_volume(
    volume: Mapping[str, Any], pod: Obj, folder: Path, sources: Sources, claim: Callable[[str], Path]
) -> Volume:
    """Provide a volume; ``folder`` is its own directory, ``claim`` the directory of a claim by name.

    Raises MissingObject and VolumeError; the attempt may be repeated.
    """
    name = volume["name"]
    if is_projection(volume):
        write_files(folder, files_of(volume, pod, sources))
        return Volume(name, folder, read_only=True)
    if "hostPath" in volume:
        return Volume(name, _host_path(volume["hostPath"]))
    if "persistentVolumeClaim" in volume:
        source = volume["persistentVolumeClaim"]
        return Volume(name, claim(source["claimName"]), read_only=bool(source.get("readOnly")))
    kinds = [kind for kind in volume if kind != "name"] or ["emptyDir"]
    if kinds[0] not in {"emptyDir", "ephemeral"}:
        raise VolumeError(
            f"volume {name!r} is of kind {kinds[0]}, which this node does not have; it has emptyDir, configMap, secret, "
            "downwardAPI, projected, hostPath and persistentVolumeClaim"
        )
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o777)
    return Volume(name, folder)


def _host_path(source: Mapping[str, Any]) -> Path:
    path, kind = Path(source["path"]), source.get("type") or ""
    try:
        if kind == "DirectoryOrCreate":
            path.mkdir(parents=True, exist_ok=True)
        elif kind == "FileOrCreate":
            path.touch()
    except OSError as error:
        raise VolumeError(f"hostPath {path} cannot be made: {error.strerror}") from error
    if not path.exists():
        raise VolumeError(f"hostPath {path} does not exist on this machine")
    if kind.startswith("Directory") and not path.is_dir():
        raise VolumeError(f"hostPath {path} is not a directory")
    if kind.startswith("File") and not path.is_file():
        raise VolumeError(f"hostPath {path} is not a file")
    return path


def files_of(volume: Mapping[str, Any], pod: Obj, sources: Sources) -> dict[str, File]:
    """The files of a projection by relative path. Raises MissingObject for what is missing and not optional."""
    if "projected" in volume:
        source = volume["projected"]
        mode = source.get("defaultMode") or _DEFAULT_MODE
        files: dict[str, File] = {}
        for part in source.get("sources") or ():
            for kind, content in part.items():
                files |= _files(kind, content, mode, pod, sources)
        return files
    kind = next(kind for kind in _PROJECTIONS if kind in volume)
    return _files(kind, volume[kind], volume[kind].get("defaultMode") or _DEFAULT_MODE, pod, sources)


def _files(kind: str, source: Mapping[str, Any], mode: int, pod: Obj, sources: Sources) -> dict[str, File]:
    if kind == "downwardAPI":
        return {
            _relative(item["path"]): File(_downward(item, pod, sources).encode(), item.get("mode") or mode)
            for item in source.get("items") or ()
        }
    if kind == "configMap":
        name, keys = source.get("name", ""), sources.config_map_keys(source.get("name", ""))
    elif kind == "secret":
        name = source.get("secretName") or source.get("name", "")
        keys = sources.secret_keys(name)
    else:  # serviceAccountToken, clusterTrustBundle: there is no API server to talk to
        return {}
    return _key_files(f'{kind.lower()} "{name}"', keys, source, mode)


def _key_files(what: str, keys: Keys | None, source: Mapping[str, Any], mode: int) -> dict[str, File]:
    optional = bool(source.get("optional"))
    if keys is None:
        if optional:
            return {}
        raise MissingObject(f"{what} not found")
    items: Sequence[Mapping[str, Any]] = source.get("items") or [{"key": key, "path": key} for key in keys]
    missing = [item["key"] for item in items if item["key"] not in keys]
    if missing and not optional:
        raise MissingObject(f"{what} has no key {missing[0]!r}")
    return {
        _relative(item["path"]): File(keys[item["key"]], item.get("mode") or mode)
        for item in items
        if item["key"] in keys
    }


def _downward(item: Mapping[str, Any], pod: Obj, sources: Sources) -> str:
    if item.get("fieldRef"):
        return field_value(pod, item["fieldRef"]["fieldPath"])
    reference = item["resourceFieldRef"]
    return resource_value(pod, {}, reference, sources.allocatable)


def _relative(path: str) -> str:
    pure = PurePosixPath(path)
    if pure.is_absolute() or ".." in pure.parts:
        raise VolumeError(f"the path {path!r} of a volume item must stay inside the volume")
    return str(pure)


def write_files(folder: Path, files: Mapping[str, File]) -> None:
    """Make a directory hold exactly these files. What is right already is left alone."""
    folder.mkdir(parents=True, exist_ok=True)
    for relative, file in files.items():
        path = folder / relative
        if _holds(path, file):
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_name(f".{path.name}.new")
        with contextlib.suppress(FileNotFoundError):
            temporary.unlink()
        with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as stream:
            stream.write(file.content)
            os.fchmod(stream.fileno(), file.mode)
        temporary.replace(path)
    for path in sorted(folder.rglob("*"), reverse=True):
        if path.is_dir() and not path.is_symlink():
            with contextlib.suppress(OSError):
                path.rmdir()
        elif str(path.relative_to(folder)) not in files:
            path.unlink()


def _holds(path: Path, file: File) -> bool:
    try:
        return path.read_bytes() == file.content and path.stat().st_mode & 0o7777 == file.mode
    except OSError:
        return False
