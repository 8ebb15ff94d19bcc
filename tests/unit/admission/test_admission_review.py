"""One request as a whole: metadata, kinds, strict and not, errors, worlds that may not be read."""

from __future__ import annotations

from typing import Any

import pytest

from unit.admission.samples import FakeWorld, create, delete, job, only, paths, pod, podgroup, queue, task, update
from vcnb.admission import admit, review
from vcnb.admission.findings import near
from vcnb.errors import Forbidden, InvalidObject
from vcnb.resources.kinds import UnknownKind


def plain(kind: str = "ConfigMap", api_version: str = "v1", **fields: Any) -> dict[str, Any]:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": "x"}, **fields}


def command(**fields: Any) -> dict[str, Any]:
    target = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": "j", "uid": "u"}
    return plain("Command", "bus.volcano.sh/v1alpha1", **{"action": "AbortJob", "target": target, **fields})


@pytest.mark.parametrize(
    ("metadata", "path"),
    [
        ({"name": "Big"}, "metadata.name"),
        ({"name": "x" * 254}, "metadata.name"),
        ({}, "metadata.name"),
        ({"generateName": "Big-"}, "metadata.generateName"),
        ({"name": "x", "namespace": "a.b"}, "metadata.namespace"),
        ({"name": "x", "labels": {"a b": "c"}}, 'metadata.labels["a b"]'),
        ({"name": "x", "labels": {"a": "c d"}}, "metadata.labels.a"),
        ({"name": "x", "annotations": {"a b": "c"}}, 'metadata.annotations["a b"]'),
    ],
)
def test_metadata(metadata: Any, path: str) -> None:
    assert path in paths(create({**plain(), "metadata": metadata}))


def test_metadata_that_is_fine() -> None:
    meta = {
        "generateName": "x-",
        "namespace": "n",
        "labels": {"app.k8s.io/Name": "A_1", "e": ""},
        "annotations": {"X/y": "z"},
    }

    assert create({**plain(), "metadata": meta}).allowed


def test_a_queue_belongs_to_no_namespace() -> None:
    obj = queue()
    obj["metadata"]["namespace"] = "n"

    assert only(create(obj))[0] == "metadata.namespace"


def test_no_metadata_at_all() -> None:
    assert "metadata" in paths(create({"apiVersion": "v1", "kind": "ConfigMap"}))


def test_an_unknown_kind() -> None:
    with pytest.raises(UnknownKind):
        create(plain("Jbo"))


def test_an_unknown_operation() -> None:
    with pytest.raises(ValueError, match="CONNECT"):
        review("CONNECT", job(), None, FakeWorld())


def test_admit_returns_what_to_store() -> None:
    found = admit("CREATE", job(), None, FakeWorld())

    assert found is not None
    assert found["spec"]["queue"] == "default"
    assert admit("DELETE", None, queue(), FakeWorld()) is None
    assert admit("DELETE", None, job(), FakeWorld()) is None


def test_admit_raises_with_every_problem() -> None:
    with pytest.raises(InvalidObject) as caught:
        admit("CREATE", job(queue="nope", minAvailable=9), None, FakeWorld())

    assert {problem.path for problem in caught.value.errors} == {"spec.minAvailable", "spec.queue"}
    assert str(caught.value).startswith("Job j is invalid: 2 problems")


def test_admit_forbids_a_delete() -> None:
    with pytest.raises(Forbidden, match="'default' is always there") as caught:
        admit("DELETE", None, queue("default"), FakeWorld())

    assert str(caught.value.ref) == "Queue default"


def test_a_structural_problem_is_not_told_twice() -> None:
    answer = create(job(policies=[{"event": "Nonsense", "action": "AbortJob"}]))

    assert paths(answer) == ["spec.policies[0].event"]


def test_empty_text_that_defaulting_mends_is_no_problem() -> None:
    assert create(job(task(""), queue="", schedulerName="")).allowed
    assert create(queue(weight=0)).allowed


def test_unknown_fields_have_a_suggestion() -> None:
    path, message = only(create(job(maxRetries=3)))

    assert path == "spec.maxRetries"
    assert "maxRetry" in message


class ClosedWorld(FakeWorld):
    """A user who may read nothing but his own namespace."""

    def _no(self, *_: Any) -> Any:
        raise Forbidden("you may not read that")

    queue = queues = namespace = template = priority_class = _no


def test_rules_about_what_cannot_be_read_are_left_to_the_server() -> None:
    world = ClosedWorld()

    for obj in (job(queue="x", priorityClassName="p"), queue(parent="p"), podgroup(queue="x")):
        assert review("CREATE", obj, None, world).allowed, obj
    assert review("DELETE", None, queue(), world).allowed


def test_other_kinds_pass() -> None:
    assert create(plain(data={"a": "b"})).allowed
    assert update(plain(data={"a": "c"}), plain(data={"a": "b"})).allowed
    assert not create(plain(dta={"a": "b"})).allowed
    assert create(plain(dta={"a": "b"}), strict=False).allowed
    assert delete(queue("q")).object == {}


def test_pods_are_judged_like_templates_for_people() -> None:
    bad = plain("Pod", spec=pod(containers=[{"name": "c"}]))

    assert only(create(bad))[0] == "spec.containers[0].image"
    assert create(bad, strict=False).allowed


@pytest.mark.parametrize("value", ["5%5", "%7", "50 %", "1.5", ""])
def test_disruption_shares_have_one_percent_sign_at_the_end(value: str) -> None:
    obj = plain("Pod", spec=pod(schedulerName="volcano"))
    obj["metadata"]["annotations"] = {"volcano.sh/jdb-max-unavailable": value}

    assert only(create(obj))[0] == 'metadata.annotations["volcano.sh/jdb-max-unavailable"]'


@pytest.mark.parametrize(
    ("obj", "path"),
    [
        (command(action="AbortJbo"), "action"),
        (command(action=""), "action"),
        (command(action="OpenQueue"), "action"),
        (command(target={"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u"}), "target.kind"),
        (command(target={"apiVersion": "v1", "kind": "Job", "name": "", "uid": "u"}), "target.name"),
    ],
)
def test_commands(obj: Any, path: str) -> None:
    assert only(create(obj))[0] == path
    assert create(obj, strict=False).allowed


def test_good_commands() -> None:
    queue_target = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "name": "q", "uid": "u"}

    assert create(command()).allowed
    assert create(command(action="CloseQueue", target=queue_target)).allowed
    assert [w.path for w in create(command(action="RestartTask")).warnings] == ["action"]


def test_suggestions() -> None:
    assert near("defualt", ["default", "root"]) == "; did you mean 'default'?"
    assert near("POD", ["pod"]) == "; did you mean 'pod'?"
    assert near("zzz", ["a", "b"], "tasks") == "; tasks: a, b"
    assert near("zzz", []) == ""
