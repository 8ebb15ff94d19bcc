"""Cluster URLs: what ``vcnb.connect`` takes, read into a value object.

embedded://name?dir=/path     durable, in this process
memory://                     nothing on disk, gone at close
kube://context                a Kubernetes cluster
https://host:port             an embedded cluster that another process serves
"""

from __future__ import annotations

import dataclasses
import difflib
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, TypeAlias, cast, get_args
from urllib.parse import parse_qsl, urlsplit

from vcnb.controllers.runtime.context import Compat
from vcnb.errors import VcnbError

__all__ = ["DEFAULT_URL", "Options", "Target", "data_directory", "parse_url"]

DEFAULT_URL = "embedded://default"

Scheme: TypeAlias = Literal["embedded", "memory", "kube", "https", "http"]
RuntimeName: TypeAlias = Literal["", "process", "sandbox", "simulated"]
ClockName: TypeAlias = Literal["real", "virtual"]

_NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")


@dataclasses.dataclass(frozen=True)
class Options:
    """How a cluster runs. Each may stand in the URL's query or be given to ``connect`` by name.

    ``runtime``: ``sandbox`` (the default where bubblewrap works), ``process`` or ``simulated`` (pods are only objects).
    ``controllers``: ``on`` or ``off``. ``clock``: ``real`` or ``virtual`` (only with ``simulated``).
    ``cpus``, ``memory``, ``pods``: what the node offers; default: what the machine has, and 110 pods.
    On Kubernetes ``controllers`` is ``off`` unless told: others run them there; ``on`` runs ours from this process, and
    ``force`` does so beside Volcano's. ``namespace``: of whatever names none (default: the context's); ``kubeconfig``: its
    path (default: ``KUBECONFIG``, ``~/.kube/config``, a pod's own service account).
    ``compat``: ``default``, or ``strict`` for upstream's behaviour to the letter. ``dir``: where an embedded cluster lives.
    ``cache_dir``: where the pages of the dataset cache are (default: with the cluster); ``cache_capacity``: how many bytes
    of them (10Gi, at most what the disk has); ``cache_workers``: how many workers hold them; ``cache``: a job store that is
    shared (``etcd://host:port``), or a real Alluxio (``alluxio://host:19999``).
    """

    runtime: RuntimeName = ""
    controllers: Literal["on", "off", "force"] = "on"
    clock: ClockName = "real"
    cpus: float | None = None
    memory: str | None = None
    pods: int | None = None
    compat: Compat = "default"
    dir: str | None = None
    cache_dir: str | None = None
    cache_capacity: str | None = None
    cache_workers: int = 1
    cache: str | None = None
    namespace: str | None = None
    kubeconfig: str | None = None


@dataclasses.dataclass(frozen=True)
class Target:
    """A parsed cluster URL."""

    scheme: Scheme
    name: str
    options: Options
    asked: frozenset[str] = frozenset()
    """The names of the options that were given; the others have their defaults."""

    @property
    def key(self) -> str:
        """What makes two calls of ``connect`` mean the same cluster."""
        if self.scheme == "embedded":
            return f"embedded://{self.directory.resolve()}"
        if self.scheme == "kube":
            beside = {"namespace": self.options.namespace, "kubeconfig": self.options.kubeconfig}
            query = "&".join(f"{key}={value}" for key, value in beside.items() if value)
            return f"kube://{self.name}{f'?{query}' if query else ''}"
        return f"{self.scheme}://{self.name}"

    @property
    def directory(self) -> Path:
        """Where an embedded cluster keeps its journal, pods and logs."""
        chosen = Path(self.options.dir).expanduser() if self.options.dir else data_directory() / "clusters" / self.name
        return chosen.absolute()

    def differences(self, running: Options) -> str:
        """The options that were asked for and are others in a running cluster, in words; empty when it will do."""
        pairs = ((name, getattr(self.options, name), getattr(running, name)) for name in sorted(self.asked - {"dir"}))
        return ", ".join(f"{name}={theirs} instead of {ours}" for name, ours, theirs in pairs if ours != theirs)


def data_directory() -> Path:
    """The user's data directory for vcnb: ``VCNB_HOME``, else ``vcnb`` below ``XDG_DATA_HOME`` (~/.local/share)."""
    home = os.environ.get("VCNB_HOME")
    if home:
        return Path(home).expanduser()
    return Path(os.environ.get("XDG_DATA_HOME") or "~/.local/share").expanduser() / "vcnb"


def parse_url(url: str, **overrides: Any) -> Target:
    """Read a cluster URL; ``overrides`` win over the query. Raises VcnbError naming what is wrong and what is possible."""
    parts = urlsplit(url)
    scheme = cast("Scheme", parts.scheme)
    if scheme not in get_args(Scheme):
        raise VcnbError(
            f"cannot connect to {url!r}: a cluster URL starts with embedded://, memory://, kube:// or https://"
        )
    given: dict[str, Any] = dict(parse_qsl(parts.query, keep_blank_values=True))
    given.update({key: value for key, value in overrides.items() if value is not None})
    name = parts.netloc + parts.path.rstrip("/")
    if scheme == "embedded":
        name = name or "default"
        if not _NAME.fullmatch(name):
            raise VcnbError(
                f"cannot connect to {url!r}: the name of an embedded cluster has up to 63 lower-case letters, digits and "
                f"dashes; a directory goes into the query: embedded://{_suggested(name)}?dir=/path"
            )
    asked = frozenset(given)
    if scheme == "kube":
        _kubernetes(url, given)
    else:
        _choice(url, given, "controllers", ("on", "off"))
        _not_kubernetes(url, given)
    return Target(scheme, name, _options(url, given), asked)


_ELSEWHERE = ("runtime", "clock", "cpus", "memory", "pods", "dir")


def _kubernetes(url: str, given: dict[str, Any]) -> None:
    """What is possible for a Kubernetes cluster."""
    wrong = next((key for key in _ELSEWHERE if key in given), None)
    if wrong:
        raise VcnbError(
            f"cannot connect to {url!r}: {wrong}= is for clusters in this process; Kubernetes has nodes of its own"
        )
    given.setdefault("controllers", "off")
    if given.get("kubeconfig"):
        given["kubeconfig"] = str(Path(given["kubeconfig"]).expanduser())


def _not_kubernetes(url: str, given: Mapping[str, Any]) -> None:
    wrong = next((key for key in ("namespace", "kubeconfig") if key in given), None)
    if wrong:
        raise VcnbError(f"cannot connect to {url!r}: {wrong}= is for Kubernetes clusters (kube://context)")


def _suggested(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:63] or "default"


def _options(url: str, given: dict[str, Any]) -> Options:
    fields = {field.name for field in dataclasses.fields(Options)}
    for key in given:
        if key not in fields:
            near = difflib.get_close_matches(key, fields, n=1)
            hint = f"did you mean {near[0]!r}?" if near else "known options: " + ", ".join(sorted(fields))
            raise VcnbError(f"cannot connect to {url!r}: unknown option {key!r}; {hint}")
    _choice(url, given, "runtime", get_args(RuntimeName))
    _choice(url, given, "controllers", ("on", "off", "force"))
    _choice(url, given, "clock", get_args(ClockName))
    _choice(url, given, "compat", ("default", "strict"))
    for key, kind in (("cpus", float), ("pods", int), ("cache_workers", int)):
        if key in given:
            try:
                given[key] = kind(given[key])
                positive = 0 < given[key] < float("inf")
            except (TypeError, ValueError):
                positive = False
            if not positive:
                raise VcnbError(f"cannot connect to {url!r}: {key} must be a number above 0, not {given[key]!r}")
    if "memory" in given:
        given["memory"] = _bytes(url, given["memory"])
    _cache(url, given)
    options = Options(**given)
    if options.clock == "virtual" and options.runtime != "simulated":
        raise VcnbError(
            f"cannot connect to {url!r}: clock=virtual goes with runtime=simulated; real processes need time"
        )
    return options


def _cache(url: str, given: dict[str, Any]) -> None:
    """The options of the cache."""
    if not given.keys() & {"cache", "cache_capacity", "cache_dir"}:
        return
    from vcnb.client.cache.place import capacity_of, parse_cache_url

    parse_cache_url(given.get("cache"))
    if "cache_dir" in given:
        given["cache_dir"] = str(given["cache_dir"])
    if "cache_capacity" in given:
        try:
            capacity_of(given["cache_capacity"])
        except ValueError as error:
            raise VcnbError(
                f"cannot connect to {url!r}: cache_capacity must be a size such as 10Gi, not "
                f"{given['cache_capacity']!r}: {error}"
            ) from None
        given["cache_capacity"] = str(given["cache_capacity"])


def _bytes(url: str, value: Any) -> str:
    from vcnb.resources.quantity import Quantity, QuantityError

    try:
        if Quantity.parse(value) > Quantity.parse(0):
            return str(value)
    except (QuantityError, TypeError):
        pass
    raise VcnbError(f"cannot connect to {url!r}: memory must be a quantity above 0, such as 8Gi, not {value!r}")


def _choice(url: str, given: dict[str, Any], key: str, allowed: tuple[str, ...]) -> None:
    if key in given and given[key] not in allowed:
        shown = ", ".join(value for value in allowed if value)
        raise VcnbError(f"cannot connect to {url!r}: {key}={given[key]} is not known; possible: {shown}")
