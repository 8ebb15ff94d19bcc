"""What a container's program sees in its environment, and how its command line is made.

The environment is clean: a small base, then ``envFrom``, then ``env``, as in Kubernetes. The kernel's own environment,
with whatever secrets it holds, is only there when it was asked for (``inherit_env``).
"""

from __future__ import annotations

import base64
import os
import pwd
import re
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from vcnb.errors import VcnbError
from vcnb.local.node.fields import field_value, resource_value
from vcnb.store.protocol import Obj

__all__ = [
    "BASE_PATH",
    "MissingObject",
    "Sources",
    "base_environment",
    "command_line",
    "container_environment",
    "expand",
    "is_python_image",
]

BASE_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_PYTHON_NAMES = frozenset({"python", "python3", f"python3.{sys.version_info.minor}"})
_PYTHON_IMAGES = re.compile(
    r"(^|[/_.-])(python|pypy|jupyter|conda|miniconda\d?|mambaforge|miniforge\d?|micromamba|anaconda\d?|pytorch|torch"
    r"|tensorflow|ray|dask|jax|scipy-notebook|minimal-notebook|base-notebook|datascience-notebook)([:@/_.-]|$)"
)
_REFERENCE = re.compile(r"\$(?:\$|\(([^)]*)\))")

Keys: TypeAlias = Mapping[str, bytes]


class MissingObject(VcnbError):
    """A ConfigMap or Secret that a container needs, or a key of it, is not there (yet)."""


@dataclass(frozen=True)
class Sources:
    """Where values come from: the store's ConfigMaps and Secrets, and the node."""

    config_map: Callable[[str], Obj | None]
    secret: Callable[[str], Obj | None]
    allocatable: Mapping[str, str]
    """What the node offers: the value of a limit that a container does not set."""

    def config_map_keys(self, name: str) -> Keys | None:
        """``data`` and ``binaryData`` of a ConfigMap as bytes; None when there is none of that name."""
        found = self.config_map(name)
        if found is None:
            return None
        text = {key: str(value).encode() for key, value in (found.get("data") or {}).items()}
        return text | {key: base64.b64decode(value) for key, value in (found.get("binaryData") or {}).items()}

    def secret_keys(self, name: str) -> Keys | None:
        """``data`` of a Secret, decoded; None when there is none of that name."""
        found = self.secret(name)
        if found is None:
            return None
        text = {key: str(value).encode() for key, value in (found.get("stringData") or {}).items()}
        return {key: base64.b64decode(value) for key, value in (found.get("data") or {}).items()} | text


def base_environment(cwd: str, inherit: bool | Sequence[str] = False) -> dict[str, str]:
    """The variables that every container has before its own.

    PATH begins with the directory of the kernel's interpreter, so that ``python`` and what is installed beside it are
    found. ``inherit`` True takes the kernel's whole environment first, a list of names only those variables.
    """
    account = pwd.getpwuid(os.getuid()) if _has_account() else None
    home = os.environ.get("HOME") or (account.pw_dir if account else "/")
    scripts = str(Path(sys.executable).parent)
    base = {
        "PATH": ":".join(dict.fromkeys([scripts, *BASE_PATH.split(":")])),
        "HOME": home,
        "LANG": os.environ.get("LANG") or "C.UTF-8",
        "PYTHONUNBUFFERED": "1",
        "PWD": cwd,
    }
    if account is not None:
        base |= {"USER": account.pw_name, "LOGNAME": account.pw_name}
    if os.environ.get("TZ"):
        base["TZ"] = os.environ["TZ"]
    if sys.prefix != sys.base_prefix:
        base["VIRTUAL_ENV"] = sys.prefix
    if inherit is True:
        path = os.environ.get("PATH")
        return {**os.environ, **base, **({"PATH": f"{scripts}:{path}"} if path else {})}
    named = {name: os.environ[name] for name in inherit or () if name in os.environ}
    return base | named


def _has_account() -> bool:
    try:
        pwd.getpwuid(os.getuid())
    except KeyError:
        return False
    return True


def container_environment(
    pod: Obj, container: Mapping[str, Any], sources: Sources, base: Mapping[str, str]
) -> dict[str, str]:
    """The whole environment of a container. Raises MissingObject.

    ``envFrom`` in order, then ``env`` in order; a later value replaces an earlier one; a value may refer to variables
    that stand before it as ``$(NAME)``.
    """
    own: dict[str, str] = {}
    for entry in container.get("envFrom") or ():
        prefix = entry.get("prefix") or ""
        for key, content in _env_from(entry, sources).items():
            own[prefix + key] = content.decode("utf-8", "surrogateescape")
    for entry in container.get("env") or ():
        if entry.get("valueFrom"):
            value = _value_from(entry, pod, container, sources)
            if value is None:
                continue
            own[entry["name"]] = value
        else:
            own[entry["name"]] = expand(str(entry.get("value") or ""), own)
    return {**base, **own}


def _env_from(entry: Mapping[str, Any], sources: Sources) -> Keys:
    for kind, keys_of in (("configMapRef", sources.config_map_keys), ("secretRef", sources.secret_keys)):
        reference = entry.get(kind)
        if reference:
            found = keys_of(reference["name"])
            if found is None and not reference.get("optional"):
                raise MissingObject(f'{_KINDS[kind]} "{reference["name"]}" not found')
            return found or {}
    return {}


_KINDS = {
    "configMapRef": "configmap",
    "secretRef": "secret",
    "configMapKeyRef": "configmap",
    "secretKeyRef": "secret",
}


def _value_from(entry: Mapping[str, Any], pod: Obj, container: Mapping[str, Any], sources: Sources) -> str | None:
    source = entry["valueFrom"]
    if source.get("fieldRef"):
        return field_value(pod, source["fieldRef"]["fieldPath"])
    if source.get("resourceFieldRef"):
        return resource_value(pod, container, source["resourceFieldRef"], sources.allocatable)
    for kind, keys_of in (("configMapKeyRef", sources.config_map_keys), ("secretKeyRef", sources.secret_keys)):
        reference = source.get(kind)
        if not reference:
            continue
        keys = keys_of(reference["name"])
        if keys is not None and reference["key"] in keys:
            return keys[reference["key"]].decode("utf-8", "surrogateescape")
        if reference.get("optional"):
            return None
        if keys is None:
            raise MissingObject(f'{_KINDS[kind]} "{reference["name"]}" not found')
        raise MissingObject(f'couldn\'t find key {reference["key"]} in {_KINDS[kind]} "{reference["name"]}"')
    return None


def expand(text: str, variables: Mapping[str, str]) -> str:
    """Replace ``$(NAME)`` by the variable's value; ``$$`` is one ``$``; a name that is not known stays as it is."""

    def replace(match: re.Match[str]) -> str:
        name = match[1]
        return "$" if name is None else variables.get(name, match[0])

    return _REFERENCE.sub(replace, text)


def is_python_image(image: str) -> bool:
    """Whether an image is surely one for Python programs: python, jupyter, conda, pytorch and the like."""
    return bool(_PYTHON_IMAGES.search(image.lower()))


def command_line(container: Mapping[str, Any], env: Mapping[str, str]) -> list[str]:
    """``command`` and ``args`` with variables expanded; empty when there is neither.

    ``python`` and ``python3`` are the kernel's own interpreter when the image is one for Python, or when there is no
    such program on this machine.
    """
    argv = [expand(str(word), env) for word in (*(container.get("command") or ()), *(container.get("args") or ()))]
    if (
        argv
        and argv[0] in _PYTHON_NAMES
        and (is_python_image(str(container.get("image") or "")) or shutil.which(argv[0], path=env.get("PATH")) is None)
    ):
        argv[0] = sys.executable
    return argv
