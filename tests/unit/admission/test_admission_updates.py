"""U1-U9: what may change in a Job that exists."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from unit.admission.samples import create, job, only, paths, pod, queue, stored, task, update

CLAIM = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
TIERS = {"highestTierAllowed": 1, "highestTierName": "rack"}


def changed(old: Any, **spec: Any) -> Any:
    return {**old, "spec": {**old["spec"], **spec}}


def with_task(old: Any, index: int = 0, **fields: Any) -> Any:
    new = copy.deepcopy(old)
    new["spec"]["tasks"][index].update(fields)
    return new


@pytest.mark.parametrize("strict", [True, False])
def test_u1_to_u6_numbers(strict: bool) -> None:
    old = stored(job(task("a", 3), task("b", 2), minAvailable=2))

    assert "spec.tasks[0].replicas" in paths(update(with_task(old, replicas=-1), old, strict=strict))
    assert "spec.tasks[0].minAvailable" in paths(update(with_task(old, minAvailable=-1), old, strict=strict))
    assert only(update(with_task(old, minAvailable=4), old, strict=strict))[0] == "spec.tasks[0].minAvailable"
    assert only(update(changed(old, minAvailable=6), old, strict=strict))[0] == "spec.minAvailable"
    assert only(update(changed(old, minAvailable=-1), old, strict=strict))[0] == "spec.minAvailable"


def test_u1_u2_and_u6_without_the_schema() -> None:
    from vcnb.admission.findings import Findings
    from vcnb.admission.job_update import update_job

    old = stored(job(task("a", 3)))
    new = with_task(changed(old, minAvailable=-2), replicas=-3, minAvailable=-4)
    findings = Findings()
    update_job(new, new, old, findings)

    negative = [problem.path for problem in findings.problems if "must not be negative" in problem.message]
    assert negative == ["spec.tasks[0].replicas", "spec.tasks[0].minAvailable", "spec.minAvailable"]


def test_u4_partitions() -> None:
    old = stored(job(task("a", 4, partitionPolicy={"totalPartitions": 2, "partitionSize": 2})))

    path, message = only(update(with_task(old, replicas=6), old))

    assert path == "spec.tasks[0].replicas"
    assert "2 * 2 = 4" in message


def test_u4_partition_minimum() -> None:
    policy = {"totalPartitions": 2, "partitionSize": 2, "minPartitions": 1}
    old = stored(job(task("a", 4, partitionPolicy=policy)))

    assert only(update(with_task(old, minAvailable=3), old))[0] == "spec.tasks[0].minAvailable"


def test_u7_tiers() -> None:
    old = job(networkTopology=TIERS)

    assert "spec.networkTopology" in paths(update(changed(stored(job()), networkTopology=TIERS), old))


def test_u8_the_number_of_tasks() -> None:
    old = stored(job(task("a"), task("b"), minAvailable=1))

    path, message = only(update(changed(old, tasks=old["spec"]["tasks"][:1]), old))

    assert path == "spec.tasks"
    assert "a, b" in message


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("queue", "other"),
        ("maxRetry", 9),
        ("policies", [{"event": "PodFailed", "action": "AbortJob"}]),
        ("plugins", {"env": []}),
        ("ttlSecondsAfterFinished", 0),
        ("minSuccess", 1),
        ("schedulerName", "mine"),
        ("volumes", [{"mountPath": "/d", "volumeClaimName": "c"}]),
        ("runningEstimate", "5m"),
    ],
)
def test_u9_everything_else_is_frozen(field: str, value: Any) -> None:
    old = stored(job())

    path, message = only(update(changed(old, **{field: value}), old))

    assert path == f"spec.{field}"
    assert "minAvailable" in message


def test_u9_names_each_field_that_differs() -> None:
    old = stored(job(task("a"), task("b")))
    new = with_task(with_task(old, 0, maxRetry=9), 1, template={"metadata": {}, "spec": {**pod(), "hostNetwork": True}})

    found = paths(update(new, old))

    assert "spec.tasks[0].maxRetry" in found
    assert "spec.tasks[1].template.spec.hostNetwork" in found


def test_u9_tasks_are_compared_by_position() -> None:
    old = stored(job(task("a"), task("b")))

    answer = update(changed(old, tasks=old["spec"]["tasks"][::-1]), old)

    assert paths(answer) == ["spec.tasks[0].name", "spec.tasks[1].name"]


def test_u9_compares_what_is_meant() -> None:
    old = stored(
        job(
            task(
                template={"spec": pod(containers=[{"name": "c", "image": "i", "resources": {"limits": {"cpu": "1"}}}])}
            )
        )
    )
    new = copy.deepcopy(old)
    new["spec"]["policies"] = []
    new["spec"]["tasks"][0]["template"]["spec"]["containers"][0]["resources"]["limits"]["cpu"] = "1000m"
    del new["spec"]["tasks"][0]["template"]["metadata"]

    assert update(new, old).allowed


def test_what_may_change() -> None:
    old = stored(job(task("a", 3), task("b", 2), minAvailable=2))
    new = with_task(changed(old, minAvailable=1, priorityClassName="high"), replicas=1, minAvailable=0)

    answer = update(new, old)

    assert answer.allowed
    assert answer.object["spec"]["minAvailable"] == 1
    assert answer.object["spec"]["tasks"][0]["replicas"] == 1


def test_an_explicit_zero_stays_zero() -> None:
    old = stored(job())

    answer = update(with_task(changed(old, minAvailable=0), replicas=0, minAvailable=0), old)

    assert answer.allowed
    assert answer.object["spec"]["minAvailable"] == 0
    assert answer.object["spec"]["tasks"][0]["replicas"] == 0


def test_the_manifest_that_a_job_was_made_from_can_be_applied_again() -> None:
    written = job(task(None, template={"spec": pod(hostNetwork=True)}), plugins={"tensorflow": ["--worker=default0"]})
    old = stored(written)

    answer = update(written, old)

    assert answer.allowed, answer.problems
    assert answer.object["spec"] == old["spec"]


def test_the_claim_name_that_the_controller_wrote_stays() -> None:
    written = job(volumes=[{"mountPath": "/d", "volumeClaim": CLAIM}])
    old = stored(written)
    named = [{**old["spec"]["volumes"][0], "volumeClaimName": "j-pvc-000000000000"}]

    assert update(changed(old, volumes=named), old, strict=False).allowed
    again = update(written, changed(old, volumes=named))
    assert again.allowed
    assert again.object["spec"]["volumes"] == named


def test_scaling_up_must_not_make_pod_names_too_long() -> None:
    old = stored(job(task(replicas=2), name="j" * 59))

    assert update(with_task(old, replicas=10), old).allowed
    assert only(update(with_task(old, replicas=11), old))[0] == "metadata.name"


def test_queue_and_plugins_are_not_judged_again() -> None:
    old = stored(job(queue="q"), queue("q", state="Open"))

    assert update(with_task(old, replicas=3), old, queue("q", state="Closed")).allowed


def test_status_and_metadata_are_free() -> None:
    old = stored(job())
    new = {**old, "status": {"state": {"phase": "Running"}}}

    assert update(new, old).object is new
    assert update({**old, "metadata": {**old["metadata"], "labels": {"a": "b"}}}, old).allowed
    assert not update({**old, "metadata": {**old["metadata"], "labels": {"a b": "b"}}}, old).allowed


def test_a_job_that_is_stored_already_is_not_judged_by_the_rules_for_new_ones() -> None:
    bad = {**job(), "spec": {"tasks": []}}

    assert not create(bad).allowed
    assert update({**bad, "status": {"x": 1}}, bad).allowed
