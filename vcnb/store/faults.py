"""A store whose calls can be made to fail, to see how a controller takes it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

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
from vcnb.resources.kinds import Kind, find_kind
from vcnb.store.passing import PassingStore, Verb
from vcnb.store.protocol import ObjectStore

__all__ = ["FaultError", "FaultInjector", "FaultVerb"]

FaultVerb: TypeAlias = Verb
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


class FaultInjector(PassingStore):
    """An ObjectStore that hands every call on to another one, except those that are to fail.

    A failing call does not reach the store. A patch with ``subresource="status"`` counts as ``update_status``.
    """

    def __init__(self, store: ObjectStore) -> None:
        super().__init__(store)
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

    def clear(self) -> None:
        """Let every call succeed again."""
        self._faults.clear()

    @property
    def pending(self) -> int:
        """How many faults have not been used up."""
        return len(self._faults)

    def writing(self, verb: FaultVerb, kind: Kind, namespace: str | None, name: str) -> None:
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
