"""What the pods of one node share: the store, the fork server, the runtime, names and addresses."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from vcnb.clock import Clock
from vcnb.local.node.addresses import Addresses
from vcnb.local.node.environment import MissingObject, Sources
from vcnb.local.node.hosts import HostsFiles
from vcnb.local.node.launch import Launcher
from vcnb.local.node.layout import Attempt, Layout
from vcnb.local.node.notices import Notices
from vcnb.local.node.rooms import Mount
from vcnb.local.node.runtimes import DEFAULT_TERMINATION_LOG, Runtime
from vcnb.resources.kinds import CONFIGMAP, PERSISTENTVOLUMECLAIM, SECRET
from vcnb.store.informer import Informers
from vcnb.store.protocol import Obj, ObjectStore

__all__ = ["NodeServices"]


@dataclass(frozen=True)
class NodeServices:
    """Handed to every pod of the node."""

    store: ObjectStore
    clock: Clock
    informers: Informers
    layout: Layout
    launcher: Launcher
    runtime: Runtime
    addresses: Addresses
    hosts: HostsFiles
    notices: Notices
    allocatable: Mapping[str, str]
    base_env: Mapping[str, str]
    cwd: Path
    """The working directory of containers that set none: the kernel's."""
    event: Callable[[Obj, Literal["Normal", "Warning"], str, str], None]

    def sources(self, namespace: str) -> Sources:
        """ConfigMaps and Secrets of a namespace."""
        return Sources(
            lambda name: self.informers[CONFIGMAP].get(name, namespace),
            lambda name: self.informers[SECRET].get(name, namespace),
            self.allocatable,
        )

    def claim(self, namespace: str, name: str) -> Path:
        """The directory of a claim. Raises MissingObject."""
        claim = self.informers[PERSISTENTVOLUMECLAIM].get(name, namespace)
        if claim is None:
            raise MissingObject(f'persistentvolumeclaim "{name}" not found')
        path = self.layout.claim(claim)
        path.mkdir(parents=True, exist_ok=True)
        return path

    def own_mounts(self, namespace: str, spec: Mapping[str, Any], attempt: Attempt) -> list[Mount]:
        """What every container has mounted beside its volumes: the names of other pods, and its termination log."""
        log = str(spec.get("terminationMessagePath") or DEFAULT_TERMINATION_LOG)
        return [Mount("/etc/hosts", self.hosts.file(namespace), read_only=False), Mount(log, attempt.termination_log)]
