"""What is asked of a Kubernetes API server: a verb on a kind, and the path that stands for it."""

from __future__ import annotations

from typing import NamedTuple
from urllib.parse import quote

from vcnb.errors import InvalidObject, ObjectRef, Problem
from vcnb.resources.kinds import Kind

__all__ = ["Call"]


class Call(NamedTuple):
    """One request as an administrator would name it; ``verb`` as in an RBAC rule (get, list, watch, create ...).

    ``namespace`` is "" for a cluster-scoped kind and for all namespaces; ``name`` is "" where there is none.
    """

    verb: str
    kind: Kind
    namespace: str = ""
    name: str = ""
    subresource: str = ""

    @property
    def ref(self) -> ObjectRef:
        """The object's name in an error."""
        return ObjectRef(self.kind.kind, self.name, self.namespace)

    @property
    def resource(self) -> str:
        """As in an RBAC rule: ``jobs``, ``jobs/status``."""
        return f"{self.kind.plural}/{self.subresource}" if self.subresource else self.kind.plural

    @property
    def path(self) -> str:
        """The path of the collection, or of the object when the call names one."""
        kind = self.kind
        parts = ["", "apis", kind.group, kind.version] if kind.group else ["", "api", kind.version]
        if kind.namespaced and self.namespace:
            parts += ["namespaces", _segment(kind, "metadata.namespace", self.namespace)]
        parts.append(kind.plural)
        if self.name:
            parts.append(_segment(kind, "metadata.name", self.name))
        if self.subresource:
            parts.append(self.subresource)
        return "/".join(parts)

    @property
    def object_path(self) -> str:
        """The path of the object; without a name there is none, and no request may go to the whole collection instead.

        Raises InvalidObject.
        """
        if not self.name:
            raise InvalidObject([Problem("metadata.name", None, "a name is required")], self.kind.kind)
        return self.path

    def __str__(self) -> str:
        where = f" in namespace {self.namespace!r}" if self.namespace else ""
        what = f" {self.name!r}" if self.name else ""
        group = f".{self.kind.group}" if self.kind.group else ""
        return f"{self.verb} {self.resource}{group}{what}{where}"


def _segment(kind: Kind, field: str, text: str) -> str:
    """A name as one segment of a path: what would be another path there is no name (Kubernetes' rule, too)."""
    if text in {".", ".."} or "/" in text or "%" in text:
        raise InvalidObject([Problem(field, None, f"{text!r} is no name")], kind.kind)
    return quote(text, safe="")
