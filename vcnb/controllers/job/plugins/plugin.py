"""What a Job plugin is: its hooks, what it is given, and how it edits a pod.

A plugin is declared in ``spec.plugins`` of a Job as ``name: [arguments]``. The controller calls its hooks:

==============  ==========================================================  ==============================================
hook            when                                                        an error
==============  ==========================================================  ==============================================
on_job_add      every sync while the phase is empty or Pending              event PluginError, the sync is tried again
on_job_update   every sync in any other phase that syncs                    the same
on_pod_create   once per pod that is about to be created                    the sync is tried again
on_job_delete   a kill pass, after its pods were deleted                    the kill pass is tried again
==============  ==========================================================  ==============================================

Plugins keep no state and every hook may be called again. What a plugin put beside the Job is named in
``status.controlledResources`` as ``plugin-<name>: <name>``; hooks edit that map, the controller stores it. Each created
object is owned by the Job, so it goes with the Job even when no hook is called.

Source: Volcano job controller, plugins (reference: plugins.md, sections 1.4 to 1.7).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Protocol, TypeAlias

from vcnb.controllers.job.plugins.flags import Arguments, Flag, parse
from vcnb.errors import VcnbError
from vcnb.resources.kinds import JOB, Kind
from vcnb.resources.names import DEFAULT_TASK, TASK_SPEC
from vcnb.store.protocol import Obj

__all__ = [
    "DEFAULT_BEHAVIOUR",
    "Plugin",
    "PluginApi",
    "PluginBehaviour",
    "PluginError",
    "edit_containers",
    "metadata_for",
    "owner_reference",
    "pod_index",
    "pod_number",
    "pod_task",
    "with_env",
    "with_mount",
    "with_port",
]

Container: TypeAlias = dict[str, Any]


class PluginError(VcnbError):
    """A plugin cannot do its part now; the message names the plugin and the object, and says what would help."""


class PluginApi(Protocol):
    """What hooks may do to the cluster: a part of ``ObjectStore``, so every store is one. Errors are the store's."""

    async def get(self, kind: Kind, name: str, namespace: str | None = None) -> Obj:
        """The object. Raises NotFound."""
        ...

    async def create(self, obj: Obj) -> Obj:
        """Store a new object. Raises AlreadyExists."""
        ...

    async def update(self, obj: Obj) -> Obj:
        """Replace an object. Raises Conflict when it has changed since it was read."""
        ...

    async def delete(self, kind: Kind, name: str, namespace: str | None = None, *, uid: str | None = None) -> Obj:
        """Delete an object; with ``uid`` only that one. Raises NotFound, Conflict."""
        ...


@dataclass(frozen=True)
class PluginBehaviour:
    """Where the plugins differ from Volcano's: one switch per quirk, all on by default (docs/differences-plugins.md)."""

    check_owner: bool = True
    """Objects that belong to something else are neither taken over nor deleted."""
    restore_objects: bool = True
    """``on_job_update`` also makes what is missing, and ``on_job_delete`` removes what was made before its key was stored."""
    keep_ssh_keys: bool = True
    """A changed set of hosts rewrites the client configuration of ssh, never the key pair."""
    ssh_port_of_full_names: bool = True
    """``--ssh-port`` holds for ``hostname.subdomain`` as well, the form that ``MPI_HOST`` has."""
    ssh_mode_follows_user: bool = True
    """The mode of ssh's files follows the pod's ``runAsUser`` where it is given."""
    template_wins: bool = True
    """A variable of a framework, or a mount path, that a container sets itself is left alone."""
    serve_subdomains: bool = True
    """A template's own ``subdomain`` gets a headless Service too."""
    bound_hosts_variables: bool = True
    """``VC_<TASK>_HOSTS`` is left out where no process could start with it (128 KiB and more)."""
    rank_every_master: bool = True
    """pytorch numbers several masters 0, 1, ... and the workers after them."""
    numeric_target_ports: bool = True
    """Ray's head Service points at port numbers, which need no matching port names in the container."""
    accept_guide_flags: bool = True
    """Flags as Volcano's user guides spell them are understood (ray: ``--clientServerPort``)."""

    @classmethod
    def default(cls) -> PluginBehaviour:
        """What a user would want."""
        return cls()

    @classmethod
    def strict(cls) -> PluginBehaviour:
        """Exactly Volcano's."""
        return cls(**{field.name: False for field in fields(cls)})

    @classmethod
    def of(cls, compat: str) -> PluginBehaviour:
        """The behaviour for a cluster's ``compat`` ("default" or "strict")."""
        return cls.strict() if compat == "strict" else cls.default()


DEFAULT_BEHAVIOUR = PluginBehaviour()


class Plugin:
    """Base of all plugins: keeps the key in ``controlledResources``, does nothing else.

    ``args`` is the plugin's list in ``spec.plugins``; ``arguments`` is what it says. A mistake in it fails nothing
    (``arguments.problem`` tells; admission warns of it).
    """

    name: ClassVar[str]
    flags: ClassVar[tuple[Flag, ...]] = ()

    def __init__(self, args: Sequence[str] | None = (), behaviour: PluginBehaviour = DEFAULT_BEHAVIOUR) -> None:
        self.behaviour = behaviour
        self.arguments = self.read(args, behaviour)

    @classmethod
    def read(cls, args: Sequence[str] | None, behaviour: PluginBehaviour = DEFAULT_BEHAVIOUR) -> Arguments:  # noqa: ARG003 - for plugins with a quirk
        """The arguments as the plugin understands them."""
        return parse(cls.flags, args)

    @property
    def key(self) -> str:
        """The plugin's key in ``status.controlledResources``."""
        return f"plugin-{self.name}"

    def registered(self, controlled: Mapping[str, str]) -> bool:
        """Whether the Job's status already says that this plugin's objects are there."""
        return controlled.get(self.key) == self.name

    async def on_job_add(self, job: Obj, controlled: dict[str, str], api: PluginApi) -> None:
        """Make what the Job's pods need."""
        controlled[self.key] = self.name

    async def on_job_update(self, job: Obj, controlled: dict[str, str], api: PluginApi) -> None:
        """Bring what was made up to date with the Job."""

    def on_pod_create(self, pod: dict[str, Any], job: Obj) -> None:
        """Complete a pod that is about to be created.

        ``pod``, its ``metadata`` and its ``spec`` are fresh and may be changed; what lies deeper is replaced, never
        changed in place, so that pods may share it.
        """

    async def on_job_delete(self, job: Obj, controlled: dict[str, str], api: PluginApi) -> None:
        """Remove what ``on_job_add`` made."""
        controlled.pop(self.key, None)


# -- objects that belong to the Job -------------------------------------------------------------------------------------


def owner_reference(job: Obj) -> dict[str, Any]:
    """The controller owner reference to a Job, as every object of it carries."""
    metadata = job["metadata"]
    return {
        "apiVersion": JOB.api_version,
        "kind": JOB.kind,
        "name": metadata["name"],
        "uid": metadata.get("uid", ""),
        "controller": True,
        "blockOwnerDeletion": True,
    }


def metadata_for(job: Obj, name: str) -> dict[str, Any]:
    """Metadata of an object that a plugin creates: in the Job's namespace, owned by the Job, without labels."""
    namespace = job["metadata"].get("namespace") or "default"
    return {"name": name, "namespace": namespace, "ownerReferences": [owner_reference(job)]}


# -- who a pod is -------------------------------------------------------------------------------------------------------


def pod_task(pod: Mapping[str, Any]) -> str:
    """The name of the pod's task, from its annotation; ``default`` when there is none."""
    return (pod["metadata"].get("annotations") or {}).get(TASK_SPEC) or DEFAULT_TASK


def pod_index(pod: Mapping[str, Any]) -> str:
    """The pod's index in its task: what follows the last dash of its name; empty for a name of fewer than three parts."""
    parts = pod["metadata"]["name"].rsplit("-", 2)
    return parts[2] if len(parts) == 3 else ""


def pod_number(pod: Mapping[str, Any], plugin: str) -> int:
    """The pod's index as a number. Raises PluginError, naming the plugin, when its name does not end in one."""
    index = pod_index(pod)
    if not (index.isascii() and index.isdigit()):
        raise PluginError(f"plugin {plugin}: the name of pod {pod['metadata']['name']} does not end in an index")
    return int(index)


# -- edits of a pod -----------------------------------------------------------------------------------------------------


def edit_containers(pod: dict[str, Any], edit: Callable[[Container], Container], *, init: bool) -> None:
    """Replace every container (with ``init``, every initContainer too) by what ``edit`` makes of it."""
    spec = pod["spec"]
    spec["containers"] = [edit(container) for container in spec.get("containers") or ()]
    if init and spec.get("initContainers"):
        spec["initContainers"] = [edit(container) for container in spec["initContainers"]]


def with_env(container: Container, entries: Sequence[Mapping[str, Any]], *, template_wins: bool = False) -> Container:
    """The container with variables appended. Of two with one name the later is what the process sees (Kubernetes).

    With ``template_wins`` a variable that the container has already is not added.
    """
    present = container.get("env") or ()
    if template_wins and present:
        own = {entry["name"] for entry in present}
        entries = [entry for entry in entries if entry["name"] not in own]
    return {**container, "env": [*present, *entries]} if entries else container


def with_port(container: Container, name: str, number: int) -> Container:
    """The container with a named TCP port, unless it declares that number already."""
    ports = container.get("ports") or ()
    if any(port.get("containerPort") == number for port in ports):
        return container
    return {**container, "ports": [*ports, {"name": name, "containerPort": number, "protocol": "TCP"}]}


def with_mount(container: Container, mount: Mapping[str, Any], *, template_wins: bool = False) -> Container:
    """The container with a volume mount. With ``template_wins``, not where it mounts something at that path already."""
    mounts = container.get("volumeMounts") or ()
    if template_wins and any(_same_path(own.get("mountPath"), mount["mountPath"]) for own in mounts):
        return container
    return {**container, "volumeMounts": [*mounts, mount]}


def _same_path(one: str | None, other: str) -> bool:
    return one is not None and one.rstrip("/") == other.rstrip("/")
