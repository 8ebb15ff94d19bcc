"""Small notebooks for tests."""

from pathlib import Path

import nbformat
from nbformat.v4 import new_code_cell, new_notebook

PYTHON = {"name": "python3", "display_name": "Python 3", "language": "python"}


def write(path: Path, *cells: str, parameters: str | None = None, **metadata) -> Path:
    """A notebook of code cells; ``parameters`` is the text of a cell with that tag, the first one."""
    made = [new_code_cell(parameters, metadata={"tags": ["parameters"]})] if parameters is not None else []
    made += [new_code_cell(text) for text in cells]
    nbformat.write(new_notebook(cells=made, metadata={"kernelspec": PYTHON, **metadata}), path)
    return path


def read(path):
    return nbformat.read(path, as_version=4)


def statuses(notebook) -> list[str]:
    return [cell.metadata.papermill["status"] for cell in notebook.cells if cell.cell_type == "code"]


def errors(notebook) -> list[tuple[str, str]]:
    return [
        (output.ename, output.evalue)
        for cell in notebook.cells
        for output in cell.get("outputs", ())
        if output.output_type == "error"
    ]
