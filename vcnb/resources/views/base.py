"""What every object has: metadata, owners, spec and status."""

from __future__ import annotations

import builtins
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from vcnb.clock import parse_time

__all__ = ["OwnerView", "View", "enum_or", "mapping", "number", "seconds", "sequence"]

_E = TypeVar("_E")


def mapping(value: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    """The mapping at ``key``, empty when it is absent or null."""
    return value.get(key) or {}


def sequence(value: Mapping[str, Any], key: str) -> Sequence[Any]:
    """The list at ``key``, empty when it is absent or null."""
    return value.get(key) or ()


def number(value: Mapping[str, Any], key: str, default: int = 0) -> int:
    """The whole number at ``key``."""
    found = value.get(key)
    return default if found is None else int(found)


def seconds(value: Mapping[str, Any], key: str) -> float | None:
    """The time at ``key`` in seconds since the epoch, None when there is none."""
    text = value.get(key)
    return parse_time(text) if text else None


def enum_or(enum: type[_E], text: str | None, default: _E) -> _E:
    """The member of that text, or ``default`` for one that is not known."""
    try:
        return enum(text or "")  # type: ignore[call-arg]
    except ValueError:
        return default


@dataclass(frozen=True, slots=True)
class OwnerView:
    """One entry of ``metadata.ownerReferences``."""

    api_version: str
    kind: str
    name: str
    uid: str
    controller: bool = False
    block_owner_deletion: bool = False


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class View:
    """An object seen through its metadata. Two views are equal when they wrap the very same object."""

    object: Mapping[str, Any]

    @property
    def metadata(self) -> Mapping[str, Any]:
        return mapping(self.object, "metadata")

    @property
    def spec(self) -> Mapping[str, Any]:
        return mapping(self.object, "spec")

    @property
    def status(self) -> Mapping[str, Any]:
        return mapping(self.object, "status")

    @property
    def kind(self) -> str:
        return str(self.object.get("kind", ""))

    @property
    def name(self) -> str:
        return str(self.metadata.get("name") or "")

    @property
    def namespace(self) -> str:
        """The namespace, ``""`` for a cluster-scoped object."""
        return str(self.metadata.get("namespace") or "")

    @property
    def key(self) -> str:
        """``namespace/name``, or the name alone for a cluster-scoped object."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name

    @property
    def uid(self) -> str:
        return str(self.metadata.get("uid") or "")

    @property
    def resource_version(self) -> str:
        return str(self.metadata.get("resourceVersion") or "")

    @property
    def generation(self) -> int:
        return number(self.metadata, "generation")

    @property
    def labels(self) -> Mapping[str, str]:
        return mapping(self.metadata, "labels")

    @property
    def annotations(self) -> Mapping[str, str]:
        return mapping(self.metadata, "annotations")

    @property
    def finalizers(self) -> Sequence[str]:
        return sequence(self.metadata, "finalizers")

    @property
    def created(self) -> float | None:
        """Creation time in seconds since the epoch; None before the object was stored."""
        return seconds(self.metadata, "creationTimestamp")

    @property
    def deleted(self) -> float | None:
        """``deletionTimestamp`` in seconds since the epoch; None while nobody deletes it."""
        return seconds(self.metadata, "deletionTimestamp")

    @property
    def terminating(self) -> bool:
        """Whether a deletionTimestamp is set."""
        return bool(self.metadata.get("deletionTimestamp"))

    @property
    def owners(self) -> tuple[OwnerView, ...]:
        return tuple(
            OwnerView(
                api_version=str(owner.get("apiVersion", "")),
                kind=str(owner.get("kind", "")),
                name=str(owner.get("name", "")),
                uid=str(owner.get("uid", "")),
                controller=bool(owner.get("controller")),
                block_owner_deletion=bool(owner.get("blockOwnerDeletion")),
            )
            for owner in sequence(self.metadata, "ownerReferences")
        )

    @property
    def owner(self) -> OwnerView | None:
        """The controlling owner (``controller: true``), None when there is none."""
        return next((owner for owner in self.owners if owner.controller), None)

    def __eq__(self, other: builtins.object) -> bool:
        return isinstance(other, View) and type(self) is type(other) and self.object is other.object

    def __hash__(self) -> int:
        return id(self.object)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.key}>"
