"""What this user may do, as the API server itself says (``SelfSubjectAccessReview``): everybody may ask that."""

from __future__ import annotations

from typing import Final

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


class Access:
    """Asks once for each verb, kind and namespace; a role that is given later counts from the next connection on."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._answers: dict[tuple[str, Kind, str, str], bool] = {}

    async def allowed(self, verb: str, kind: Kind, namespace: str | None = None, subresource: str = "") -> bool:
        """Whether this user may; ``namespace`` None: in all of them. Where the server does not tell, it is supposed so."""
        key = (verb, kind, namespace or "", subresource)
        if key not in self._answers:
            try:
                self._answers[key] = await self._ask(*key)
            except ApiError:
                return True
        return self._answers[key]

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
