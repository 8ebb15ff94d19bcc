"""Every notebook runs top to bottom through papermill on a throw-away cluster, and is saved small and without outputs."""

import json
from pathlib import Path

import nbformat
import papermill
import pytest

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

FOLDER = Path(__file__).parents[2] / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")
def test_it_runs_top_to_bottom(notebook, tmp_path):
    executed = tmp_path / notebook.name

    papermill.execute_notebook(
        str(notebook), str(executed), parameters={"cluster_url": "memory://"}, progress_bar=False, cwd=str(tmp_path)
    )

    cells = nbformat.read(executed, as_version=4).cells
    assert all(cell.metadata.papermill.status == "completed" for cell in cells if cell.cell_type == "code")
    assert executed.stat().st_size < 300_000


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_it_is_saved_without_outputs_and_takes_its_cluster_as_a_parameter(notebook):
    content = json.loads(notebook.read_text())
    code = [cell for cell in content["cells"] if cell["cell_type"] == "code"]

    assert not any(cell["outputs"] or cell["execution_count"] for cell in code)
    parameters = [cell for cell in code if "parameters" in cell["metadata"].get("tags", [])]
    assert len(parameters) == 1
    assert "cluster_url" in "".join(parameters[0]["source"])
    assert notebook.stat().st_size < 300_000
