"""``load.view()``: a widget that follows a cache job to its end, with a button that stops it; and the dashboard."""

import ipywidgets.widgets.widget as widgets
import pytest

import vcnb
from integration.cache_client.dataset import MIB, make, until
from unit.widget.conftest import RecordingComm
from vcnb.notebook.painter import PAINTER

pytestmark = [pytest.mark.integration, pytest.mark.timeout(90)]


@pytest.fixture
def cluster(monkeypatch):
    RecordingComm.opened = []
    monkeypatch.setattr("comm.create_comm", RecordingComm)
    with vcnb.connect("memory://", controllers="off") as made:
        yield made
    for widget in list(widgets._instances.values()):
        widget.close()
    assert not widgets._instances


def slow(cluster, tmp_path):
    data = make(tmp_path / "data", files=8, size=2 * MIB)
    return cluster.cache.load(data, bandwidth=4 * MIB, batch_size=1)


def test_a_view_follows_a_load_to_its_end(cluster, tmp_path):
    load = slow(cluster, tmp_path)

    view = load.view()

    assert [verb["do"] for verb in view.verbs] == ["stop"]
    until(lambda: 'aria-label="RUNNING: ' in view.cell_progress)
    load.wait()
    until(lambda: "SUCCEEDED" in view.cell_head)
    assert "8 of 8 files" in view.cell_progress
    assert view.verbs == []
    assert view.label == f"cache load {load.path}, SUCCEEDED"
    assert view._static(view._read())["text/plain"].startswith("✔ load")
    view.close()


def test_the_button_stops_the_load(cluster, tmp_path):
    load = slow(cluster, tmp_path)
    view = load.view()

    view._handle_msg({"content": {"data": {"method": "custom", "content": {"do": "stop", "job": "another"}}}})
    PAINTER.call(lambda: None)
    assert load.state != "STOPPED"
    view._handle_msg({"content": {"data": {"method": "custom", "content": {"do": "stop", "job": load.id}}}})

    until(lambda: load.state == "STOPPED")
    until(lambda: "STOPPED" in view.cell_head)
    view.close()


def test_a_view_of_a_finished_job_names_its_failures(cluster, tmp_path):
    load = cluster.cache.load([tmp_path / "lost"])
    load.wait(check=False)

    view = load.view()
    until(lambda: view._over)

    assert "lost" in view.cell_failures
    assert "NOT_FOUND" in view.cell_failures
    view.close()


def test_closing_the_cluster_leaves_what_is_true(cluster, tmp_path):
    view = slow(cluster, tmp_path).view()

    cluster.close()

    assert view._over
    view.close()


def test_the_dashboard_shows_jobs_of_the_cache_once_there_are_some(cluster, tmp_path):
    board = cluster.dashboard()
    assert board.cell_cache == ""

    load = slow(cluster, tmp_path)

    until(lambda: load.path in board.cell_cache)
    load.wait()
    until(lambda: "SUCCEEDED" in board.cell_cache)
    assert "cache" in board._static(board._read())["text/html"]
    board.close()
