"""What this user may do, as the API server itself says (``SelfSubjectAccessReview``): everybody may ask that."""

from __future__ import annotations

from typing import Final

from vcnb.clock import Clock
from vcnb.errors import ApiError
from vcnb.resources.kinds import Kind
from vcnb.store.kubernetes import Call, Connection

__all__ = ["Access"]

_REVIEW: Final = Kind(
    "SelfSubjectAccessReview",
    "authorization.k8s.io",
    "v1",
    "selfsubjectaccessreviews",
    namespaced=False,
    status=False,
)
REFUSED_FOR: Final = 30.0
"""Seconds for which a refusal is believed: a role that is given in the meantime counts after that."""


class Access:
    """Asks once for each verb, kind and namespace; what was refused is asked again after ``REFUSED_FOR`` seconds."""

    def __init__(self, connection: Connection, clock: Clock) -> None:
        self._connection = connection
        self._clock = clock
        self._allowed: set[tuple[str, Kind, str, str]] = set()
        self._refused: dict[tuple[str, Kind, str, str], float] = {}

    async def allowed(self, verb: str, kind: Kind, namespace: str | None = None, subresource: str = "") -> bool:
        """Whether this user may; ``namespace`` None: in all of them. Where the server does not tell, it is supposed so."""
        key = (verb, kind, namespace or "", subresource)
        if key in self._allowed:
            return True
        now = self._clock.time()
        refused = self._refused.get(key)
        if refused is not None and now - refused < REFUSED_FOR:
            return False
        try:
            allowed = await self._ask(*key)
        except ApiError:
            return True
        if allowed:
            self._allowed.add(key)
            self._refused.pop(key, None)
        else:
            self._refused[key] = now
        return allowed

    async def _ask(self, verb: str, kind: Kind, namespace: str, subresource: str) -> bool:
        asked = {"verb": verb, "group": kind.group, "resource": kind.plural}
        if namespace and kind.namespaced:
            asked["namespace"] = namespace
        if subresource:
            asked["subresource"] = subresource
        body = {
            "apiVersion": _REVIEW.api_version,
            "kind": _REVIEW.kind,
            "spec": {"resourceAttributes": asked},
        }
        call = Call("create", _REVIEW)
        answer = await self._connection.request(call, "POST", call.path, body=body)
        return bool((answer.get("status") or {}).get("allowed"))
