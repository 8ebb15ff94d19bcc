"""Label selectors."""

from __future__ import annotations

from vcnb.resources.models.base import Model, TextMap

__all__ = ["LabelSelector", "SelectorRequirement"]


class SelectorRequirement(Model):
    """One requirement on a label or field: ``operator`` In, NotIn, Exists, DoesNotExist (on nodes also Gt, Lt)."""

    key: str
    operator: str
    values: list[str] | None = None


class LabelSelector(Model):
    """Labels that an object must have; all conditions hold together."""

    match_expressions: list[SelectorRequirement] | None = None
    match_labels: TextMap | None = None
