"""PersistentVolumeClaim specs."""

from __future__ import annotations

from vcnb.resources.models.base import AmountMap, Model
from vcnb.resources.models.meta import ObjectMeta
from vcnb.resources.models.selectors import LabelSelector

__all__ = ["ClaimResources", "ClaimSpec", "ClaimTemplate", "DataSource", "DataSourceRef"]


class DataSource(Model):
    """What a claim is filled from."""

    kind: str
    name: str
    api_group: str | None = None


class DataSourceRef(Model):
    """What a claim is filled from, possibly in another namespace."""

    kind: str
    name: str
    api_group: str | None = None
    namespace: str | None = None


class ClaimResources(Model):
    """Storage asked for: ``requests: {storage: 1Gi}``."""

    limits: AmountMap | None = None
    requests: AmountMap | None = None


class ClaimSpec(Model):
    """Spec of a PersistentVolumeClaim."""

    access_modes: list[str] | None = None
    data_source: DataSource | None = None
    data_source_ref: DataSourceRef | None = None
    resources: ClaimResources | None = None
    selector: LabelSelector | None = None
    storage_class_name: str | None = None
    volume_attributes_class_name: str | None = None
    volume_mode: str | None = None
    volume_name: str | None = None


class ClaimTemplate(Model):
    """A claim made for one pod."""

    spec: ClaimSpec
    metadata: ObjectMeta | None = None
