"""The custom resource definitions that a server of the tests has: Volcano's own, where they are to be found.

VCNB_VOLCANO_CRDS names their folder; without it they are looked for beside the repository (``../shared/crds``). Where
they are not, the definitions are those of ``vcnb crds --plain``, which other tests hold to Volcano's.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import yaml

from kube.apiserver import ApiServer
from vcnb.kube.crds import custom_resource_definitions

BESIDE = Path(__file__).parents[3] / "shared" / "crds"


def volcano_crds() -> list[dict[str, Any]]:
    """Volcano's definitions, or none."""
    folder = Path(os.environ.get("VCNB_VOLCANO_CRDS") or BESIDE)
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return [yaml.load(path.read_text(), Loader=loader) for path in sorted(folder.glob("*.volcano.sh_*.yaml"))]


def install(server: ApiServer) -> None:
    """Give the server Volcano's kinds."""
    for crd in volcano_crds() or custom_resource_definitions(plain=True):
        server.apply_crd(crd)
