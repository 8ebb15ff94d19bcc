"""Plotly figures of jobs, flows and clusters: plain ``Figure`` objects with what happened."""

import json

import plotly.graph_objects as go
import pytest

import vcnb
from vcnb.client.figures import metrics
from vcnb.scene.usage import curves


@pytest.fixture
def cluster():
    with vcnb.connect("memory://?runtime=simulated&clock=virtual&cpus=8&memory=16Gi") as made:
        yield made


def job(name="train", replicas=2):
    resources = {"cpu": "500m", "memory": "1Gi"}
    tasks = [vcnb.Task("w", replicas=replicas, command=["true"], resources=resources)]
    return vcnb.Job(name=name, tasks=tasks)


def ran(cluster, submitted, seconds=10):
    for pod in submitted.pods:
        cluster.simulator.run(pod)
    cluster.simulator.advance(seconds)
    for pod in submitted.pods:
        cluster.simulator.succeed(pod)
    return submitted


def test_the_timeline_of_a_job_has_its_phases_and_pods(cluster):
    figure = ran(cluster, cluster.submit(job())).timeline()

    assert type(figure) is go.Figure
    running = next(trace for trace in figure.data if "Running" in trace.name)
    assert running.y == ("train",)
    assert running.x == (10_000.0,)
    pods = next(trace for trace in figure.data if "Succeeded" in trace.name)
    assert pods.y == ("train-w-0", "train-w-1")


def test_the_usage_of_a_job_is_what_its_pods_hold(cluster):
    figure = ran(cluster, cluster.submit(job())).usage()

    assert type(figure) is go.Figure
    cpu, memory = figure.data
    assert (cpu.name, cpu.y) == ("w", (1.0, 0.0))
    assert memory.y == (2.0, 0.0)
    assert (cpu.x[1] - cpu.x[0]).total_seconds() == 10


def test_a_job_that_has_not_started_has_empty_figures(cluster):
    submitted = cluster.submit(job())

    assert submitted.usage().data == ()
    assert type(submitted.timeline()) is go.Figure


def test_the_cluster_shows_all_jobs_and_what_there_is(cluster):
    for name in ("one", "two"):
        ran(cluster, cluster.submit(job(name)))

    timeline, usage = cluster.timeline(), cluster.usage()

    assert set(timeline.layout.yaxis.categoryarray) == {"one", "two"}
    assert {trace.name for trace in usage.data} == {"one", "two"}
    assert [shape.y0 for shape in usage.layout.shapes] == [8.0, 16.0]


def test_a_flow_has_a_row_for_every_node_that_started(cluster):
    flow = vcnb.Flow("pipeline")
    first = flow.add("load", job("load", 1))
    second = flow.add("train", job("train", 2))
    first >> second
    handle = cluster.submit(flow)
    ran(cluster, handle.jobs["load"])
    cluster.simulator.advance(1)

    timeline, usage = handle.timeline(), handle.usage()

    assert list(timeline.layout.yaxis.categoryarray) == ["load", "train"]
    assert {trace.name for trace in usage.data} == {"load"}


def test_what_controllers_counted_is_a_figure_too(cluster):
    ran(cluster, cluster.submit(job()))

    figure = cluster.metrics().figure()

    assert type(figure) is go.Figure
    assert len(figure.data[0].y) > 0


ROWS = [
    {"task": "w", "index": index, "epoch": epoch, "loss": 1 / epoch, "host": "a"}
    for index in (0, 1)
    for epoch in (1, 2, 3)
]


def test_metrics_have_a_plot_a_column_and_a_line_a_pod():
    figure = metrics(ROWS, "Job train")

    assert [trace.name for trace in figure.data] == ["w-0", "w-1"]
    assert figure.data[0].x == (1, 2, 3)
    assert figure.data[0].y == (1, 1 / 2, 1 / 3)
    assert figure.layout.yaxis.title.text == "loss"
    assert figure.layout.xaxis.title.text == "epoch"


def test_metrics_by_named_columns():
    figure = metrics(ROWS, "Job train", x="loss", y="epoch")

    assert figure.data[0].y == (1, 2, 3)


@pytest.mark.parametrize(
    ("rows", "options", "told"),
    [
        ([], {}, "there are no numbers to draw; pods print them as JSON lines"),
        ([{"task": "w", "index": 0, "host": "a"}], {}, "no numbers"),
        (ROWS, {"y": "accuracy"}, "no record has 'accuracy'; there are: task, index, epoch, loss, host"),
        (ROWS, {"x": "time"}, "no record has 'time'"),
    ],
)
def test_where_there_is_nothing_to_draw_it_is_said(rows, options, told):
    with pytest.raises(vcnb.VcnbError) as error:
        metrics(rows, "Job train", **options)

    assert told in str(error.value)


def test_figures_are_small_in_a_saved_notebook(cluster):
    figure = ran(cluster, cluster.submit(job(replicas=50))).timeline()

    assert len(json.dumps(figure.to_plotly_json(), default=str)) < 40_000


def test_a_pod_without_requests_holds_nothing():
    pod = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c"}]}, "status": {}}

    assert curves({"j": [pod]}, 0.0) == []
