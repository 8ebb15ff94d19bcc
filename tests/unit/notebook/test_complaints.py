"""What users complain about elsewhere (docs/complaints.md), where no pod has to run: habits of the code, and objects without status."""

import ast
import importlib.metadata
import re
from pathlib import Path

import pytest

import vcnb
from vcnb.scene import words

PACKAGE = Path(vcnb.__file__).parent
SAYING = ("notebook", "cli", "papermill")
"""Rooms that print because a person asked for it."""


def modules(*rooms):
    return [path for path in sorted(PACKAGE.rglob("*.py")) if not rooms or path.relative_to(PACKAGE).parts[0] in rooms]


def calls(path, name):
    tree = ast.parse(path.read_text())
    return [node for node in ast.walk(tree) if isinstance(node, ast.Call) and getattr(node.func, "id", "") == name]


# -- row 15


def test_row_15_the_stock_informer_still_cannot_list_custom_resources():
    """When this fails, kubernetes' own informer has learned it, and ours may be looked at again."""
    informer = pytest.importorskip("kubernetes.informer")
    answer = {"items": [{"metadata": {"name": "train", "namespace": "default"}}], "metadata": {"resourceVersion": "7"}}
    stock = informer.SharedInformer(list_func=lambda **_: answer)

    with pytest.raises(TypeError, match="not iterable"):
        stock._initial_list()


# -- rows 35 and 44


def test_row_35_live_state_uses_no_output_widget_and_clears_no_output():
    for path in modules("notebook", "scene", "client"):
        text = path.read_text()
        assert not re.search(r"\bwidgets\.Output\b|\bclear_output\b|import Output\b", text), path


def test_row_44_nothing_is_printed_from_callbacks_and_threads():
    allowed = {
        "client": "stderr",  # said to the person at the keyboard who interrupts a wait
        "client/functions/pod": "",  # the programs that run in pods: printing is what they are for
    }
    for path in modules():
        where = path.relative_to(PACKAGE)
        if where.parts[0] in SAYING or "pod" in where.parts or path.name == "__main__.py":
            continue
        for call in calls(path, "print"):
            files = [ast.unparse(keyword.value) for keyword in call.keywords if keyword.arg == "file"]
            assert where.parts[0] in allowed, where
            assert files == ["sys.stderr"], f"{where}:{call.lineno}"


def test_row_44_the_painters_thread_and_the_widgets_print_nothing_but_for_a_closed_view():
    printing = [path.name for path in modules("notebook") if "widget" in path.parts or path.name == "painter.py"]
    found = {path.name: len(calls(path, "print")) for path in modules("notebook") if path.name in printing}

    assert {name for name, count in found.items() if count} <= {"scene.py"}


# -- row 47


def luminance(colour):
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one, other):
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("tone", sorted(words.COLOURS))
def test_row_47_shapes_stand_out_from_the_page(tone):
    fallback = re.search(r"#[0-9a-f]{6}", words.COLOURS[tone]).group()

    assert contrast(fallback, "#ffffff") >= 3


def test_row_47_every_state_has_a_shape_of_its_own_tone_and_its_word():
    by_tone = {}
    for state, mark in words.MARKS.items():
        by_tone.setdefault(mark.shape, set()).add(state)
        assert mark.shape.strip()
        assert state in words.badge(state)
    assert len(by_tone) > 10


@pytest.fixture(scope="module")
def page():
    with vcnb.connect("memory://?runtime=simulated&clock=virtual") as cluster:
        job = cluster.submit(vcnb.Job(name="train", tasks=[vcnb.Task("w", replicas=3, command=["true"])]))
        for pod in job.pods:
            cluster.simulator.run(pod)
        return job._repr_mimebundle_()["text/html"]


def test_row_47_pictures_have_words_and_tables_have_headers(page):
    assert all('alt="' in image and 'alt=""' not in image for image in re.findall(r"<img [^>]*>", page))
    assert re.findall(r"<img ", page)
    for table in re.findall(r"<table>.*?</table>", page, re.DOTALL):
        assert '<th scope="col"' in table
    assert all("aria-label" in bar or "</progress>" in bar for bar in re.findall(r"<progress.*?</progress>", page))
    assert "onclick" not in page


# -- row 49


def test_row_49_state_and_output_need_no_other_program():
    job = (
        "wait",
        "watch",
        "logs",
        "events",
        "why",
        "history",
        "pods",
        "story",
        "describe",
        "timeline",
        "usage",
        "metrics",
    )
    verbs = ("suspend", "resume", "restart", "terminate", "complete", "delete", "scale")
    flow = (
        "wait",
        "watch",
        "logs",
        "events",
        "why",
        "nodes",
        "graph",
        "jobs",
        "describe",
        "timeline",
        "usage",
        "metrics",
    )
    cluster = (
        "jobs",
        "queues",
        "nodes",
        "events",
        "status",
        "metrics",
        "dashboard",
        "timeline",
        "usage",
        "attach",
        "diff",
    )

    for kind, names in (
        (vcnb.JobHandle, (*job, *verbs, "view")),
        (vcnb.FlowHandle, (*flow, "view", "retry")),
        (vcnb.Cluster, cluster),
    ):
        assert not [name for name in names if not hasattr(kind, name)]


# -- row 57


@pytest.fixture
def still():
    """A cluster in which nobody writes a status."""
    with vcnb.connect("memory://?controllers=off") as made:
        yield made


FLOW = {
    "apiVersion": "flow.volcano.sh/v1alpha1",
    "kind": "JobFlow",
    "metadata": {"name": "pipeline"},
    "spec": {"flows": [{"name": "load"}]},
}


def test_row_57_every_accessor_of_a_job_works_before_there_is_a_status(still):
    job = still.submit(vcnb.Job(name="train", tasks=[vcnb.Task("w", command=["true"])]))

    assert job.object.get("status", {}) == {}
    for name in ("phase", "status", "history", "pods", "events", "spec", "labels", "annotations", "created", "exists"):
        getattr(job, name)
    for name in ("why", "describe", "logs", "timeline", "usage", "manifest", "records", "story", "_repr_mimebundle_"):
        getattr(job, name)()
    assert (job.phase, job.history, job.pods) == ("", [], [])
    assert repr(job)
    assert repr(still.jobs)
    with pytest.raises(vcnb.WaitTimeout):
        job.wait(timeout=0.01)


def test_row_57_every_accessor_of_a_flow_and_a_queue_works_before_there_is_a_status(still):
    still.submit(vcnb.JobTemplate(name="load", tasks=[vcnb.Task("w", command=["true"])]))
    flow = still.submit(FLOW)
    queue = still.submit(vcnb.Queue(name="fast"))

    for name in ("phase", "status", "history", "nodes", "jobs", "events", "params"):
        getattr(flow, name)
    for name in ("why", "describe", "logs", "timeline", "usage", "graph", "_repr_mimebundle_"):
        getattr(flow, name)()
    assert repr(flow)
    assert queue.state == "Open"
    assert repr(still.queues)
    assert still.dashboard


# -- row 61


def test_row_61_there_is_no_extension_to_install():
    files = importlib.metadata.files("vcnb") or []

    assert not [file for file in files if "labextension" in str(file) or "nbextension" in str(file)]
    assert not (PACKAGE.parent / "widgets" / "labextension").exists()


# -- rows 30 and 31


@pytest.fixture
def simulated():
    with vcnb.connect("memory://?runtime=simulated&clock=virtual") as made:
        yield made


def job(name="train", queue="default", replicas=1):
    return vcnb.Job(name=name, queue=queue, tasks=[vcnb.Task("w", replicas=replicas, command=["true"])])


def test_row_30_a_conflict_is_tried_again_and_no_field_of_two_writers_is_lost(simulated):
    submitted = simulated.submit(job(replicas=2))
    simulated.simulator.fail_next("update_status", kind="Job", error="Conflict", times=3)

    for index in (0, 1):
        simulated.simulator.run(("w", index), job="train")
    submitted.scale({"w": 3})
    simulated.simulator.advance(60)
    simulated.simulator.run(("w", 2), job="train")
    simulated.simulator.advance(60)

    assert submitted.phase == "Running"
    assert submitted.status["running"] == 3
    assert submitted.spec["tasks"][0]["replicas"] == 3


def test_row_31_jobs_are_filtered_and_a_jobs_pods_are_at_hand(simulated):
    simulated.submit([vcnb.Queue(name="fast"), job("a"), job("b", "fast", 2), job("c", "fast")])
    for index in (0, 1):
        simulated.simulator.run(("w", index), job="b")

    assert [each.name for each in simulated.jobs.list(queue="fast")] == ["b", "c"]
    assert [each.name for each in simulated.jobs.list(queue="fast", phase="Running")] == ["b"]
    assert [pod.name for pod in simulated.jobs["b"].pods] == ["b-w-0", "b-w-1"]


# -- row 40


def test_row_40_a_dashboard_of_two_thousand_jobs_is_bounded():
    import time

    from vcnb.clock import rfc3339
    from vcnb.scene.dashboard import sections
    from vcnb.scene.snapshot import ClusterSnapshot

    now = 1_700_000_000.0

    def jobs(minute):
        return [
            {
                "kind": "Job",
                "metadata": {"name": f"job-{number}", "namespace": "default", "creationTimestamp": rfc3339(now)},
                "spec": {"tasks": [{"name": "w", "replicas": 4}]},
                "status": {"state": {"phase": ("Pending", "Running", "Completed")[(number + minute) % 3]}},
            }
            for number in range(2000)
        ]

    took = []
    for minute in range(10):
        snapshot = ClusterSnapshot("memory://", jobs=jobs(minute), now=now + 60 * minute)
        began = time.process_time()
        parts = sections(snapshot, live=True)
        took.append(time.process_time() - began)

    assert sum(map(len, parts.values())) < 60_000
    assert min(took[5:]) < 0.25
    assert min(took[5:]) < 5 * min(took[:5]) + 0.01
