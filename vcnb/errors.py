"""The exceptions of vcnb.

    VcnbError
    ├── InvalidObject        what a person wrote is refused; ``.errors`` lists every problem
    ├── InvalidState         a verb that makes no sense for the object's present state
    ├── ApiError             what a store answers; ``.status`` is the HTTP status of Kubernetes
    │   ├── NotFound         404
    │   ├── MissingKind      404, the server does not know the kind: its definition is not installed there
    │   ├── AlreadyExists    409
    │   ├── Conflict         409, a stale resourceVersion or uid
    │   ├── Unauthorized     401, the server does not know who asks: no credentials, or expired ones
    │   ├── Forbidden        403
    │   │   └── QuotaExceeded     the namespace has no room left for the object
    │   ├── Expired          410, a watch or list from a version that is no longer kept
    │   ├── TooManyRequests  429, the server asks to come back later; the request was not carried out
    │   ├── Unreachable      503, no server answers; the request was not carried out
    │   ├── ServerTimeout    504, nothing is known about the outcome
    │   └── InternalError    500
    ├── JobFailed            a waited-for job ended in Failed, Terminated or Aborted
    │   ├── FlowFailed       a waited-for flow ended in Failed; ``.nodes`` names the nodes that failed
    │   ├── CallFailed       a call in a pod ended without an exception of its own to raise
    │   └── NotebookFailed   a notebook that ran as a job failed; ``.cell``, ``.ename``, ``.evalue``, ``.path``
    ├── PayloadError         a function, its arguments or a notebook cannot be sent to the pods
    ├── WaitTimeout          a wait ran out of time (the job goes on)
    ├── ClusterBusy          another process owns the embedded cluster; ``.pid``
    ├── ClusterClosed        a call on a cluster after ``close()``
    └── StoreCorrupt         the journal on disk cannot be trusted; nothing was deleted

A message says what happened, where (object, field path, line), and what to do next.
Every error shows itself in a notebook as its message alone, without a traceback, and keeps its name and text under
papermill (reference: IPython's ``_render_traceback_`` protocol).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

__all__ = [
    "AlreadyExists",
    "ApiError",
    "CallFailed",
    "ClusterBusy",
    "ClusterClosed",
    "Conflict",
    "Expired",
    "FlowFailed",
    "Forbidden",
    "InternalError",
    "InvalidObject",
    "InvalidState",
    "JobFailed",
    "MissingKind",
    "NotFound",
    "NotebookFailed",
    "PayloadError",
    "Problem",
    "QuotaExceeded",
    "ServerTimeout",
    "StoreCorrupt",
    "TooManyRequests",
    "Unauthorized",
    "Unreachable",
    "VcnbError",
    "WaitTimeout",
]


class VcnbError(Exception):
    """Base of every error that vcnb raises on purpose."""

    def _render_traceback_(self) -> list[str]:
        """One clean message instead of a traceback, for IPython and papermill."""
        return [f"{type(self).__name__}: {self}"]


class Problem(NamedTuple):
    """One thing that is wrong, or surely not meant, in an object that a person wrote.

    ``path`` is spelled ``spec.tasks[0].template.spec.containers[0].image``; ``line`` is 1-based in the text it came
    from, or None when the object did not come from text.
    """

    path: str
    line: int | None
    message: str

    def __str__(self) -> str:
        where = f"line {self.line}: " if self.line is not None else ""
        what = f"{self.path}: " if self.path else ""
        return f"{where}{what}{self.message}"


class InvalidObject(VcnbError):
    """Objects that are refused; every problem of every document is in ``errors``, in the order of the text."""

    def __init__(self, errors: list[Problem], subject: str = "") -> None:
        self.errors = errors
        self.subject = subject
        count = len(errors)
        head = f"{subject or 'the object'} is invalid: " + ("1 problem" if count == 1 else f"{count} problems")
        super().__init__("\n  ".join([head, *(str(error) for error in errors)]))


class InvalidState(VcnbError):
    """The verb makes no sense for the object's present state, for example suspending a finished job."""


@dataclass(frozen=True)
class ObjectRef:
    """Names one object in an error: kind, namespace (empty for cluster-scoped) and name."""

    kind: str
    name: str
    namespace: str = ""

    def __str__(self) -> str:
        where = f"{self.namespace}/{self.name}" if self.namespace else self.name
        return f"{self.kind} {where}"


class ApiError(VcnbError):
    """A store refused or failed a request; ``status`` is the HTTP status that Kubernetes uses for it."""

    status = 500

    def __init__(self, message: str, ref: ObjectRef | None = None) -> None:
        self.ref = ref
        super().__init__(message)


class NotFound(ApiError):
    """There is no such object (404)."""

    status = 404


class MissingKind(ApiError):
    """The server does not know the kind (404): its custom resource definition is not installed there.

    This is no NotFound: nothing is known about the object, so nobody may conclude that it is gone.
    """

    status = 404


class AlreadyExists(ApiError):
    """An object of that kind and name is there already (409)."""

    status = 409


class Conflict(ApiError):
    """The object has changed since it was read: its resourceVersion or uid is another one (409)."""

    status = 409


class Unauthorized(ApiError):
    """The server does not know who asks (401): there are no credentials, or they have expired."""

    status = 401


class Forbidden(ApiError):
    """The request is understood and refused (403)."""

    status = 403


class QuotaExceeded(Forbidden):
    """A resource quota of the namespace has no room left for the object (403)."""


class Expired(ApiError):
    """The resourceVersion to continue from is no longer kept: list again (410 Gone)."""

    status = 410


class TooManyRequests(ApiError):
    """The server asks to come back later (429); the request was not carried out."""

    status = 429


class Unreachable(ApiError):
    """No server answers, or it is not known where it is (503); the request was not carried out."""

    status = 503


class ServerTimeout(ApiError):
    """No answer in time; the request may or may not have been carried out (504)."""

    status = 504


class InternalError(ApiError):
    """The server failed (500)."""


class JobFailed(VcnbError):
    """A job that was waited for ended in Failed, Terminated or Aborted; ``phase`` says which, ``why`` says why."""

    def __init__(self, message: str, *, name: str = "", phase: str = "", why: str = "") -> None:
        self.name = name
        self.phase = phase
        self.why = why
        super().__init__(message)


class FlowFailed(JobFailed):
    """A flow that was waited for ended in Failed; ``nodes`` names the nodes that failed, ``why`` says why."""

    def __init__(
        self, message: str, *, name: str = "", phase: str = "", why: str = "", nodes: tuple[str, ...] = ()
    ) -> None:
        self.nodes = nodes
        super().__init__(message, name=name, phase=phase, why=why)


class CallFailed(JobFailed):
    """A call in a pod that left no exception to raise: its process crashed, its pod was lost, its result is too large ...

    ``reason`` is one word (``raised``, ``crashed``, ``timeout``, ``exit``, ``skew``, ``import``, ``unreadable``,
    ``unpicklable``, ``too large``, ``lost``, ``cancelled``, ``pending``); ``kind`` the name of what was raised;
    ``index`` the item; ``remote_traceback`` the traceback in the pod, as text.
    """

    def __init__(
        self, message: str, *, name: str = "", index: int = 0, reason: str = "", kind: str = "", traceback: str = ""
    ) -> None:
        self.index = index
        self.reason = reason
        self.kind = kind
        self.remote_traceback = traceback
        super().__init__(message, name=name, phase="Failed", why=message)


class NotebookFailed(JobFailed):
    """A notebook that ran as a job and failed.

    ``cell`` is the position of the failed cell from 0, None when no cell failed; ``ename``, ``evalue`` and
    ``traceback`` (a list of lines) are its error; ``path`` is where the notebook, as far as it was run, was saved.
    """

    def __init__(
        self,
        message: str,
        *,
        name: str = "",
        phase: str = "Failed",
        cell: int | None = None,
        ename: str = "",
        evalue: str = "",
        traceback: tuple[str, ...] = (),
        path: str = "",
    ) -> None:
        self.cell = cell
        self.ename = ename
        self.evalue = evalue
        self.traceback = traceback
        self.path = path
        super().__init__(message, name=name, phase=phase, why=message)


class PayloadError(VcnbError):
    """What is to be sent to the pods cannot be: it is too large, or a part of it cannot be pickled."""


class WaitTimeout(VcnbError, TimeoutError):
    """A wait ran out of time. What was waited for goes on."""


class ClusterBusy(VcnbError):
    """The embedded cluster is owned by another process; ``pid`` is its process id, or None when it is not known."""

    def __init__(self, message: str, pid: int | None = None) -> None:
        self.pid = pid
        super().__init__(message)


class ClusterClosed(VcnbError):
    """The cluster was closed; connect again."""


class StoreCorrupt(VcnbError):
    """The journal on disk cannot be read; nothing was changed or deleted."""
