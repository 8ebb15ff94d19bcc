"""A job as text and HTML: golden texts, escaping, bounds."""

from html.parser import HTMLParser

from vcnb.clock import rfc3339
from vcnb.scene.describe import describe
from vcnb.scene.job import html, one_line, sections, text
from vcnb.scene.snapshot import JobSnapshot, pod_order
from vcnb.scene.words import seconds_of

START = seconds_of("2026-01-01T00:00:00Z")


def at(seconds):
    return rfc3339(START + seconds)


def pod(name, index, phase="Running", **status):
    return {
        "metadata": {
            "name": name,
            "namespace": "default",
            "uid": name,
            "creationTimestamp": at(0),
            "annotations": {"volcano.sh/task-spec": "worker", "volcano.sh/task-index": str(index)},
        },
        "spec": {"nodeName": "local"},
        "status": {"phase": phase, "startTime": at(1), **status},
    }


def job(phase="Running", **status):
    return {
        "metadata": {"name": "train", "namespace": "default", "uid": "u", "creationTimestamp": at(0)},
        "spec": {"queue": "default", "minAvailable": 2, "tasks": [{"name": "worker", "replicas": 2}]},
        "status": {
            "state": {"phase": phase},
            "history": [{"phase": "Pending", "time": at(0)}, {"phase": "Running", "time": at(1.5)}],
            **status,
        },
    }


def failed(code):
    ended = {"exitCode": code, "reason": "Error", "finishedAt": at(3)}
    return {"containerStatuses": [{"name": "c", "state": {"terminated": ended}}]}


def test_one_line():
    assert one_line(job(running=2)) == "<job default/train: ▶ Running; 2 running>"


def test_a_job_that_no_controller_has_seen():
    fresh = {"metadata": {"name": "x"}, "spec": {}}

    assert one_line(fresh) == "<job default/x: ○ new; no pods yet>"
    assert "new" in html(JobSnapshot(fresh))


def test_text():
    snapshot = JobSnapshot(
        job(running=1, failed=1),
        pods=[pod("train-worker-0", 0), pod("train-worker-1", 1, "Failed", **failed(3))],
        now=START + 5,
    )

    assert text(snapshot) == (
        "job default/train: ▶ Running; 1 running, 1 failed\n"
        "  Pending +0.00s → Running +1.5s\n"
        "  POD              STATE       TIME\n"
        "  train-worker-0   ▶ Running   4.0s\n"
        "  train-worker-1   ✘ Failed    2.0s   exit 3 Error"
    )


def test_what_the_gang_waits_for_is_said():
    group = {
        "status": {
            "conditions": [{"type": "Unschedulable", "status": "True", "message": "2/2 tasks in gang unschedulable"}]
        }
    }

    assert "waits: 2/2 tasks in gang unschedulable" in text(JobSnapshot(job("Pending"), podgroup=group))


class Tags(HTMLParser):
    def __init__(self):
        super().__init__()
        self.seen = set()

    def handle_starttag(self, tag, attrs):
        self.seen.add(tag)
        self.seen.update(name for name, _ in attrs)


def test_html_holds_only_what_survives_in_an_untrusted_notebook():
    tags = Tags()
    event = {"type": "Normal", "reason": "r", "message": "m", "involvedObject": {"name": "train"}}
    tags.feed(html(JobSnapshot(job(running=2), pods=[pod("train-worker-0", 0)], events=[event], now=START + 5)))

    assert tags.seen <= {
        "div",
        "b",
        "span",
        "progress",
        "table",
        "thead",
        "tbody",
        "tr",
        "th",
        "td",
        "details",
        "summary",
        "style",
        "max",
        "value",
        "scope",
        "open",
        "aria-label",
        "img",
        "alt",
        "src",
    }


def test_texts_of_users_are_escaped():
    nasty = "<img src=x onerror=alert(1)>"
    bad = pod(nasty, 0, reason=nasty)
    event = {"type": nasty, "reason": nasty, "message": nasty, "involvedObject": {"name": nasty}}
    group = {"status": {"conditions": [{"type": "Unschedulable", "status": "True", "message": nasty}]}}

    snapshot = JobSnapshot(job("Pending"), podgroup=group, pods=[bad], events=[event], why=nasty, log=[nasty])

    for live in (False, True):
        assert "<img src" not in "".join(sections(snapshot, live=live).values())
    assert "<img src" not in html(snapshot)


def test_both_are_bounded():
    many = JobSnapshot(job(), pods=[pod(f"train-worker-{number}", number) for number in range(10_000)], now=START)

    assert "and 9960 more pods" in text(many)
    assert len(html(many)) < 60_000


def test_pods_are_in_task_order_then_by_index():
    manifest = {"spec": {"tasks": [{"name": "ps"}, {"name": "worker"}]}}
    pods = [pod("w-10", 10), pod("w-2", 2), pod("p-0", 0)]
    pods[2]["metadata"]["annotations"]["volcano.sh/task-spec"] = "ps"

    assert [item["metadata"]["name"] for item in sorted(pods, key=pod_order(manifest))] == ["p-0", "w-2", "w-10"]


def test_describe():
    snapshot = JobSnapshot(job(running=1), pods=[pod("train-worker-0", 0)], now=START + 5)

    assert describe(snapshot) == (
        "Name:            train\n"
        "Namespace:       default\n"
        "UID:             u\n"
        "Age:             5.0s\n"
        "Labels:          <none>\n"
        "Queue:           default\n"
        "Priority class:  <none>\n"
        "Phase:           ▶ Running\n"
        "Min available:   2\n"
        "Retries:         0 of 3\n"
        "Pods:            1 running\n"
        "Plugins:         <none>\n"
        "Policies:        <none>\n"
        "Phases:\n"
        "  PHASE     AFTER\n"
        "  Pending   0.00s\n"
        "  Running   1.5s\n"
        "Tasks:\n"
        "  TASK     REPLICAS   MIN   IMAGE   POLICIES\n"
        "  worker   2          2             <none>\n"
        "Pods:\n"
        "  POD              PHASE     NODE    EXIT   AGE\n"
        "  train-worker-0   Running   local          5.0s\n"
        "Events: <none>"
    )
