"""One JupyterLab and one Chromium for all browser tests. Without Chromium they are skipped, and say how to get it."""

import os
from pathlib import Path

import pytest

from browser.lab import ARGUMENTS, CHROMIUM, Lab

FAILED = pytest.StashKey[bool]()
WHY = f"no browser at {CHROMIUM}: the live views are not tested; get it with: sudo apt-get install chromium"


def pytest_collection_modifyitems(items):
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.browser)
            item.add_marker(pytest.mark.timeout(110))


@pytest.fixture(scope="session")
def chromium():
    if not Path(CHROMIUM).exists():
        if os.environ.get("VCNB_NO_SKIP"):
            pytest.fail(WHY)
        pytest.skip(WHY)
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def lab(chromium, tmp_path_factory):
    made = Lab(tmp_path_factory.mktemp("lab"))
    yield made
    made.close()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    if call.when == "call":
        item.stash[FAILED] = report.failed
    return report


@pytest.fixture
def opened(request, lab, chromium):
    """Open notebooks; their pages are closed after the test (of a failed one a picture is kept), kernels with the server."""
    notebooks = []

    def open_notebook(name, *cells):
        if cells:
            lab.write(name, *cells)
        notebooks.append(lab.open(chromium, name))
        return notebooks[-1]

    yield open_notebook
    for number, notebook in enumerate(notebooks):
        if request.node.stash.get(FAILED, False):
            notebook.screenshot(f"failed-{request.node.name}-{number}")
        notebook.close()
    lab.theme("light")
