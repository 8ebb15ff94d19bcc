"""Names of pods and Services as a hosts file: the name service of sandboxed pods.

A pod with ``spec.hostname`` and ``spec.subdomain`` (the svc plugin sets both) is ``hostname.subdomain`` and ``hostname``
in its own namespace, and ``hostname.subdomain.<namespace>`` everywhere. A Service is a name for the pods it selects.
Every pod has its names as soon as it has an address, ready or not: unlike DNS a hosts file cannot be asked twice.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from vcnb.local.node.layout import Layout
from vcnb.resources.phases import POD_FINISHED
from vcnb.store.protocol import Obj

__all__ = ["HostsFiles", "hosts_text", "machine_lines", "named_pods", "write_in_place"]

_DOMAINS = ("", ".svc", ".svc.cluster.local")
_HEAD = "127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n"


def named_pods(pods: Iterable[Obj]) -> list[Obj]:
    """The pods that have an address and have not ended."""
    return [
        pod
        for pod in pods
        if (pod.get("status") or {}).get("podIP") and (pod["status"].get("phase") or "") not in POD_FINISHED
    ]


def hosts_text(namespace: str, pods: Iterable[Obj], services: Iterable[Obj], host_lines: str = "") -> str:
    """The hosts file that the pods of a namespace see. ``host_lines`` are entries of the machine itself."""
    lines = []
    named = named_pods(pods)
    for pod in named:
        names = _pod_names(pod, local=_namespace(pod) == namespace)
        if names:
            lines.append(f"{pod['status']['podIP']}\t{' '.join(names)}")
    for service in services:
        names = _domain_names(service["metadata"]["name"], _namespace(service), local=_namespace(service) == namespace)
        lines += [f"{pod['status']['podIP']}\t{' '.join(names)}" for pod in named if _selects(service, pod)]
    return _HEAD + host_lines + "".join(f"{line}\n" for line in lines)


def _pod_names(pod: Obj, *, local: bool) -> list[str]:
    spec = pod["spec"]
    hostname = str(spec.get("hostname") or pod["metadata"]["name"])
    if not spec.get("subdomain"):
        return [hostname] if local else []
    names = _domain_names(f"{hostname}.{spec['subdomain']}", _namespace(pod), local=local)
    return [*names, hostname] if local else names


def _domain_names(name: str, namespace: str, *, local: bool) -> list[str]:
    full = [f"{name}.{namespace}{domain}" for domain in _DOMAINS]
    return [name, *full] if local else full


def _namespace(obj: Obj) -> str:
    return str(obj["metadata"].get("namespace") or "default")


def _selects(service: Obj, pod: Obj) -> bool:
    selector: Mapping[str, Any] = (service.get("spec") or {}).get("selector") or {}
    labels = pod["metadata"].get("labels") or {}
    return (
        bool(selector)
        and _namespace(service) == _namespace(pod)
        and all(labels.get(key) == value for key, value in selector.items())
    )


def machine_lines() -> str:
    """Entries of the machine's own hosts file, so that names a user has put there work in pods, too."""
    own = {"localhost", "ip6-localhost", "ip6-loopback", socket.gethostname()}
    try:
        text = Path("/etc/hosts").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    lines = [line.split("#")[0].split() for line in text.splitlines()]
    return "".join(f"{words[0]}\t{' '.join(words[1:])}\n" for words in lines if len(words) > 1 and not own & set(words))


def write_in_place(path: Path, text: str) -> None:
    """Give a file another content without giving it another inode: running pods have it mounted."""
    data = text.encode()
    file = os.open(path, os.O_WRONLY | os.O_CREAT, 0o644)
    try:
        os.pwrite(file, data, 0)
        os.ftruncate(file, len(data))
    finally:
        os.close(file)


class HostsFiles:
    """One hosts file per namespace, kept true while sandboxes have it mounted."""

    def __init__(
        self, layout: Layout, pods: Callable[[], Iterable[Obj]], services: Callable[[], Iterable[Obj]]
    ) -> None:
        self._layout = layout
        self._pods = pods
        self._services = services
        self._used: dict[str, str] = {}
        self._stale = False

    def changed(self) -> None:
        """A pod or Service has come, changed or gone; :meth:`refresh` follows."""
        self._stale = True

    def refresh(self) -> None:
        """Rewrite the files in use if something has changed since."""
        if not self._stale:
            return
        self._stale = False
        pods, services, machine = list(self._pods()), list(self._services()), machine_lines()
        for namespace, before in self._used.items():
            text = hosts_text(namespace, pods, services, machine)
            if text != before:
                self._used[namespace] = text
                write_in_place(self._layout.hosts(namespace), text)

    def file(self, namespace: str) -> Path:
        """The file of a namespace, up to date."""
        if namespace not in self._used:
            self._used[namespace] = ""
            self._stale = True
        self.refresh()
        return self._layout.hosts(namespace)
