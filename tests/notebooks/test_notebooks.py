"""Every notebook runs top to bottom through papermill on a throw-away cluster; it is saved with its outputs, and small."""

import json
import shutil
from pathlib import Path

import nbformat
import papermill
import pytest

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
STEPS = sorted(FOLDER.glob("steps/*.ipynb"))
WITHOUT_OUTPUTS = {"kubernetes"}
"""They speak of a cluster that is not there when notebooks are saved."""
MACHINE = ("/root", "/work", "/home/", ".venv", "site-packages/")
"""What tells of the machine on which a notebook was saved."""


def of_stem(path):
    return path.stem


def code_of(notebook):
    return [cell for cell in json.loads(notebook.read_text())["cells"] if cell["cell_type"] == "code"]


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=of_stem)
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")
def test_it_runs_top_to_bottom(notebook, tmp_path):
    folder = tmp_path / "notebooks"
    shutil.copytree(FOLDER, folder)
    executed = tmp_path / notebook.name

    papermill.execute_notebook(
        str(folder / notebook.name),
        str(executed),
        parameters={"cluster_url": "memory://"},
        progress_bar=False,
        cwd=str(folder),
    )

    cells = nbformat.read(executed, as_version=4).cells
    assert all(cell.metadata.papermill.status == "completed" for cell in cells if cell.cell_type == "code")
    assert executed.stat().st_size < 300_000


@pytest.mark.parametrize("notebook", [*NOTEBOOKS, *STEPS], ids=of_stem)
def test_it_takes_its_parameters_from_one_cell(notebook):
    parameters = [cell for cell in code_of(notebook) if "parameters" in cell["metadata"].get("tags", [])]

    assert len(parameters) == 1
    assert notebook in STEPS or "cluster_url" in "".join(parameters[0]["source"])


@pytest.mark.parametrize("notebook", [path for path in NOTEBOOKS if path.stem not in WITHOUT_OUTPUTS], ids=of_stem)
def test_it_is_saved_with_the_outputs_of_one_run(notebook):
    code = code_of(notebook)

    assert [cell["execution_count"] for cell in code] == list(range(1, len(code) + 1)), "save it: make notebooks"
    outputs = [output for cell in code for output in cell["outputs"]]
    assert outputs
    assert not [output for output in outputs if output["output_type"] == "error"]
    assert "Traceback" not in json.dumps(outputs)


@pytest.mark.parametrize("notebook", [*NOTEBOOKS, *STEPS], ids=of_stem)
def test_it_is_small_and_tells_nothing_of_the_machine(notebook):
    text = notebook.read_text()

    assert notebook.stat().st_size < 300_000
    assert not [place for place in MACHINE if place in text.replace("/home/you", "")]


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=of_stem)
def test_its_figures_have_a_picture_for_sites_without_javascript(notebook):
    figures = [
        output["data"]
        for cell in code_of(notebook)
        for output in cell["outputs"]
        if "application/vnd.plotly.v1+json" in output.get("data", {})
    ]

    assert all(data.get("image/png") for data in figures)


def test_there_is_a_tutorial_for_every_part():
    names = {path.stem for path in NOTEBOOKS}

    assert {"quickstart", "gang", "sweep", "flows", "pipeline"} <= names
