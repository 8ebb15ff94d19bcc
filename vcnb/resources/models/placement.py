"""Where pods run: affinity, tolerations, spreading."""

from __future__ import annotations

from vcnb.resources.models.base import Int32, Int64, Model
from vcnb.resources.models.selectors import LabelSelector, SelectorRequirement

__all__ = [
    "Affinity",
    "NodeAffinity",
    "NodeSelector",
    "NodeSelectorTerm",
    "PodAffinity",
    "PodAffinityTerm",
    "PreferredNodeTerm",
    "PreferredPodTerm",
    "Toleration",
    "TopologySpread",
]


class NodeSelectorTerm(Model):
    """Requirements on the labels and fields of a node, all of which must hold."""

    match_expressions: list[SelectorRequirement] | None = None
    match_fields: list[SelectorRequirement] | None = None


class PreferredNodeTerm(Model):
    """Nodes that are liked, with a weight from 1 to 100."""

    preference: NodeSelectorTerm
    weight: Int32


class NodeSelector(Model):
    """Terms of which one must hold."""

    node_selector_terms: list[NodeSelectorTerm]


class NodeAffinity(Model):
    """Which nodes are required and liked."""

    preferred_during_scheduling_ignored_during_execution: list[PreferredNodeTerm] | None = None
    required_during_scheduling_ignored_during_execution: NodeSelector | None = None


class PodAffinityTerm(Model):
    """Pods to stand beside (or away from), and the topology that counts as one place."""

    topology_key: str
    label_selector: LabelSelector | None = None
    match_label_keys: list[str] | None = None
    mismatch_label_keys: list[str] | None = None
    namespace_selector: LabelSelector | None = None
    namespaces: list[str] | None = None


class PreferredPodTerm(Model):
    """Pods that are liked nearby, with a weight from 1 to 100."""

    pod_affinity_term: PodAffinityTerm
    weight: Int32


class PodAffinity(Model):
    """Required and liked neighbours; the same shape says whom to avoid."""

    preferred_during_scheduling_ignored_during_execution: list[PreferredPodTerm] | None = None
    required_during_scheduling_ignored_during_execution: list[PodAffinityTerm] | None = None


class Affinity(Model):
    """Where a pod wants to run."""

    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAffinity | None = None


class Toleration(Model):
    """A taint that the pod puts up with."""

    effect: str | None = None
    key: str | None = None
    operator: str | None = None
    toleration_seconds: Int64 | None = None
    value: str | None = None


class TopologySpread(Model):
    """How evenly matching pods spread over a topology."""

    max_skew: Int32
    topology_key: str
    when_unsatisfiable: str
    label_selector: LabelSelector | None = None
    match_label_keys: list[str] | None = None
    min_domains: Int32 | None = None
    node_affinity_policy: str | None = None
    node_taints_policy: str | None = None
