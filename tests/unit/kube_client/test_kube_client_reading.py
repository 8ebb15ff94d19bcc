"""What admission needs of a server, read at once; and defaults of jobs that controllers make."""

from __future__ import annotations

import asyncio

import pytest

from vcnb.client.doctor import Finding, Report
from vcnb.client.documents import check_all, read
from vcnb.client.kube.reading import Fetched, fetch
from vcnb.client.url import parse_url
from vcnb.clock import VirtualClock
from vcnb.errors import Forbidden, InvalidObject, VcnbError
from vcnb.kube.controller.defaulting import with_defaults
from vcnb.resources import kinds
from vcnb.store.memory import MemoryStore

JOB = """
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: x}
spec: {queue: QUEUE, tasks: [{replicas: 2, template: {spec: {containers: [{name: c, image: i}]}}}]}
"""


def documents(queue: str):
    return read(JOB.replace("QUEUE", queue))


def queue(name: str) -> dict:
    return {"apiVersion": kinds.QUEUE.api_version, "kind": "Queue", "metadata": {"name": name}, "spec": {"weight": 1}}


def test_admission_sees_what_the_server_has():
    store = MemoryStore(VirtualClock())
    asyncio.run(store.create(queue("mine")))
    known = asyncio.run(fetch(store, documents("mine"), "team"))

    (checked,) = check_all(documents("mine"), known, None, default="team")

    assert checked.object["metadata"]["namespace"] == "team"
    assert checked.object["spec"]["minAvailable"] == 2
    with pytest.raises(InvalidObject, match="there is no queue 'other'"):
        check_all(documents("other"), known, None, default="team")


def test_what_may_not_be_read_is_left_to_the_server():
    known = Fetched()
    known.refuse(kinds.QUEUE, Forbidden("no"))

    (checked,) = check_all(documents("anything"), known, None)

    assert checked.object["spec"]["queue"] == "anything"
    with pytest.raises(Forbidden):
        known.peek(kinds.QUEUE, "anything")


def test_a_job_that_a_controller_makes_has_volcanos_defaults():
    bare = read(JOB.replace("QUEUE", "default"))[0].object

    done = with_defaults(bare)

    assert done["spec"]["minAvailable"] == 2
    assert done["spec"]["maxRetry"] == 3
    assert done["spec"]["tasks"][0]["name"] == "default0"
    assert "minAvailable" not in bare["spec"]


def test_a_job_that_would_be_refused_is_left_as_it_is():
    broken = {"apiVersion": kinds.JOB.api_version, "kind": "Job", "metadata": {"name": "x"}, "spec": {"tasks": []}}

    assert with_defaults(broken) == broken


def test_a_kubernetes_url_leaves_the_controllers_off_unless_told():
    target = parse_url("kube://ctx?namespace=team&kubeconfig=/tmp/k")

    assert (target.name, target.options.namespace, target.options.controllers) == ("ctx", "team", "off")
    assert parse_url("kube://?controllers=force").options.controllers == "force"
    assert "controllers" not in target.asked
    assert target.key == "kube://ctx?namespace=team&kubeconfig=/tmp/k"


@pytest.mark.parametrize(
    "url",
    ["kube://x?runtime=process", "kube://x?memory=1Gi", "memory://?namespace=a", "embedded://a?controllers=force"],
)
def test_options_of_the_other_sort_of_cluster_are_refused(url: str):
    with pytest.raises(VcnbError, match="cannot connect"):
        parse_url(url)


def test_a_report_says_what_to_do_and_escapes_what_it_shows():
    report = Report(
        [
            Finding("python", "version", "ok", "3.11"),
            Finding("kubernetes", "permissions", "problem", "you may not <create> jobs", "ask for a Role"),
            Finding("kubernetes", "nodes", "note", "none"),
        ]
    )

    assert not report.ok
    assert str(report) == (
        "python\n  ✔ version: 3.11\nkubernetes\n  ✘ permissions: you may not <create> jobs\n      ask for a Role\n"
        "  ! nodes: none\n1 problem, 1 note, 3 things looked at"
    )
    assert "&lt;create&gt;" in report._repr_html_()
    assert Report([Finding("a", "b", "note", "c")]).ok
