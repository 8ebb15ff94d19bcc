"""Live views: what they send, what they do when they are clicked, and what is left when everything has ended."""

import subprocess
import sys
import threading
import time

import ipywidgets.widgets.widget as widgets
import pytest

import vcnb
from vcnb.notebook.painter import PAINTER
from vcnb.notebook.widget import scene
from vcnb.notebook.widget.job import Reader
from vcnb.notebook.widget.scene import KEPT
from vcnb.notebook.widget.verbs import VERBS, verbs_of


class Shown:
    """A display with an id."""

    def __init__(self):
        self.updates = []

    def update(self, bundle, raw):
        assert raw
        self.updates.append(dict(bundle))


@pytest.fixture
def shown(monkeypatch):
    """What was displayed: (bundle, handle)."""
    found = []

    def display(bundle, *, raw, display_id):
        assert raw
        assert display_id
        found.append((bundle, Shown()))
        return found[-1][1]

    monkeypatch.setattr("IPython.display.display", display)
    return found


def submit(cluster, name="train", replicas=2):
    return cluster.submit(vcnb.Job(name=name, tasks=[vcnb.Task("worker", replicas=replicas, command=["true"])]))


def click(view, content):
    view._handle_msg({"content": {"data": {"method": "custom", "content": content}}})
    PAINTER.call(lambda: None)


def verbs(view):
    return [verb["do"] for verb in view.verbs]


def finish(cluster, job):
    for pod in job.pods:
        cluster.simulator.succeed(pod)


# -- what is sent


def test_a_view_holds_the_whole_scene_from_the_start(cluster, comms):
    view = submit(cluster).view()

    (opening,) = [
        data for one in comms for kind, data in one.messages if kind == "comm_open" and "sections" in data["state"]
    ]
    assert opening["state"]["sections"] == ["head", "why", "states", "pods", "timeline", "tasks", "events"]
    assert "default/train" in opening["state"]["cell_head"]
    assert "<svg" in opening["state"]["cell_states"]
    assert verbs(view) == ["suspend", "restart", "terminate", "delete"]
    assert view.job == "default/train"


def test_only_what_changed_is_sent_in_one_message(cluster, painted):
    job = submit(cluster)
    view = painted(job.view())
    view.comm.messages.clear()

    painted(view)
    assert [set(data["state"]) for _, data in view.comm.messages] in ([], [{"now"}])
    view.comm.messages.clear()
    cluster.simulator.run(("worker", 0), job=job)
    painted(view)

    sent = [set(data["state"]) for _, data in view.comm.messages]
    assert any("cell_pods" in keys for keys in sent)
    assert all("cell_tasks" not in keys or "cell_pods" in keys for keys in sent)
    assert all("_esm" not in keys for keys in sent)


def test_views_are_created_changed_and_closed_on_one_thread(cluster, monkeypatch):
    seen = set()
    plain = widgets.Widget._send

    def send(self, msg, buffers=None):
        seen.add(threading.current_thread().name)
        plain(self, msg, buffers)

    monkeypatch.setattr(widgets.Widget, "_send", send)
    job = submit(cluster)
    view = job.view()
    finish(cluster, job)
    click(view, {"do": "delete", "job": "default/train"})
    view.close()

    assert seen <= {"vcnb-views"}


def test_a_job_of_ten_thousand_pods_stays_small_and_cheap(cluster, painted):
    job = submit(cluster, replicas=1)
    pod = job.pods[0].object
    many = [
        {**pod, "metadata": {**pod["metadata"], "name": f"train-worker-{number}"}, "status": {"phase": "Running"}}
        for number in range(10_000)
    ]
    view = painted(job.view())
    snapshot = view._read()
    crowd = type(snapshot)(**{**vars(snapshot), "pods": many})
    began = time.perf_counter()
    state = view._state(crowd)
    took = time.perf_counter() - began

    assert took < 0.5
    assert sum(len(str(value)) for value in state.values()) < 80_000


def test_why_is_asked_less_often_the_longer_it_takes(cluster, monkeypatch):
    asked = []

    def slow(snapshot):
        asked.append(snapshot)
        time.sleep(0.02)
        return "because"

    monkeypatch.setattr("vcnb.notebook.widget.job.why", slow)
    job = submit(cluster)
    reader = Reader(job)

    answers = {reader.read().why for _ in range(10)}

    assert answers == {"because"}
    assert len(asked) == 1
    cluster.simulator.run(("worker", 0), job=job)
    cluster.simulator.run(("worker", 1), job=job)
    assert reader.read().why == ""


# -- clicks


@pytest.mark.parametrize(
    ("verb", "action"), [("suspend", "AbortJob"), ("restart", "RestartJob"), ("terminate", "TerminateJob")]
)
def test_a_button_creates_the_command_of_its_verb(cluster, verb, action, painted):
    job = submit(cluster)
    view = job.view()
    cluster.simulator.stop_controllers()

    click(view, {"do": verb, "job": "default/train"})
    cluster.simulator.settle()

    assert [command.object["action"] for command in cluster.commands] == [action]


def test_suspend_then_resume(cluster, painted):
    job = submit(cluster)
    view = job.view()

    click(view, {"do": "suspend", "job": "default/train"})
    cluster.simulator.settle()
    assert verbs(painted(view)) == ["resume", "delete"]
    assert not view._over
    click(view, {"do": "resume", "job": "default/train"})
    cluster.simulator.settle()
    cluster.simulator.reap()

    assert "restart" in verbs(painted(view))


def test_a_verb_that_is_refused_is_said(cluster, painted):
    job = submit(cluster)
    view = job.view()

    click(view, {"do": "resume", "job": "default/train"})
    cluster.simulator.settle()
    PAINTER.call(lambda: None)

    assert "resume: job 'train' is Pending: it is not suspended" in view.notice


@pytest.mark.parametrize(
    "content",
    [
        {"do": "delete", "job": "default/other"},
        {"do": "delete"},
        {"do": "_wait", "job": "default/train"},
        {"do": ["delete"], "job": "default/train"},
        {"open": 7},
        {},
    ],
)
def test_other_messages_do_nothing(cluster, content):
    job = submit(cluster)
    view = job.view()

    click(view, content)
    cluster.simulator.settle()

    assert job.exists
    assert len(cluster.commands) == 0


def test_a_message_is_only_passed_on(cluster):
    job = submit(cluster)
    view = job.view()
    gate, entered = threading.Event(), threading.Event()
    PAINTER.post(lambda: (entered.set(), gate.wait(5)))
    assert entered.wait(5)
    began = time.monotonic()

    view._handle_msg({"content": {"data": {"method": "custom", "content": {"do": "delete", "job": "default/train"}}}})

    assert time.monotonic() - began < 1
    gate.set()


def test_a_page_that_was_loaded_again_gets_the_whole_state(cluster):
    view = submit(cluster).view()
    PAINTER.call(lambda: None)
    view.comm.messages.clear()

    view._handle_msg({"content": {"data": {"method": "request_state"}}})
    PAINTER.call(lambda: None)

    assert any("_esm" in data.get("state", {}) for _, data in view.comm.messages)


def test_what_the_front_end_would_write_is_not_taken(cluster):
    view = submit(cluster).view()

    view._handle_msg({"content": {"data": {"method": "update", "state": {"cell_head": "<b>forged</b>"}}}})
    PAINTER.call(lambda: None)

    assert "forged" not in view.cell_head


@pytest.mark.parametrize(
    "phase", ["", "Pending", "Running", "Restarting", "Aborting", "Aborted", "Completing", "Failed"]
)
def test_buttons_are_verbs_and_a_deleted_job_has_none(phase):
    assert {verb["do"] for verb in verbs_of("train", phase, exists=True)} <= VERBS
    assert verbs_of("train", phase, exists=False) == []


# -- the end


def test_when_the_job_has_ended_its_static_form_takes_the_widgets_place(cluster, shown, painted):
    job = submit(cluster)
    view = job.view()
    view._ipython_display_()
    bundle, handle = shown[0]
    assert set(bundle) == {"application/vnd.jupyter.widget-view+json", "text/html", "text/plain"}
    assert bundle["application/vnd.jupyter.widget-view+json"]["model_id"] == view.model_id

    finish(cluster, job)
    painted(view)

    assert set(handle.updates[-1]) == {"text/html", "text/plain"}
    assert "Completed" in handle.updates[-1]["text/html"]
    assert "<svg" not in handle.updates[-1]["text/html"]


def test_a_job_that_ends_before_it_is_shown_is_shown_as_static(cluster, shown, painted):
    job = submit(cluster)
    view = job.view()
    finish(cluster, job)
    painted(view)

    view._ipython_display_()

    assert "Completed" in shown[0][1].updates[-1]["text/plain"]


def test_a_deleted_job_ends_its_view(cluster, shown, painted):
    job = submit(cluster)
    view = job.view()
    view._ipython_display_()

    job.delete()
    painted(view)

    assert verbs(view) == []
    assert "was deleted" in view.notice
    assert len(shown[0][1].updates) == 1


def test_closing_the_cluster_leaves_the_last_state(comms, shown):
    cluster = vcnb.connect("memory://?runtime=simulated&clock=virtual")
    view = submit(cluster).view()
    view._ipython_display_()

    cluster.close()

    assert "Pending" in shown[0][1].updates[-1]["text/plain"]
    assert view not in PAINTER._views


def test_three_hundred_jobs_leave_nothing_behind(cluster, shown, painted):
    cluster.simulator.auto(succeed_after=0.0)
    threads = threading.active_count()
    for number in range(300):
        job = submit(cluster, f"job-{number}", replicas=1)
        view = job.view()
        view._ipython_display_()
        painted(view)
        assert view._over

    assert len(widgets._instances) <= 2 * KEPT
    assert len(cluster._views) == 0
    assert threading.active_count() <= threads + 1
    assert not any(cluster._changes._by_kind.values())


def test_a_view_is_closed_from_any_thread_and_twice(cluster):
    view = submit(cluster).view()

    thread = threading.Thread(target=view.close)
    thread.start()
    thread.join(5)
    view.close()

    assert not widgets._instances
    assert view not in PAINTER._views
    assert not any(cluster._changes._by_kind.values())


def test_a_closed_view_shows_its_name(cluster, capsys):
    view = submit(cluster).view()
    view.close()

    view._ipython_display_()

    assert capsys.readouterr().out == "<view of job default/train>\n"


# -- front ends without widgets


def test_a_front_end_that_does_not_mount_the_widget_gets_static_html_that_is_updated(
    cluster, shown, painted, monkeypatch
):
    monkeypatch.setattr(scene, "MOUNT_SECONDS", 0.0)
    job = submit(cluster)
    view = job.view()
    view._ipython_display_()
    handle = shown[0][1]

    cluster.simulator.run(("worker", 0), job=job)
    painted(view)

    assert "application/vnd.jupyter.widget-view+json" not in handle.updates[-1]
    assert "Running" in handle.updates[-1]["text/plain"]


def test_a_front_end_that_has_mounted_it_is_not_disturbed(cluster, shown, painted, monkeypatch):
    monkeypatch.setattr(scene, "MOUNT_SECONDS", 0.0)
    job = submit(cluster)
    view = job.view()
    click(view, {"mounted": True})
    view._ipython_display_()

    cluster.simulator.run(("worker", 0), job=job)
    painted(view)

    assert shown[0][1].updates == []


# -- the dashboard


def test_a_dashboard_shows_nodes_queues_and_jobs_and_opens_one(cluster, painted):
    job = submit(cluster)
    view = painted(cluster.dashboard())
    assert "default/train" in view.cell_jobs
    assert "default" in view.cell_queues
    assert "cpu" in view.cell_nodes
    assert view.cell_opened == ""

    click(view, {"open": "default/train"})
    assert "state diagram of job train" in painted(view).cell_opened
    click(view, {"do": "terminate", "job": "default/train"})
    cluster.simulator.settle()
    cluster.simulator.reap()
    assert job.phase == "Terminated"
    click(view, {"close": True})

    assert painted(view).cell_opened == ""
    assert view.verbs == []


def test_a_dashboard_says_that_a_job_is_gone(cluster, painted):
    view = cluster.dashboard()

    click(view, {"open": "default/nothing"})

    assert "nothing" in view.notice


# -- what it costs


def test_the_module_fits_into_a_notebook():
    folder = scene._STATIC

    assert (folder / "view.js").stat().st_size <= 30_000
    assert len(scene._style()) < 8_000


def test_importing_vcnb_imports_no_widget():
    code = "import sys, vcnb, vcnb.notebook.widget; print([m for m in ('ipywidgets', 'anywidget', 'IPython') if m in sys.modules])"

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout == "[]\n"
