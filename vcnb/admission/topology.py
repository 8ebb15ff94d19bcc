"""``networkTopology``: one shape in Jobs, partition policies, PodGroups and their sub-groups (J3, J11, U7, G3, G4)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from vcnb.admission.findings import Findings
from vcnb.admission.reading import mapping, text

__all__ = ["check_network_topology"]


def check_network_topology(owner: Mapping[str, Any], path: str, findings: Findings) -> None:
    """The two ways to name the highest tier exclude each other."""
    topology = mapping(owner.get("networkTopology"))
    if topology.get("highestTierAllowed") is not None and text(topology.get("highestTierName")):
        findings.refuse(
            f"{path}.networkTopology",
            "highestTierAllowed and highestTierName exclude each other; keep one of them",
        )
