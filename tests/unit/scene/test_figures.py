"""Figures: the state diagram, pods as squares, the timeline, graphs of flows; what they say without colours."""

import base64
import re
from xml.etree import ElementTree as ET

import pytest

from vcnb.clock import rfc3339
from vcnb.resources.phases import JobPhase, NodePhase
from vcnb.scene.dag import dag
from vcnb.scene.graph import Edge, Graph, Node
from vcnb.scene.podgrid import MAX_SQUARES, pod_grid
from vcnb.scene.snapshot import JobSnapshot
from vcnb.scene.statediagram import state_diagram, transitions
from vcnb.scene.svg import Figure, clip, live_style, text
from vcnb.scene.timeline import MAX_ROWS, Bar, chart, gantt
from vcnb.scene.words import mark, seconds_of

START = seconds_of("2026-01-01T00:00:00Z")
SVG = "{http://www.w3.org/2000/svg}"


def job(*steps, replicas=2):
    history = [{"phase": phase, "time": rfc3339(START + at)} for phase, at in steps]
    return {
        "metadata": {"name": "train", "creationTimestamp": rfc3339(START)},
        "spec": {"tasks": [{"name": "worker", "replicas": replicas}]},
        "status": {"state": {"phase": steps[-1][0] if steps else ""}, "history": history},
    }


def pod(number, phase="Running", task="worker", start=1.0, end=None):
    state = {"running": {"startedAt": rfc3339(START + start)}}
    if end is not None:
        state = {"terminated": {"startedAt": rfc3339(START + start), "finishedAt": rfc3339(START + end)}}
    return {
        "metadata": {"name": f"train-{task}-{number}", "annotations": {"volcano.sh/task-spec": task}},
        "status": {"phase": phase, "containerStatuses": [{"state": state}]},
    }


def parsed(figure):
    return ET.fromstring(figure.svg())


# -- the state diagram


def test_the_diagram_is_the_controllers_table():
    pairs = set(transitions())

    assert (JobPhase.PENDING, JobPhase.RUNNING) in pairs
    assert (JobPhase.ABORTED, JobPhase.RESTARTING) in pairs
    assert (JobPhase.COMPLETED, JobPhase.RUNNING) not in pairs
    assert {phase for pair in pairs for phase in pair} == {str(phase) for phase in JobPhase if phase}


def test_every_phase_is_drawn_from_the_start():
    drawn = state_diagram(job()).body

    assert all(f">{phase}<" in drawn for phase in JobPhase if phase)


def test_the_diagram_says_where_the_job_is_which_way_it_came_and_how_often():
    steps = [("Pending", 0), ("Running", 1), ("Restarting", 3), ("Pending", 4), ("Running", 5.5)]

    figure = state_diagram(job(*steps))

    assert "+5.5s · 2" in figure.body
    assert figure.label == (
        "state diagram of job train: it is Running; it was Pending, then Running, then Restarting, then Pending, then Running"
    )
    assert figure.body.count("vx vw") == 3  # three different transitions, one of them twice
    assert re.search(r"2\N{MULTIPLICATION SIGN}</text>", figure.body)


def test_places_do_not_depend_on_the_state():
    one, other = state_diagram(job()).body, state_diagram(job(("Pending", 0), ("Running", 1))).body

    def places(body):
        return sorted(re.findall(r'<rect x="[\d.]+" y="[\d.]+"', body))

    assert set(places(one)) == set(places(other))


# -- pods


def test_a_square_for_every_pod_and_for_those_that_are_still_to_come():
    figure = pod_grid(job(replicas=5), [pod(0), pod(1, "Failed")])

    assert figure.body.count("h16v16") == 5
    assert mark("Running").shape in figure.body
    assert mark("Failed").shape in figure.body
    assert figure.label == "pods of job train: 1 Running, 1 Failed"


def test_ten_thousand_pods_share_squares_and_the_worst_shows():
    pods = [pod(number, "Failed" if number == 7777 else "Running") for number in range(10_000)]

    figure = pod_grid(job(replicas=10_000), pods)

    assert figure.body.count("h16v16") <= MAX_SQUARES
    assert figure.body.count(mark("Failed").shape) == 1
    assert "each square is 25 pods" in figure.body
    assert len(figure.image()) < 30_000


def test_a_job_without_pods_has_no_grid():
    assert pod_grid({"metadata": {"name": "x"}}, []) is None


# -- the timeline


def test_the_timeline_has_phases_and_pods_on_one_axis():
    snapshot = JobSnapshot(
        job(("Pending", 0), ("Running", 2), ("Completed", 8)), pods=[pod(0, "Succeeded", end=8)], now=START + 9
    )

    figure = gantt(snapshot)

    assert "train: Pending for 2.0s" in figure.body
    assert "train-worker-0: Succeeded for 7.0s" in figure.body
    assert "timeline of job train: train Pending for 2.0s; train Running for 6.0s" in figure.label


def test_nothing_has_lasted_yet():
    assert gantt(JobSnapshot(job(), now=START)) is None


@pytest.mark.parametrize("length", [0.02, 0.9, 7, 59, 100, 4000, 90_000, 2e6])
def test_an_axis_has_between_two_and_eight_ticks(length):
    figure = chart([Bar("a", "Running", 0, length)], "t")

    assert 2 <= figure.body.count('class="vg"') <= 8


def test_a_timeline_of_many_pods_is_bounded():
    figure = chart([Bar(f"pod-{number}", "Running", 0, 5) for number in range(500)], "t")

    assert f"and {500 - MAX_ROWS} more" in figure.body


# -- graphs

EXAMPLES = {
    "a badge for a condition": (Node("a", badges=("?",)), ">?<"),
    "a badge for retries": (Node("a", "Retrying", badges=("x3",)), ">x3<"),
    "a switch is no box": (Node("a", type="Switch"), "<polygon"),
    "items as a stack": (Node("a", "Running", "ForEach", "3/5"), "Running · 3/5"),
    "a loop has an arrow": (Node("a", "Running", "Loop", "2/10"), "↻"),
    "skipped is dashed": (Node("a", "Skipped"), 'class="vn vd"'),
    "omitted is faint": (Node("a", "Omitted"), 'class="vq"'),
    "a failure that is allowed has a tick": (Node("a", "Failed", allowed=True), "vf-good"),
    "who waits for one of several": (Node("a", join="OR"), ">OR<"),
    "a job can be opened": (Node("a", "Running", job="default/f-a"), 'data-open="default/f-a"'),
}


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_node_shows(name):
    node, mark_ = EXAMPLES[name]

    assert mark_ in dag(Graph("f", [node], [])).body


@pytest.mark.parametrize("phase", NodePhase)
def test_every_phase_of_a_node_has_its_shape_and_its_word(phase):
    drawn = dag(Graph("f", [Node("a", str(phase))], [])).body

    assert mark(phase).shape in drawn
    assert f">{phase}<" in drawn


def test_edges_say_what_they_are():
    nodes = [Node(name) for name in "abcdef"]
    edges = [
        Edge("a", "b", "failure"),
        Edge("a", "c", "probe"),
        Edge("a", "d", state="crossed"),
        Edge("a", "e", state="skipped"),
        Edge("a", "f", label="large", state="chosen"),
    ]

    drawn = dag(Graph("f", nodes, edges, {"pair": ("b", "c")})).body

    assert "vk-bad" in drawn
    assert "b waits for a to fail" in drawn
    assert "vx vo" in drawn
    assert "✕" in drawn
    assert "vx vd" in drawn
    assert ">large<" in drawn
    assert "gang pair" in drawn


def test_a_graph_can_be_used_without_seeing_it():
    figure = dag(Graph("f", [Node("a", "Running", job="default/f-a"), Node("b")], [Edge("a", "b")]))

    assert figure.label == "graph of flow f: 2 nodes (1 Running, 1 Waiting): a Running; b Waiting"
    assert 'tabindex="0" role="button" aria-label="a: Running"' in figure.body


# -- what all have in common


def test_an_image_is_well_formed_and_says_the_same_in_words():
    figure = Figure(10, 10, text(1, 2, "a < b & c"), 'said "so"')

    shown = figure.image()

    data = base64.b64decode(re.search(r"base64,([^\"]+)", shown).group(1))
    assert ET.fromstring(data).find(f"{SVG}text").text == "a < b & c"
    assert 'alt="said &quot;so&quot;"' in shown


def test_images_are_light_and_dark_and_hold_no_theme_variables():
    drawn = Figure(10, 10, "", "").svg()

    assert "prefers-color-scheme:dark" in drawn
    assert "--jp-" not in drawn


def test_live_figures_take_the_themes_colours():
    assert "--v-ink:var(--jp-ui-font-color1, #24292f)" in live_style()


def test_nasty_names_stay_text():
    nasty = "</text><script>alert(1)</script>"
    figures = [
        dag(Graph("f", [Node(nasty, nasty, note=nasty, badges=(nasty,))], [Edge(nasty, nasty)])),
        chart([Bar(nasty, nasty, 0, 1)], nasty),
        pod_grid(job(replicas=1), [pod(nasty, nasty, nasty)]),
    ]

    for figure in figures:
        assert "<script" not in figure.inline()
        parsed(figure)


def test_long_names_lose_their_middle():
    assert clip("train-worker-with-a-very-long-name-17", 12) == "train…ame-17"
    assert clip("short", 12) == "short"


def _luminance(colour):
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_text_and_shapes_of_images_stand_out(theme):
    style = re.findall(r"svg\{(--v-[^}]*)\}", Figure(1, 1, "", "").svg())[theme == "dark"]
    colours = dict(re.findall(r"--v-(\w+):(#\w{6})", style))
    paper = _luminance(colours["paper"])

    def contrast(name):
        low, high = sorted((_luminance(colours[name]), paper))
        return (high + 0.05) / (low + 0.05)

    assert contrast("ink") >= 7
    for tone in ("off", "run", "good", "wait", "bad"):
        assert contrast(tone) >= 4.5, tone
