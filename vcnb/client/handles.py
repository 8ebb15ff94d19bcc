"""Handles: what a collection gives out. A handle names one object (kind, namespace, name, uid) and reads it when asked.

An object that is deleted and made again under its name is another object: the old handle keeps showing the last state it
saw and says that it is gone.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any

from vcnb.client.bridge import Bridge, twins
from vcnb.client.functions.wire import last_lines, visible
from vcnb.client.jsonvalues import plain
from vcnb.client.logs import check_logs
from vcnb.client.masking import masked
from vcnb.client.records import EventRecord, event_record, moment
from vcnb.errors import NotFound, Problem, ServerTimeout, Unreachable
from vcnb.resources import kinds
from vcnb.resources.kinds import Kind
from vcnb.resources.names import LAST_APPLIED
from vcnb.store.protocol import Obj

if TYPE_CHECKING:
    from vcnb.client.backend import Reader
    from vcnb.client.changes import Feed
    from vcnb.client.cluster import Cluster

__all__ = ["Handle", "PodHandle", "QueueHandle"]


class Handle:
    """One object of a cluster."""

    def __init__(self, cluster: Cluster, kind: Kind, obj: Obj, warnings: tuple[Problem, ...] = ()) -> None:
        self._cluster = cluster
        self._kind = kind
        self._seen = obj
        self._gone = False
        #: What was accepted at submission but surely not meant: ``(path, line, message)``.
        self.warnings = warnings

    @property
    def _bridge(self) -> Bridge:
        return self._cluster._bridge  # noqa: SLF001 - a handle is a part of its cluster

    @property
    def cluster(self) -> Cluster:
        """The cluster it lives in."""
        return self._cluster

    @property
    def kind(self) -> str:
        """The kind, as in a manifest."""
        return self._kind.kind

    @property
    def name(self) -> str:
        """``metadata.name``."""
        return str(self._seen["metadata"]["name"])

    @property
    def namespace(self) -> str:
        """``metadata.namespace``; empty for cluster-scoped kinds."""
        return str(self._seen["metadata"].get("namespace", ""))

    @property
    def uid(self) -> str:
        """``metadata.uid``: tells this object from a later one of the same name."""
        return str(self._seen["metadata"]["uid"])

    @property
    def object(self) -> dict[str, Any]:
        """The current manifest as a plain dict of your own; the last known one when the object is gone."""
        return dict(plain(self._current()))

    @property
    def exists(self) -> bool:
        """Whether the object is still there."""
        self._current()
        return not self._gone

    @property
    def status(self) -> dict[str, Any]:
        """``status`` of the current manifest; empty when there is none yet."""
        return dict(plain(self._current().get("status", {})))

    @property
    def spec(self) -> dict[str, Any]:
        """``spec`` of the current manifest; empty when the kind has none."""
        return dict(plain(self._current().get("spec", {})))

    @property
    def labels(self) -> dict[str, str]:
        """``metadata.labels``."""
        return dict(self._current()["metadata"].get("labels", {}))

    @property
    def annotations(self) -> dict[str, str]:
        """``metadata.annotations``."""
        return dict(self._current()["metadata"].get("annotations", {}))

    @property
    def created(self) -> Any:
        """When it was created: a UTC datetime."""
        return moment(self._seen["metadata"].get("creationTimestamp"))

    @property
    def phase(self) -> str:
        """``status.phase``; empty when there is none yet."""
        return str(self._current().get("status", {}).get("phase", ""))

    def _current(self) -> Obj:
        if not self._cluster.closed:
            self._bridge.run(self._refresh())
        return self._seen

    def _last_known(self) -> Obj:
        """The current state; while the server is away the one that was seen last. For what shows the object."""
        try:
            return self._current()
        except (Unreachable, ServerTimeout):
            return self._seen

    async def _refresh(self) -> Obj:
        """Read the object again, on the loop; keeps the last state when it is gone."""
        try:
            found = await self._cluster._store.get(self._kind, self.name, self.namespace)  # noqa: SLF001
        except NotFound:
            self._gone = True
            return self._seen
        if found["metadata"]["uid"] == self.uid:
            self._seen = found
        else:
            self._gone = True
        return self._seen

    async def _refresh_if_heard(self) -> Obj:
        """As ``_refresh``; the last known state while the server is away. For those who follow changes anyway."""
        try:
            return await self._refresh()
        except (Unreachable, ServerTimeout):
            return self._seen

    async def _look(self, reader: Reader) -> Obj:
        """As ``_refresh``, but through a reader that may be a moment behind; what it misses is asked for."""
        found = await reader.find(self._kind, self.name, self.namespace)
        if found is None or found["metadata"]["uid"] != self.uid:
            return await self._refresh()
        self._seen = found
        return found

    def _feed(self) -> AbstractAsyncContextManager[Feed]:
        """The object's states from now on."""
        return self._cluster._changes.follow(self._kind, self.uid, self.namespace)  # noqa: SLF001

    @property
    def events(self) -> list[EventRecord]:
        """Events about this object, oldest first."""
        return self._bridge.run(self._events())

    async def _events(self) -> list[EventRecord]:
        return [event_record(event) for event in await self._raw_events()]

    async def _raw_events(self) -> list[Obj]:
        found = await self._cluster._store.list(  # noqa: SLF001
            kinds.EVENT,
            self.namespace or "default",
            field_selector=f"involvedObject.kind={self.kind},involvedObject.name={self.name}",
        )
        mine = [event for event in found.items if event["involvedObject"].get("uid") == self.uid]
        return sorted(mine, key=lambda event: str(event.get("lastTimestamp") or ""))

    def manifest(self) -> str:
        """The object as YAML that can be applied again, without status and what the server set."""
        from vcnb.resources.manifest import dump

        return dump(exported(self._current()))

    async def _describe(self) -> str:
        """Everything about the object as text, with its events."""
        from vcnb.scene.describe import describe_object

        obj = await self._refresh()
        found = await self._raw_events()
        return describe_object(masked(obj), found, self._cluster.time())

    describe, describe_async = twins(_describe)

    async def _delete(self) -> None:
        await self._cluster._store.delete(self._kind, self.name, self.namespace, uid=self.uid)  # noqa: SLF001

    delete, delete_async = twins(_delete)

    def __repr__(self) -> str:
        where = f"{self.namespace}/{self.name}" if self.namespace else self.name
        return f"<{self.kind} {where}>"


def exported(obj: Obj) -> dict[str, Any]:
    """An object as a person would write it: no status, no uid, no versions."""
    meta: Mapping[str, Any] = obj["metadata"]
    drop = {"uid", "resourceVersion", "creationTimestamp", "generation", "managedFields", "deletionTimestamp"}
    kept = {key: plain(value) for key, value in meta.items() if key not in drop}
    annotations = {key: value for key, value in (kept.get("annotations") or {}).items() if key != LAST_APPLIED}
    if annotations:
        kept["annotations"] = annotations
    else:
        kept.pop("annotations", None)
    return {**{key: plain(value) for key, value in obj.items() if key not in ("status", "metadata")}, "metadata": kept}


class QueueHandle(Handle):
    """A Queue: ``state`` and the verbs ``open`` and ``close``, which create a bus Command as vcctl does."""

    @property
    def state(self) -> str:
        """``Open``, ``Closed``, ``Closing`` or ``Unknown``; a queue that no controller has seen yet counts as Open."""
        return str(self._current().get("status", {}).get("state") or "Open")

    async def _command(self, action: str) -> None:
        await self._cluster._store.create(command_for(self._seen, self._kind, action, self._cluster.namespace))  # noqa: SLF001

    async def _open(self) -> None:
        """Let the queue take and start jobs again."""
        await self._command("OpenQueue")

    async def _close(self) -> None:
        """Take no new jobs and start nothing; what runs goes on."""
        await self._command("CloseQueue")

    open, open_async = twins(_open)
    close, close_async = twins(_close)


class PodHandle(Handle):
    """A Pod: its node, the container's exit code, and logs."""

    @property
    def node(self) -> str:
        """The node it is bound to; empty when it is not."""
        return str(self._current().get("spec", {}).get("nodeName", ""))

    @property
    def exit_code(self) -> int | None:
        """The exit code of the first container that ended with one that is not 0, else 0; None while none has ended."""
        codes = [
            state["terminated"].get("exitCode", 0)
            for container in self._current().get("status", {}).get("containerStatuses", ())
            if "terminated" in (state := container.get("state", {}))
        ]
        return next((code for code in codes if code), codes[0] if codes else None)

    async def _logs(self, container: str | None = None, *, tail: int | None = None, previous: bool = False) -> str:
        """What the pod has written so far. Bytes that are not UTF-8 become U+FFFD."""
        check_logs(f"pod {self.name!r}", [self._seen.get("spec", {})], container, tail)
        text = await self._cluster._logs.of_pod(self._seen, container, previous=previous)  # noqa: SLF001
        return last_lines(visible(text), tail)

    logs, logs_async = twins(_logs)


def command_for(target: Obj, kind: Kind, action: str, namespace: str) -> dict[str, Any]:
    """The bus Command that vcctl creates: owned by its target, named ``<target>-<action>-...``."""
    meta = target["metadata"]
    reference = {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "name": meta["name"],
        "uid": meta["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }
    return {
        "apiVersion": kinds.COMMAND.api_version,
        "kind": "Command",
        "metadata": {
            "generateName": f"{meta['name']}-{action.lower()}-",
            "namespace": namespace,
            "ownerReferences": [reference],
        },
        "action": action,
        "target": reference,
    }
