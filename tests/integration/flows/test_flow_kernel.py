"""%%jobflow in a real kernel, and with papermill's parameters."""

import nbformat
import papermill
import pytest

from integration.notebook.kernels import Kernel

pytestmark = [pytest.mark.integration, pytest.mark.timeout(180)]

FLOW = """%%jobflow f --param x --out flow
prepare >> double >> finish
double: double(x=params.x)
finish: --env TEXT=done |
    import os
    print(os.environ["TEXT"])
"""
DEFINE = """
x = 21
def prepare():
    print("preparing")
def double(x):
    return 2 * x
"""


@pytest.fixture
def kernel(tmp_path):
    made = Kernel({"VCNB_HOME": str(tmp_path), "VCNB_CLUSTER": "memory://"})
    yield made
    made.close()


def test_an_unattended_cell_prints_progress_waits_and_shows_the_flow(kernel):
    _, _, cell, after = kernel.run_all("%load_ext vcnb", DEFINE, FLOW, "print(flow.jobs['double'].result())")

    assert cell.status == "ok"
    assert "  ✔ double: Succeeded" in cell.text
    assert cell.text.rstrip().splitlines()[-1].startswith("✔ f: Succeed")
    assert "✔ Succeed" in cell.result["text/plain"]
    assert "<table>" in cell.result["text/html"]
    assert after.text == "42\n"


def test_a_live_cell_returns_at_once_and_updates_its_display_to_the_end(kernel):
    _, cell, waited = kernel.run_all(
        "%load_ext vcnb\n%vcnb config widgets=off",
        "%%jobflow f --out flow\na: ! sleep 0.5",
        "flow.wait(); import time\n"
        "from vcnb.notebook.painter import PAINTER\n"
        "for _ in range(200):\n"
        "    if not PAINTER._views: break\n"
        "    time.sleep(0.02)\n"
        "print(len(PAINTER._views))",
        allow_stdin=True,
    )

    assert cell.status == "ok"
    identity = cell.displays[0]["transient"]["display_id"]
    updates = [update for update in kernel.updates if update["transient"]["display_id"] == identity]
    assert waited.text == "0\n"
    assert "Succeed" in updates[-1]["data"]["text/plain"]


def test_mistakes_and_failures_are_one_clean_message(kernel):
    _, wrong, failed = kernel.run_all(
        "%load_ext vcnb",
        "%%jobflow f\na: nothing",
        "%%jobflow f\na: ! exit 3",
        stop_on_error=False,
    )

    assert wrong.status == "error"
    assert wrong.reply["ename"] == "CellError"
    assert wrong.reply["evalue"].startswith("line 2 of the cell: node 'a'")
    assert len(wrong.reply["traceback"]) == 1
    assert failed.reply["ename"] == "FlowFailed"
    assert "exit code 3" in failed.reply["evalue"]


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")
def test_parameters_of_papermill_reach_the_flow(tmp_path):
    parameters = nbformat.v4.new_code_cell("x = 1\nmode = 'quick'", metadata={"tags": ["parameters"]})
    cells = [
        parameters,
        nbformat.v4.new_code_cell("%load_ext vcnb\n%vcnb connect memory://"),
        nbformat.v4.new_code_cell("%%jobflow f --param x --param mode={mode} --out flow\na: ! echo ${{ params.x }}"),
        nbformat.v4.new_code_cell("print(flow.params, flow.logs())"),
    ]
    notebook = nbformat.v4.new_notebook(cells=cells)
    notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "p", "language": "python"}
    nbformat.write(notebook, tmp_path / "in.ipynb")

    papermill.execute_notebook(
        str(tmp_path / "in.ipynb"),
        str(tmp_path / "out.ipynb"),
        parameters={"x": [1, 2], "mode": "full"},
        progress_bar=False,
    )

    executed = nbformat.read(tmp_path / "out.ipynb", as_version=4)
    assert executed.cells[-1].outputs[0].text == "{'x': [1, 2], 'mode': 'full'} [1,2]\n\n"
