"""A cluster with vcnb's own definitions: flows that decide are JobFlows there, histories are kept, notebooks run as jobs."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import nbformat
import pytest

import vcnb
from kube.apiserver import ApiServer, NoApiServer, find_assets
from kube.machine import Machine
from vcnb.client.cluster import Cluster
from vcnb.kube.crds import custom_resource_definitions

PATIENCE = 60.0


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A client with controllers, on a server with vcnb's definitions and a machine."""
    try:
        assets = find_assets()
    except NoApiServer as error:
        pytest.skip(str(error))
    with ApiServer(tmp_path_factory.mktemp("own-definitions"), assets=assets) as server:
        for definition in custom_resource_definitions():
            server.apply_crd(definition)
        with (
            Machine(server.kubeconfig),
            vcnb.connect("kube://admin", kubeconfig=str(server.kubeconfig), controllers="on") as connected,
        ):
            yield connected


def task(script: str) -> list[vcnb.Task]:
    return [vcnb.Task("m", image="python:3.11", command=["sh", "-c", script])]


def test_a_history_is_kept_with_reasons_and_counters(cluster: Cluster):
    job = cluster.submit(vcnb.Job(name="kept", tasks=task("true"))).wait(timeout=PATIENCE)

    assert job.object["status"]["history"]
    assert job.history[-1].counters["succeeded"] == 1


def test_a_flow_that_decides_is_a_jobflow(cluster: Cluster):
    flow = vcnb.Flow("decides", params={"go": False})
    flow.add("first", task("true")) >> flow.add("skipped", task("true"), when="params.go")

    handle = cluster.submit(flow).wait(timeout=PATIENCE)

    assert {name: record.phase for name, record in handle.nodes.items()} == {"first": "Succeeded", "skipped": "Skipped"}
    assert handle.object["metadata"].get("annotations", {}).get("vcnb/kept-in") is None
    assert not cluster.configmaps.list(selector="vcnb/kind=JobFlow")
    handle.delete()
    assert "decides-first" not in cluster.jobs


def test_functions_in_a_flow_hand_their_values_on(cluster: Cluster):
    def measure() -> dict[str, float]:
        return {"accuracy": 0.75}

    def praise(accuracy: float) -> dict[str, str]:
        return {"word": "good" if accuracy > 0.5 else "bad"}

    flow = vcnb.Flow("values")
    first = flow.add("measure", measure, outputs=["accuracy"])
    second = flow.add(
        "praise", praise, args={"accuracy": "${{ flows.measure.outputs.accuracy }}"}, outputs=["word"],
        when="flows.measure.outputs.accuracy > 0.5",
    )  # fmt: skip
    first >> second

    handle = cluster.submit(flow).wait(timeout=PATIENCE)

    assert handle.nodes["measure"].outputs["accuracy"] == 0.75
    assert handle.nodes["praise"].outputs["word"] == "good"


def test_a_notebook_runs_as_a_job_and_comes_back(cluster: Cluster, tmp_path: Path):
    cells = [
        nbformat.v4.new_code_cell("factor = 2", metadata={"tags": ["parameters"]}),
        nbformat.v4.new_code_cell("print(21 * factor)"),
    ]
    metadata = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    path = tmp_path / "double.ipynb"
    nbformat.write(nbformat.v4.new_notebook(cells=cells, metadata=metadata), path)

    done = cluster.notebook(
        path, {"factor": 4}, output=str(tmp_path / "out.ipynb"), container={"command": [sys.executable, *_rest()]}
    ).result(timeout=PATIENCE)

    assert done.notebook.cells[-1].outputs[0].text == "84\n"


def _rest() -> list[str]:
    from vcnb.client.functions.payload import LOADER

    return ["-c", LOADER]
