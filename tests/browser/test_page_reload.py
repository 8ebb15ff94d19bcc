"""A page that is loaded anew: live again while the kernel is there, the saved view when it is gone. And what a change touches."""

import json
import os
import signal
import urllib.request

from playwright.sync_api import expect

from browser.lab import cell

SETUP = "%load_ext vcnb"
SLOW = """%%vcjob {name} --replicas 3 --out job
import os, time
print("hello from worker", os.environ["VC_TASK_INDEX"], flush=True)
time.sleep(90)"""
READY = "window.jupyterapp?.shell.currentWidget?.sessionContext?.session?.kernel?.connectionStatus === 'connected'"


def running(opened, name, *more):
    notebook = opened(f"{name}.ipynb", cell(SETUP), cell(SLOW.format(name=name)), *more)
    notebook.start()
    notebook.run(1)
    expect(notebook.view(1).locator(".v-head")).to_contain_text("Running")
    return notebook


def reloaded(notebook):
    notebook.save()
    notebook.page.reload()
    expect(notebook.cells.first).to_be_visible(timeout=40_000)


def kernels(lab, method="GET", identity=""):
    request = urllib.request.Request(
        f"http://127.0.0.1:{lab._port}/api/kernels{identity}",
        method=method,
        headers={"Authorization": f"token {lab._token}"},
    )
    with urllib.request.urlopen(request, timeout=20) as answer:
        return json.loads(answer.read() or "null")


def test_a_page_that_is_reloaded_comes_back_live(opened):
    notebook = running(opened, "reload")

    reloaded(notebook)

    view = notebook.view(1)
    expect(view.locator(".v-head")).to_contain_text("Running", timeout=40_000)
    expect(view.locator(".v-output pre")).to_contain_text("hello from worker 2")
    notebook.screenshot("reloaded-live")
    view.get_by_role("button", name="Suspend").click()
    expect(view.locator(".v-head")).to_contain_text("Aborted")
    view.get_by_role("button", name="Delete").click()
    notebook.page.get_by_role("button", name="Delete").last.click()


def test_when_the_kernel_is_gone_the_saved_view_is_shown(lab, opened):
    before = {kernel["id"] for kernel in kernels(lab)}
    notebook = running(opened, "gone")
    (mine,) = {kernel["id"] for kernel in kernels(lab)} - before

    kernels(lab, "POST", f"/{mine}/restart")

    static = notebook.cells.nth(1).locator(".jp-RenderedHTML")
    expect(static).to_contain_text("default/gone", timeout=40_000)
    assert notebook.view(1).count() == 0
    reloaded(notebook)
    expect(static).to_contain_text("as it was at 20", timeout=40_000)
    expect(static).to_contain_text("%vcjob watch gone")
    notebook.screenshot("kernel-gone")


KILLED = """%%vcjob killed --replicas 2 --out job
import pathlib, time
print("hello", flush=True)
for _ in range(900):
    if pathlib.Path({end!r}).exists():
        break
    time.sleep(0.1)"""
"""Its pods outlive a kernel that is killed, and end when the test says so."""


def test_when_the_kernel_was_killed_and_the_notebook_is_opened_again_the_saved_view_is_shown(lab, opened, tmp_path):
    end = tmp_path / "end"
    before = {kernel["id"] for kernel in kernels(lab)}
    job, process = KILLED.format(end=str(end)), "import os; print('process', os.getpid(), 'said')"
    notebook = opened("killed.ipynb", cell(SETUP), cell(job), cell(process))
    notebook.start()
    try:
        notebook.run(1)
        expect(notebook.view(1).locator(".v-head")).to_contain_text("Running")
        notebook.run(2)
        said = notebook.cells.nth(2).locator(".jp-OutputArea")
        expect(said).to_contain_text("said")
        (mine,) = {kernel["id"] for kernel in kernels(lab)} - before
        saved = notebook.save()
        notebook_process = int(said.inner_text().split()[1])
        notebook.page.goto("about:blank")

        os.kill(notebook_process, signal.SIGKILL)
        kernels(lab, "DELETE", f"/{mine}")
        again = opened("killed.ipynb")

        output = again.cells.nth(1).locator(".jp-OutputArea")
        expect(output).to_contain_text("default/killed", timeout=40_000)
        expect(output).to_contain_text("as it was at 20")
        expect(output).to_contain_text("%vcjob watch killed")
        expect(output).not_to_contain_text("Error displaying widget")
        assert output.locator("img").first.evaluate("e => e.complete && e.naturalWidth > 100")
        assert len(str(saved)) < 200_000
        again.screenshot("kernel-killed")
    finally:
        end.touch()


COUNT = """(head) => {
    const root = head.closest(".vcnb");
    window.seen = {records: 0, elements: root.querySelectorAll("*").length, heights: new Set([root.offsetHeight])};
    new MutationObserver((records) => {
        window.seen.records += records.length;
        window.seen.heights.add(root.offsetHeight);
        window.seen.root = root.isConnected;
    }).observe(root, {subtree: true, childList: true, attributes: true, characterData: true});
}"""
SEEN = "({...window.seen, heights: [...window.seen.heights]})"


def test_row_39_a_change_of_state_touches_few_elements_and_moves_nothing(opened):
    notebook = running(opened, "steady")
    view = notebook.view(1)
    expect(view.locator(".v-output pre")).to_contain_text("hello from worker 2")
    notebook.page.wait_for_timeout(1500)
    view.locator(".v-head").evaluate(COUNT)

    notebook.page.wait_for_timeout(2500)
    idle = notebook.page.evaluate(SEEN)
    view.get_by_role("button", name="Suspend").click()
    expect(view.locator(".v-head")).to_contain_text("Aborted")
    after = notebook.page.evaluate(SEEN)

    assert idle["records"] <= 40  # the running times of a job and three pods, once a second
    assert len(idle["heights"]) == 1
    assert after["root"] is True
    assert after["records"] < 3 * after["elements"]
    view.get_by_role("button", name="Resume").click()
    expect(view.locator(".v-head")).to_contain_text("Running")
    view.get_by_role("button", name="Terminate").click()
    expect(notebook.cells.nth(1).locator(".jp-RenderedHTML")).to_contain_text("Terminated")
