"""A cache job as a person sees it: a load that runs in a cell, its numbers, the button that stops it, what is left."""

from playwright.sync_api import expect

from browser.lab import cell

SETUP = """%load_ext vcnb
import tempfile
from pathlib import Path
data = Path(tempfile.mkdtemp()) / "data"
data.mkdir()
for number in range(20):
    (data / f"file-{number:02}").write_bytes(bytes([number]) * (1 << 20))
"""


def test_a_load_is_shown_live_until_its_end(opened):
    load = "%cache load {data} --bandwidth 1500KB --batch-size 1 --out load"
    notebook = opened("cache.ipynb", cell(SETUP), cell(load), cell("%cache list"))
    notebook.start()
    notebook.run(1)
    view = notebook.view(1)

    expect(view.locator(".v-head")).to_contain_text("RUNNING")
    expect(view.locator(".v-progress svg polyline")).to_be_visible(timeout=15_000)
    expect(view.get_by_role("button", name="Stop")).to_be_enabled()
    notebook.screenshot("cache-running")
    static = notebook.cells.nth(1).locator(".jp-RenderedHTML")
    expect(static).to_contain_text("SUCCEEDED", timeout=30_000)
    expect(static.locator('img[alt^="SUCCEEDED: 20 of 20 files"]')).to_be_visible()
    expect(view).to_have_count(0)
    notebook.run(2)
    expect(notebook.cells.nth(2).locator(".jp-RenderedHTML")).to_contain_text("20 of 20 files")
    notebook.screenshot("cache-ended")


def test_a_load_is_stopped_while_a_cell_waits_for_it(opened):
    load = "%cache load {data} --bandwidth 1MB --batch-size 1 --out load"
    notebook = opened("stop.ipynb", cell(SETUP), cell(load), cell("load.wait(check=False)\nprint('ended', load.state)"))
    notebook.start()
    notebook.run(1)
    view = notebook.view(1)
    expect(view.locator(".v-head")).to_contain_text("RUNNING")
    notebook.run(2)
    expect(notebook.cells.nth(2).locator(".jp-InputPrompt")).to_have_text("[*]:")

    view.get_by_role("button", name="Stop").click()

    expect(notebook.cells.nth(2).locator(".jp-OutputArea")).to_contain_text("ended STOPPED", timeout=20_000)
    expect(notebook.cells.nth(1).locator(".jp-RenderedHTML")).to_contain_text("STOPPED")
