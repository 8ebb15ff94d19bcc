"""Metadata, and the shape that every object has."""

from __future__ import annotations

from typing import Any

from vcnb.resources.models.base import Model, TextMap

__all__ = ["Object", "ObjectMeta", "OwnerReference"]


class OwnerReference(Model):
    """An object that this one belongs to; a Command's ``target`` has the same shape."""

    api_version: str
    kind: str
    name: str
    uid: str
    controller: bool | None = None
    block_owner_deletion: bool | None = None


class ObjectMeta(Model):
    """Name, namespace, labels and so on. What the server sets is let through unread, so a read-back object passes."""

    name: str | None = None
    generate_name: str | None = None
    namespace: str | None = None
    labels: TextMap | None = None
    annotations: TextMap | None = None
    finalizers: list[str] | None = None
    owner_references: list[OwnerReference] | None = None
    uid: Any = None
    resource_version: Any = None
    generation: Any = None
    creation_timestamp: Any = None
    deletion_timestamp: Any = None
    deletion_grace_period_seconds: Any = None
    managed_fields: Any = None
    self_link: Any = None


class Object(Model):
    """An object. ``status`` belongs to the cluster and is let through unread."""

    api_version: str | None = None
    kind: str | None = None
    metadata: ObjectMeta | None = None
    status: Any = None
