"""A store whose calls can be made to fail, to see how a controller takes it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from vcnb.errors import (
    AlreadyExists,
    ApiError,
    Conflict,
    Forbidden,
    InternalError,
    NotFound,
    ObjectRef,
    ServerTimeout,
)
from vcnb.resources.kinds import Kind, UnknownKind, find_kind, kind_of
from vcnb.store.protocol import Obj, ObjectList, ObjectStore, PatchType, Propagation, Watch

__all__ = ["FaultError", "FaultInjector", "FaultVerb"]

FaultVerb: TypeAlias = Literal["create", "update", "delete", "patch", "update_status"]
FaultError: TypeAlias = Literal["Conflict", "ServerTimeout", "Forbidden", "NotFound", "AlreadyExists", "InternalError"]

_VERBS: tuple[FaultVerb, ...] = ("create", "update", "delete", "patch", "update_status")
_ERRORS: dict[str, type[ApiError]] = {
    "Conflict": Conflict,
    "ServerTimeout": ServerTimeout,
    "Forbidden": Forbidden,
    "NotFound": NotFound,
    "AlreadyExists": AlreadyExists,
    "InternalError": InternalError,
}


@dataclass
class _Fault:
    verb: FaultVerb
    kind: Kind | None
    times: int | None
    skip: int
    error: type[ApiError]
    message: str


class FaultInjector:
    """An ObjectStore that hands every call on to another one, except those that are to fail.

    A failing call does not reach the store. A patch with ``subresource="status"`` counts as ``update_status``.
    """

    def __init__(self, store: ObjectStore) -> None:
        self._store = store
        self._faults: list[_Fault] = []

    def fail_next(
        self,
        verb: FaultVerb,
        kind: Kind | str | None = None,
        times: int | None = 1,
        skip: int = 0,
        error: FaultError = "InternalError",
        message: str | None = None,
    ) -> None:
        """Let the next ``times`` calls of ``verb`` on ``kind`` fail, after ``skip`` that succeed.

        ``kind`` is a Kind or its name (None: any kind); ``times=None`` lets all fail until ``clear``. Raises ValueError
        for an unknown verb or error.
        """
        if verb not in _VERBS:
            raise ValueError(f"{verb!r} is no verb; one of {', '.join(_VERBS)}")
        if error not in _ERRORS:
            raise ValueError(f"{error!r} is no error; one of {', '.join(_ERRORS)}")
        if skip < 0 or (times is not None and times < 1):
            raise ValueError("times is at least 1 (or None) and skip at least 0")
        kind = find_kind(kind) if isinstance(kind, str) else kind
        self._faults.append(_Fault(verb, kind, times, skip, _ERRORS[error], message or f"injected {error}"))

    @property
    def immediate(self) -> bool:
        """Whether the store behind answers at once (see ``MemoryStore.immediate``)."""
        return bool(getattr(self._store, "immediate", False))

    def clear(self) -> None:
        """Let every call succeed again."""
        self._faults.clear()

    @property
    def pending(self) -> int:
        """How many faults have not been used up."""
        return len(self._faults)

    def _check(self, verb: FaultVerb, kind: Kind, namespace: str | None, name: str) -> None:
        """Raise the first fault that is for this call. A call is counted by every fault that it could have met."""
        for fault in self._faults:
            if fault.verb != verb or (fault.kind is not None and fault.kind != kind):
                continue
            if fault.skip:
                fault.skip -= 1
                continue
            if fault.times is not None:
                fault.times -= 1
                if fault.times == 0:
                    self._faults.remove(fault)
            ref = ObjectRef(kind.kind, name, namespace or "")
            raise fault.error(f"{verb} {ref}: {fault.message}", ref)

    def _check_object(self, verb: FaultVerb, obj: Obj) -> None:
        if not self._faults:
            return
        try:
            kind = kind_of(obj)
        except UnknownKind:
            return  # for the store to refuse
        metadata = obj.get("metadata") or {}
        name = str(metadata.get("name") or metadata.get("generateName") or "")
        self._check(verb, kind, metadata.get("namespace"), name)

    async def get(self, kind: Kind, name: str, namespace: str | None = None) -> Obj:
        return await self._store.get(kind, name, namespace)

    async def list(
        self, kind: Kind, namespace: str | None = None, *, label_selector: str = "", field_selector: str = ""
    ) -> ObjectList:
        return await self._store.list(kind, namespace, label_selector=label_selector, field_selector=field_selector)

    async def watch(
        self,
        kind: Kind,
        namespace: str | None = None,
        *,
        resource_version: str | None = None,
        label_selector: str = "",
    ) -> Watch:
        return await self._store.watch(
            kind, namespace, resource_version=resource_version, label_selector=label_selector
        )

    async def create(self, obj: Obj) -> Obj:
        self._check_object("create", obj)
        return await self._store.create(obj)

    async def update(self, obj: Obj) -> Obj:
        self._check_object("update", obj)
        return await self._store.update(obj)

    async def update_status(self, obj: Obj) -> Obj:
        self._check_object("update_status", obj)
        return await self._store.update_status(obj)

    async def patch(
        self,
        kind: Kind,
        name: str,
        namespace: str | None,
        patch: Mapping[str, Any] | Sequence[Mapping[str, Any]],
        *,
        type: PatchType = "merge",
        subresource: Literal["", "status"] = "",
    ) -> Obj:
        self._check("update_status" if subresource else "patch", kind, namespace, name)
        return await self._store.patch(kind, name, namespace, patch, type=type, subresource=subresource)

    async def delete(
        self,
        kind: Kind,
        name: str,
        namespace: str | None = None,
        *,
        propagation: Propagation = "Background",
        grace_period_seconds: float | None = None,
        uid: str | None = None,
        resource_version: str | None = None,
    ) -> Obj:
        self._check("delete", kind, namespace, name)
        return await self._store.delete(
            kind,
            name,
            namespace,
            propagation=propagation,
            grace_period_seconds=grace_period_seconds,
            uid=uid,
            resource_version=resource_version,
        )

    async def close(self) -> None:
        await self._store.close()
