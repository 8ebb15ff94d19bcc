"""Make docs/quickstart.png: the quickstart in JupyterLab while its job runs, and the figure that comes of it.

Run by hand from the repository: ``PYTHONPATH=tests python tests/browser/quickstart_picture.py``.
"""

from __future__ import annotations

import base64
import json
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import Page, expect, sync_playwright

from browser.lab import ARGUMENTS, CHROMIUM, Lab

ROOT = Path(__file__).parents[2]
PICTURE = ROOT / "docs" / "quickstart.png"
WIDTH = 900
JOB, PLOT = 2, 6
"""Of the code cells, counted from 0."""


def main() -> int:
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        lab = Lab(Path(folder))
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        try:
            lab.write("quickstart.ipynb", *json.loads((ROOT / "notebooks" / "quickstart.ipynb").read_text())["cells"])
            notebook = lab.open(browser, "quickstart.ipynb")
            try:
                parts = _parts(notebook)
            except BaseException:
                notebook.screenshot("picture-failed")
                raise
            _join(notebook.page.context.new_page(), parts)
        finally:
            browser.close()
            lab.close()
    print(f"{PICTURE}: {PICTURE.stat().st_size} bytes")
    return 0


def _parts(notebook) -> list[bytes]:
    page: Page = notebook.page
    page.set_viewport_size({"width": 1180, "height": 1500})
    notebook.start()
    page.keyboard.press("Escape")
    page.keyboard.press("Control+b")
    for number in range(1, PLOT + 1):
        notebook.run(number)
        if number == JOB:
            view = notebook.view(JOB)
            expect(view.locator(".v-output pre")).to_contain_text("accuracy", timeout=60_000)
            view.locator(".v-output summary").click()
            notebook.cells.nth(JOB).locator(".cm-content").scroll_into_view_if_needed()
            page.mouse.move(5, 5)
            page.wait_for_timeout(300)
            first = notebook.cells.nth(JOB).screenshot()
            expect(notebook.cells.nth(JOB).locator(".jp-RenderedHTML")).to_contain_text("Completed", timeout=90_000)
    figure = notebook.cells.nth(PLOT)
    expect(figure.locator(".js-plotly-plot .main-svg").first).to_be_visible(timeout=60_000)
    page.mouse.move(5, 5)
    page.wait_for_timeout(700)
    return [first, figure.locator(".jp-Cell-outputWrapper").screenshot()]


def _join(page: Page, parts: list[bytes]) -> None:
    images = "".join(f'<img src="data:image/png;base64,{base64.b64encode(part).decode()}">' for part in parts)
    style = f"body{{margin:0;background:white;width:{WIDTH}px}}img{{width:100%;display:block}}"
    page.set_viewport_size({"width": WIDTH, "height": 400})
    page.set_content(f"<style>{style}</style>{images}")
    page.wait_for_timeout(300)
    page.screenshot(path=PICTURE, full_page=True)


if __name__ == "__main__":
    sys.exit(main())
