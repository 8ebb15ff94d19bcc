"""Claims of a job's volumes (reference 6.3)."""

from __future__ import annotations

import re

from unit.job.objects import a_job
from vcnb.controllers.job.behaviour import Behaviour
from vcnb.controllers.job.spec import parse_spec
from vcnb.controllers.job.volumes import claim_key, plan_volumes, typed_tasks

STRICT, DEFAULT = Behaviour.strict(), Behaviour.default()
CLAIM = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}


def planned(volumes, *, there=(), behaviour=DEFAULT):
    job = a_job("w*1", volumes=volumes)
    return plan_volumes(job, parse_spec(job), set(there).__contains__, behaviour)


def test_upstream_names_are_random():
    plans = [planned([{"mountPath": "/a", "volumeClaim": CLAIM}], behaviour=STRICT) for _ in range(2)]

    names = [plan.claims[0] for plan in plans]
    assert all(re.fullmatch(r"j-pvc-[0-9a-z]{12}", name) for name in names)
    assert names[0] != names[1]


def test_a_claim_is_made_and_named_in_the_spec():
    plan = planned([{"mountPath": "/a", "volumeClaim": CLAIM}])

    (made,) = plan.create
    name = made["metadata"]["name"]
    assert re.fullmatch(r"j-pvc-[0-9a-z]{12}", name)
    assert (made["spec"], made["metadata"]["namespace"]) == (CLAIM, "ns")
    assert made["metadata"]["ownerReferences"][0]["uid"] == "u1"
    assert plan.volumes == [{"mountPath": "/a", "volumeClaim": CLAIM, "volumeClaimName": name}]
    assert plan.claims == [name]
    assert claim_key(name) == f"volume-pvc-{name}"


def test_q31_another_attempt_finds_what_an_earlier_one_made():
    volumes = [{"mountPath": "/a", "volumeClaim": CLAIM}, {"mountPath": "/b", "volumeClaim": CLAIM}]
    first = planned(volumes)
    made = first.create[0]["metadata"]["name"]

    second = planned(volumes, there=[made])
    assert [claim["metadata"]["name"] for claim in second.create] == [first.create[1]["metadata"]["name"]]
    # The names stand in the spec already, and one claim was not made yet.
    third = planned(first.volumes, there=[made])
    assert third.volumes is None
    assert len(third.create) == 1
    assert planned(first.volumes, there=first.claims).create == []


def test_a_given_claim_has_to_be_there():
    volumes = [{"mountPath": "/a", "volumeClaimName": "mine"}]

    for behaviour in (STRICT, DEFAULT):
        assert planned(volumes, behaviour=behaviour).missing == "mine"
        plan = planned(volumes, there=["mine"], behaviour=behaviour)
        assert (plan.missing, plan.claims, plan.create, plan.volumes) == ("", ["mine"], [], None)


def test_planning_ends_at_a_missing_claim():
    volumes = [
        {"mountPath": "/a", "volumeClaim": CLAIM},
        {"mountPath": "/b", "volumeClaimName": "mine"},
        {"mountPath": "/c", "volumeClaim": CLAIM},
    ]

    plan = planned(volumes)

    assert (len(plan.create), plan.missing) == (1, "mine")


def test_tasks_as_a_typed_client_writes_them():
    tasks = [
        {"name": "w", "template": {"spec": {"containers": [{"name": "c", "resources": {"limits": {}}}, {"name": "d"}]}}}
    ]

    (task,) = typed_tasks(tasks)

    assert task["template"]["metadata"] == {}
    assert [c["resources"] for c in task["template"]["spec"]["containers"]] == [{"limits": {}}, {}]
    assert "metadata" not in tasks[0]["template"]
