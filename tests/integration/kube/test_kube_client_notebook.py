"""The tutorial about Kubernetes runs top to bottom, through papermill, on a real API server."""

from __future__ import annotations

import sys
from pathlib import Path

import nbformat
import papermill
import pytest

from kube.apiserver import ApiServer
from kube.machine import Machine

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

NOTEBOOK = Path(__file__).parents[3] / "notebooks" / "kubernetes.ipynb"


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")
def test_the_tutorial_runs_top_to_bottom(
    client_server: ApiServer, machine: Machine, own_namespace: str, tmp_path: Path
):
    executed = tmp_path / "executed.ipynb"
    url = f"kube://admin?kubeconfig={client_server.kubeconfig}&controllers=on&namespace={own_namespace}"

    papermill.execute_notebook(
        str(NOTEBOOK),
        str(executed),
        parameters={"cluster_url": url, "image": f"python:{sys.version_info.major}.{sys.version_info.minor}"},
        progress_bar=False,
        cwd=str(tmp_path),
    )

    cells = nbformat.read(executed, as_version=4).cells
    assert all(cell.metadata.papermill.status == "completed" for cell in cells if cell.cell_type == "code")
    assert executed.stat().st_size < 300_000
    assert "exit code 3" in executed.read_text()
    path = f"/apis/batch.volcano.sh/v1alpha1/namespaces/{own_namespace}/jobs"
    assert client_server.call("GET", path)["items"] == []
