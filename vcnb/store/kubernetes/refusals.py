"""What an API server refuses, as errors of vcnb: what happened, where, and whom to ask for what.

An API server answers a refused request by a Status object: ``code``, ``reason`` (one word), ``message``, and ``details``
with the causes. Source of the reasons: k8s.io/apimachinery, ``StatusReason``. A path that the server does not have at all
is answered by plain text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from vcnb.errors import (
    AlreadyExists,
    Conflict,
    Expired,
    Forbidden,
    InternalError,
    InvalidObject,
    MissingKind,
    NotFound,
    ObjectRef,
    Problem,
    QuotaExceeded,
    ServerTimeout,
    TooManyRequests,
    Unauthorized,
    Unreachable,
    VcnbError,
)
from vcnb.store.kubernetes.calls import Call

__all__ = ["refusal", "status_of"]

_USER = re.compile(r'User "([^"]*)" cannot ')
_WEBHOOK = re.compile(r'^admission webhook "([^"]+)" denied the request:? ?(.*)', re.DOTALL)
_WEBHOOK_LOST = re.compile(r'failed calling webhook "([^"]+)"')
_NO_VERSION = re.compile(r"^resourceVersion: Invalid value")


def status_of(code: int, raw: bytes) -> Mapping[str, Any]:
    """The Status object of an answer; one made from its text where the server (or a proxy before it) sent none."""
    try:
        found = msgspec.json.decode(raw)
    except msgspec.DecodeError:
        found = None
    if isinstance(found, dict) and found.get("kind") == "Status":
        return {"code": code, **found}
    return {"code": code, "reason": "", "message": raw[:500].decode(errors="replace").strip(), "plain": True}


def refusal(call: Call, status: Mapping[str, Any], server: str) -> VcnbError:
    """The error that a Status means for ``call``; ``server`` says where, as people know it."""
    code, reason = int(status.get("code") or 500), str(status.get("reason") or "")
    message = str(status.get("message") or reason or f"HTTP {code}")
    if webhook := _WEBHOOK.match(message):
        said = webhook[2].strip() or "without saying why"
        return InvalidObject([Problem("", None, f"admission webhook {webhook[1]} refuses it: {said}")], _subject(call))
    if code < 400:
        return Unreachable(
            f"{call}: {server} sends us elsewhere (HTTP {code}), as no Kubernetes API server does; is there a proxy before it"
            " that wants a login?",
            call.ref,
        )
    if code == 404:
        return _not_found(call, status, message, server)
    if code == 403:
        return _forbidden(call, status, message)
    if code == 401:
        return Unauthorized(
            f"{server} does not accept the credentials (401): they have expired, or belong to another cluster. Log in again"
            " the way your kubeconfig says (`kubectl auth whoami` shows whether it worked)",
            call.ref,
        )
    if code == 409:
        return _conflict(call, reason, message)
    if code == 410:
        return Expired(message, call.ref)
    if code == 429:
        return TooManyRequests(f"{call}: the API server has too much to do: {message}", call.ref)
    if code in {400, 422} or _NO_VERSION.match(message):
        return InvalidObject(_problems(status, message), _subject(call))
    return _failure(call, code, reason, message)


def _subject(call: Call) -> str:
    return str(call.ref) if call.name else call.kind.kind


def _not_found(call: Call, status: Mapping[str, Any], message: str, server: str) -> VcnbError:
    details = status.get("details") or {}
    if details.get("kind") == "namespaces" and call.kind.plural != "namespaces":
        name = str(details.get("name", call.namespace))
        return NotFound(
            f"{call}: there is no namespace {name!r}; `kubectl create namespace {name}` makes one, or ask the administrator",
            ObjectRef("Namespace", name),
        )
    if details.get("name"):
        return NotFound(f"{call.ref} not found", call.ref)
    if call.subresource and not status.get("plain"):
        return NotFound(f"{call.kind} has no {call.subresource} subresource on {server}", call.ref)
    kind = call.kind
    owner = (
        "Volcano's custom resource definitions are not installed there, or are of another version; ask the administrator to"
        " install Volcano, or install the definitions alone: `vcnb crds | kubectl apply --server-side -f -`"
        if kind.group.endswith(".volcano.sh")
        else f"it is of another version than vcnb knows ({message})"
    )
    return MissingKind(f"{server} has no kind {kind.kind} ({kind.api_version}): {owner}", call.ref)


def _forbidden(call: Call, status: Mapping[str, Any], message: str) -> VcnbError:
    causes = {cause.get("reason") for cause in (status.get("details") or {}).get("causes") or ()}
    if "NamespaceTerminating" in causes or "because it is being terminated" in message:
        return Forbidden(
            f"{call}: namespace {call.namespace!r} is being deleted, nothing new can be made in it", call.ref
        )
    if "exceeded quota" in message or "failed quota" in message:
        return QuotaExceeded(
            f"{call}: {message}; delete what is no longer needed, or ask the administrator for a larger quota", call.ref
        )
    user = _USER.search(message)
    if user is None:
        return Forbidden(f"{call}: {message}", call.ref)
    where = f"in namespace {call.namespace!r}" if call.namespace else "in the whole cluster"
    role = "Role" if call.namespace else "ClusterRole"
    group = call.kind.group
    return Forbidden(
        f"user {user[1]!r} may not {call.verb} {call.resource}{f'.{group}' if group else ''} {where};"
        f' ask the administrator for a {role} with apiGroups: ["{group}"], resources: ["{call.resource}"],'
        f' verbs: ["{call.verb}"], bound to that user',
        call.ref,
    )


def _conflict(call: Call, reason: str, message: str) -> VcnbError:
    if reason == "AlreadyExists":
        return AlreadyExists(f"{call.ref} already exists", call.ref)
    if "the object has been modified" in message:
        return Conflict(f"{call.ref} has changed since it was read; read it again", call.ref)
    return Conflict(f"{call.ref}: {message}", call.ref)


def _failure(call: Call, code: int, reason: str, message: str) -> VcnbError:
    if lost := _WEBHOOK_LOST.search(message):
        return InternalError(
            f"{call}: the API server cannot ask admission webhook {lost[1]}; ask the administrator whether the service"
            f" behind it runs ({message})",
            call.ref,
        )
    if code == 504 or reason in {"Timeout", "ServerTimeout"}:
        return ServerTimeout(f"{call}: {message}; it may or may not have been carried out", call.ref)
    if code in {502, 503}:
        return Unreachable(f"{call}: the API server is not available: {message}", call.ref)
    return InternalError(f"{call}: {message}", call.ref)


def _problems(status: Mapping[str, Any], message: str) -> list[Problem]:
    """A Problem for each cause of a Status, by its field path."""
    causes = (status.get("details") or {}).get("causes") or ()
    found = [Problem(str(cause.get("field", "")), None, str(cause.get("message", ""))) for cause in causes]
    return found or [Problem("", None, message)]
