"""Live views as a person sees them: JupyterLab in Chromium, real kernels, real pods."""

import re

from playwright.sync_api import expect

from browser.lab import cell

SETUP = "%load_ext vcnb"
SLOW = """%%vcjob slow --replicas 3 --out job
import os, time
print("hello from worker", os.environ["VC_TASK_INDEX"], flush=True)
time.sleep({seconds})"""


def test_a_cell_shows_its_job_live_until_it_is_completed_and_then_as_static_html(opened):
    notebook = opened("live.ipynb", cell(SETUP), cell(SLOW.format(seconds=4)))
    notebook.start()
    notebook.run(1)
    view = notebook.view(1)

    expect(view.locator(".v-head")).to_contain_text("Running")
    expect(view.locator(".v-output pre")).to_contain_text("hello from worker 2")
    expect(view.get_by_role("button", name="Suspend")).to_be_enabled()
    notebook.screenshot("job-running")
    static = notebook.cells.nth(1).locator(".jp-RenderedHTML")
    expect(static).to_contain_text("Completed")
    expect(static.locator('img[alt^="state diagram"]')).to_be_visible()
    expect(static).to_contain_text("hello from worker 0")
    expect(view).to_have_count(0)
    notebook.screenshot("job-completed")


def test_a_button_works_while_a_cell_blocks_in_wait(opened):
    blocked = "import time; began = time.monotonic()\njob.wait(check=False)\nprint('waited', job.phase)"
    notebook = opened("blocked.ipynb", cell(SETUP), cell(SLOW.format(seconds=90)), cell(blocked))
    notebook.start()
    notebook.run(1)
    view = notebook.view(1)
    expect(view.locator(".v-head")).to_contain_text("Running")
    notebook.run(2)
    expect(notebook.cells.nth(2).locator(".jp-InputPrompt")).to_have_text("[*]:")

    view.get_by_role("button", name="Terminate").click()

    expect(notebook.cells.nth(2).locator(".jp-OutputArea")).to_contain_text("waited Terminated", timeout=20_000)
    expect(notebook.cells.nth(1).locator(".jp-RenderedHTML")).to_contain_text("Terminated")


def test_suspend_resume_restart_and_delete_with_the_keyboard(opened):
    notebook = opened("verbs.ipynb", cell(SETUP), cell(SLOW.format(seconds=90)))
    notebook.start()
    notebook.run(1)
    view = notebook.view(1)
    head = view.locator(".v-head")
    expect(head).to_contain_text("Running")

    view.get_by_role("button", name="Suspend").focus()
    notebook.page.keyboard.press("Enter")
    expect(head).to_contain_text("Aborted")
    view.get_by_role("button", name="Resume").focus()
    notebook.page.keyboard.press("Space")
    expect(head.locator("div").first).to_contain_text("Running")
    expect(view.locator(".v-states")).to_contain_text("2\N{MULTIPLICATION SIGN}")
    notebook.screenshot("job-resumed")
    view.get_by_role("button", name="Delete").focus()
    notebook.page.keyboard.press("Enter")
    expect(view.get_by_text("Delete job slow with its pods?")).to_be_visible()
    notebook.page.keyboard.press("Escape")
    expect(view.get_by_role("button", name="Delete")).to_be_focused()
    notebook.page.keyboard.press("Enter")
    view.get_by_role("button", name="yes: Delete").click()
    expect(view).to_have_count(0)
    expect(notebook.cells).to_have_count(2)


def test_output_is_filtered_and_sections_stay_as_the_reader_left_them(opened):
    talk = (
        "%%vcjob talk --replicas 2 --out job\nimport os, time\n"
        "for n in range(60):\n    print('line', n, 'of', os.environ['VC_TASK_INDEX'], flush=True)\n    time.sleep(0.2)"
    )
    notebook = opened("talk.ipynb", cell(SETUP), cell(talk), cell("job.terminate()"))
    notebook.start()
    notebook.run(1)
    view = notebook.view(1)
    expect(view.locator(".v-output pre")).to_contain_text("line 3 of 1")

    view.get_by_label("show only output lines with this text").fill("talk-worker-1")
    view.locator(".v-states summary").click()

    expect(view.locator(".v-output pre")).not_to_contain_text("of 0")
    expect(view.locator(".v-output pre")).to_contain_text("line 8 of 1")
    expect(view.locator(".v-states svg")).not_to_be_visible()
    notebook.run(2)
    expect(notebook.cells.nth(1).locator(".jp-RenderedHTML")).to_contain_text("Terminated")


def test_dark_theme(lab, opened):
    lab.theme("dark")
    notebook = opened("dark.ipynb", cell(SETUP), cell(SLOW.format(seconds=20)), cell("job.terminate()"))
    notebook.start()
    notebook.run(1)
    view = notebook.view(1)
    expect(view.locator(".v-output pre")).to_contain_text("hello")
    notebook.screenshot("job-dark")

    background = view.evaluate("e => getComputedStyle(document.body).getPropertyValue('--jp-layout-color0')")
    ink = view.locator(".v-states .vt").first.evaluate("e => getComputedStyle(e).fill")

    assert background.strip().lower() in ("#111", "#111111")
    red = int(re.search(r"\d+", ink).group())
    assert red > 200, ink
    notebook.run(2)
    expect(notebook.cells.nth(1).locator(".jp-RenderedHTML")).to_contain_text("Terminated")


def test_a_saved_notebook_shows_the_static_view_when_it_is_opened_again_and_when_it_is_not_trusted(lab, opened):
    notebook = opened("saved.ipynb", cell(SETUP), cell(SLOW.format(seconds=0)))
    notebook.start()
    notebook.run(1)
    expect(notebook.cells.nth(1).locator(".jp-RenderedHTML")).to_contain_text("Completed")
    saved = notebook.save()

    (bundle,) = [output["data"] for output in saved["cells"][1]["outputs"]]
    assert set(bundle) == {"text/html", "text/plain"}
    assert len(str(saved)) < 100_000
    saved["cells"][0]["source"] = "# changed, so that it is not trusted"
    lab.write("untrusted.ipynb", *saved["cells"])
    for name in ("saved.ipynb", "untrusted.ipynb"):
        again = opened(name)
        static = again.cells.nth(1).locator(".jp-RenderedHTML")
        expect(static).to_contain_text("Completed")
        picture = static.locator('img[alt^="state diagram"]')
        expect(picture).to_be_visible()
        assert picture.evaluate("e => e.complete && e.naturalWidth > 100")
        assert static.locator("td").count() >= 6
        again.screenshot(name.removesuffix(".ipynb"))


def test_two_notebooks_at_once(opened):
    pair = [
        opened(f"pair-{number}.ipynb", cell(SETUP), cell(SLOW.format(seconds=60).replace("slow", f"job{number}")))
        for number in (1, 2)
    ]
    for notebook in pair:
        notebook.start()
        notebook.run(1)
    for number, notebook in enumerate(pair, 1):
        expect(notebook.view(1).locator(".v-head")).to_contain_text(f"default/job{number}")
        expect(notebook.view(1).locator(".v-head")).to_contain_text("Running")

    pair[0].view(1).get_by_role("button", name="Terminate").click()

    expect(pair[0].cells.nth(1).locator(".jp-RenderedHTML")).to_contain_text("Terminated")
    expect(pair[1].view(1).locator(".v-head")).to_contain_text("Running")
    pair[1].view(1).get_by_role("button", name="Terminate").click()
    expect(pair[1].cells.nth(1).locator(".jp-RenderedHTML")).to_contain_text("Terminated")


def test_a_dashboard_opens_a_job(opened):
    show = "from vcnb.notebook.current import current\ncurrent().dashboard()"
    notebook = opened(
        "dashboard.ipynb", cell(SETUP), cell(SLOW.format(seconds=60) + "\n"), cell(show), cell("job.terminate()")
    )
    notebook.start()
    for number in (1, 2):
        notebook.run(number)
    view = notebook.view(2)
    expect(view.locator(".v-jobs")).to_contain_text("Running")

    view.get_by_role("button", name="default/slow").click()

    expect(view.locator(".v-opened svg").first).to_be_visible()
    expect(view.get_by_role("button", name="Terminate")).to_be_visible()
    view.locator(".v-head").scroll_into_view_if_needed()
    notebook.screenshot("dashboard")
    notebook.run(3)
    expect(view.locator(".v-jobs")).to_contain_text("Terminated")


FLOW = """%%jobflow
apiVersion: flow.volcano.sh/v1alpha1
kind: JobTemplate
metadata: {name: step}
spec:
  tasks:
  - name: w
    replicas: 1
    template: {spec: {restartPolicy: Never, containers: [{name: c, image: bash, command: [bash, -c, "sleep 60"]}]}}
---
apiVersion: flow.volcano.sh/v1alpha1
kind: JobFlow
metadata: {name: pipeline}
spec:
  flows:
  - {name: first, templateRef: step}
  - {name: left, templateRef: step, dependsOn: {targets: [first]}}
  - {name: right, templateRef: step, when: "false", dependsOn: {targets: [first]}}
  - {name: last, templateRef: step, dependsOn: {targets: [left, right]}}
"""


def test_a_flow_shows_its_whole_graph_and_a_node_opens_its_job(opened):
    complete = "from vcnb.notebook.current import current\ncurrent().jobs['pipeline-first'].complete()"
    end = "current().jobs['pipeline-left'].terminate()"
    notebook = opened("flow.ipynb", cell(SETUP), cell(FLOW), cell(complete), cell(end))
    notebook.start()
    notebook.run(1)
    view = notebook.view(1)
    graph = view.locator(".v-graph svg.v-figure")
    expect(graph.locator('[data-key="last"]')).to_be_visible()
    expect(graph.locator('[data-key="first"]')).to_contain_text("Running")
    before = graph.locator('[data-key="last"] rect').first.bounding_box()

    notebook.run(2)
    expect(graph.locator('[data-key="left"]')).to_contain_text("Running")
    expect(graph.locator('[data-key="right"]')).to_contain_text("Skipped")
    assert graph.locator('[data-key="last"] rect').first.bounding_box()["x"] == before["x"]
    graph.locator('[data-key="left"]').click()

    expect(view.locator(".v-opened")).to_contain_text("default/pipeline-left")
    expect(view.locator(".v-opened svg").first).to_be_visible()
    expect(view.get_by_role("button", name="Terminate")).to_be_visible()
    view.get_by_label("graph: larger").click()
    assert graph.get_attribute("viewBox") != f"0 0 {graph.get_attribute('width')} {graph.get_attribute('height')}"
    view.get_by_label("graph: whole").click()
    view.scroll_into_view_if_needed()
    notebook.screenshot("flow")
    notebook.run(3)
    static = notebook.cells.nth(1).locator(".jp-RenderedHTML")
    expect(static.locator('img[alt^="graph of flow pipeline"]')).to_be_visible()
