"""Run the tutorials and save them with their outputs, so that they can be read where nothing runs (``make notebooks``).

Each runs on a throw-away cluster of its own. Plotly figures get a picture beside them (drawn by Chromium), because sites that show
notebooks do not run JavaScript. What is true of one machine only (paths, progress lines of a wait) is taken out.

    python notebooks/save.py [NAME ...]
"""

from __future__ import annotations

import base64
import json
import os
import re
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

HERE = Path(__file__).parent
PLOTLY = "application/vnd.plotly.v1+json"
CHROMIUM = os.environ.get("CHROMIUM", "/usr/bin/chromium")
LIMIT = 300_000
WIDTH = 760
SECONDS = 300
RANDOM = re.compile(r"(/(?:checkpoints|pipeline))-\w+")
DRAW = """async (figure) => {
    const image = await Plotly.toImage({data: figure.data, layout: figure.layout}, {format: "png", width: WIDTH, height: figure.layout.height || 450});
    return image.split(",")[1];
}""".replace("WIDTH", str(WIDTH))


def main(names: list[str]) -> int:
    """Returns 1 when a notebook became too large."""
    found = [HERE / f"{name}.ipynb" for name in names] or sorted(HERE.glob("*.ipynb"))
    too_large = 0
    with tempfile.TemporaryDirectory(prefix="vcnb-notebooks-") as scratch:
        shutil.copytree(HERE, f"{scratch}/notebooks")
        for path in found:
            notebook = run(path, Path(scratch))
            size = save(notebook, path)
            too_large += size > LIMIT
            print(f"{path.name}: {size / 1000:.0f} kB")
    return 1 if too_large else 0


def run(path: Path, scratch: Path) -> Any:
    """The notebook with its outputs, run in a copy of the folder on a cluster below ``scratch``."""
    notebook = nbformat.read(path, as_version=4)
    os.environ["VCNB_HOME"] = str(scratch / f"home-{path.stem}")
    client = NotebookClient(
        notebook,
        timeout=SECONDS,
        kernel_name="python3",
        coalesce_streams=True,
        resources={"metadata": {"path": str(scratch / "notebooks")}},
    )
    client.execute()
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
        for output in cell.get("outputs", ()):
            without_machine(output, scratch)
    notebook.metadata = {
        "kernelspec": notebook.metadata["kernelspec"],
        "language_info": {"name": "python"},
    }
    pictures(notebook)
    return notebook


def without_machine(output: Any, scratch: Path) -> None:
    """Take paths of this machine out of an output."""
    text = json.dumps(output)
    for path, shown in (
        (str(scratch), "/tmp/vcnb"),  # noqa: S108 - what is shown, not what is used
        (str(HERE.parent), "/home/you/vcnb"),
        (sys.prefix, "/usr"),
        (str(Path.home()), "/home/you"),
    ):
        text = text.replace(path, shown)
    text = RANDOM.sub(r"\1", text)
    output.clear()
    output.update(nbformat.from_dict(json.loads(text)))


def pictures(notebook: Any) -> None:
    """Draw every plotly figure."""
    figures = [
        output.data for cell in notebook.cells for output in cell.get("outputs", ()) if PLOTLY in output.get("data", {})
    ]
    for data in figures:
        data[PLOTLY].get("layout", {}).pop("template", None)  # 7 kB of defaults; the picture has them
    if not figures:
        return
    import plotly
    from playwright.sync_api import sync_playwright

    script = (Path(plotly.__file__).parent / "package_data" / "plotly.min.js").read_text()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=CHROMIUM, args=["--headless", "--no-sandbox", "--disable-gpu"]
        )
        page = browser.new_page()
        page.set_content("<html></html>")
        page.add_script_tag(content=script)
        for data in figures:
            data["image/png"] = page.evaluate(DRAW, data[PLOTLY])
            base64.b64decode(data["image/png"])
            data.pop("text/html", None)
        browser.close()


def save(notebook: Any, path: Path) -> int:
    """Write it; returns its size in bytes."""
    nbformat.validate(notebook)
    nbformat.write(notebook, path)
    return path.stat().st_size


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
