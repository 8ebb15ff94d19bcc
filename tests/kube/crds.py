"""The custom resource definitions that a server of the tests has: Volcano's own, where they are to be found.

VCNB_VOLCANO_CRDS names their folder; without it they are looked for beside the repository (``../shared/crds``). Where
they are not, each kind gets a definition without a schema: scope and subresources as in Volcano's, every field kept.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import yaml

from kube.apiserver import ApiServer
from vcnb.resources.kinds import KINDS, Kind

BESIDE = Path(__file__).parents[3] / "shared" / "crds"


def volcano_crds() -> list[dict[str, Any]]:
    """Volcano's definitions, or none."""
    folder = Path(os.environ.get("VCNB_VOLCANO_CRDS") or BESIDE)
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return [yaml.load(path.read_text(), Loader=loader) for path in sorted(folder.glob("*.volcano.sh_*.yaml"))]


def plain_crds() -> list[dict[str, Any]]:
    """A definition without a schema for each of Volcano's kinds."""
    return [_plain(kind) for kind in KINDS if kind.group.endswith(".volcano.sh")]


def install(server: ApiServer) -> None:
    """Give the server Volcano's kinds."""
    for crd in volcano_crds() or plain_crds():
        server.apply_crd(crd)


def _plain(kind: Kind) -> dict[str, Any]:
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{kind.plural}.{kind.group}"},
        "spec": {
            "group": kind.group,
            "scope": "Namespaced" if kind.namespaced else "Cluster",
            "names": {
                "kind": kind.kind,
                "listKind": f"{kind.kind}List",
                "plural": kind.plural,
                "singular": kind.singular,
                "shortNames": list(kind.short_names),
            },
            "versions": [
                {
                    "name": kind.version,
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
                    "subresources": {"status": {}} if kind.status else {},
                }
            ],
        },
    }
