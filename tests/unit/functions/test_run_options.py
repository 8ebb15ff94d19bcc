"""The Job that a function runs as: the same manifest for every cluster."""

import pytest

import vcnb
from vcnb.client.functions.options import RunOptions, job_name
from vcnb.client.functions.payload import Packed
from vcnb.errors import VcnbError

PACKED = Packed("ab" * 8, ["text", "more"])


def spec_of(kind="map", pods=3, **options):
    return RunOptions.of(options).job(kind, "item", "train", "train-1", PACKED, "train-1-x", pods).to_manifest()["spec"]


def container_of(spec):
    return spec["tasks"][0]["template"]["spec"]["containers"][0]


def test_a_map_is_no_gang_and_succeeds_when_all_items_do():
    spec = spec_of()

    assert (spec["minAvailable"], spec["minSuccess"]) == (1, 3)
    assert (spec["tasks"][0]["replicas"], spec["tasks"][0]["minAvailable"]) == (3, 1)
    assert "policies" not in spec


def test_the_payload_comes_from_a_secret_through_the_environment():
    container = container_of(spec_of(env={"A": 1}))

    assert container["env"] == [
        {"name": "A", "value": "1"},
        {"name": "VCNB_CALL_0", "valueFrom": {"secretKeyRef": {"name": "train-1-x", "key": "part-0"}}},
        {"name": "VCNB_CALL_1", "valueFrom": {"secretKeyRef": {"name": "train-1-x", "key": "part-1"}}},
        {"name": "VCNB_CALL_PARTS", "value": "2"},
    ]
    assert container["command"][:2] == ["python", "-c"]
    assert container["terminationMessagePolicy"] == "FallbackToLogsOnError"


def test_retries_of_a_map_replace_only_the_lost_pod_within_a_budget():
    spec = spec_of(retries=2)

    assert spec["policies"] == [
        {"exitCode": 137, "action": "RestartPod"},
        {"exitCode": 143, "action": "RestartPod"},
    ]
    assert spec["maxRetry"] == 3 * 2 + 1


def test_replicas_of_a_call_are_a_gang_that_starts_again_as_a_whole():
    spec = spec_of("call", 4, replicas=4, retries=1)

    assert (spec["minAvailable"], spec["tasks"][0]["minAvailable"], spec["maxRetry"]) == (4, 4, 2)
    assert spec["policies"] == [{"event": "PodFailed", "action": "RestartJob"}]
    assert "minSuccess" not in spec


def test_own_policies_of_the_user_come_first_and_are_not_doubled():
    own = vcnb.Policy(exit_code=137, action="AbortJob")

    assert spec_of(retries=1, policies=[own])["policies"] == [
        {"exitCode": 137, "action": "AbortJob"},
        {"exitCode": 143, "action": "RestartPod"},
    ]


def test_what_a_job_takes_is_passed_on():
    spec = spec_of(queue="q", ttl=60, plugins=["svc"], image="python:3.11", resources={"cpu": 1}, priority_class="high")

    assert (spec["queue"], spec["ttlSecondsAfterFinished"], spec["priorityClassName"]) == ("q", 60, "high")
    assert spec["plugins"] == {"env": [], "svc": []}
    assert container_of(spec)["image"] == "python:3.11"
    assert container_of(spec)["resources"]["limits"] == {"cpu": 1}


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"replica": 2}, "did you mean 'replicas'"),
        ({"replicas": 0}, "whole number from 1"),
        ({"retries": -1}, "whole number from 0"),
        ({"timeout": 0}, "seconds above 0"),
    ],
)
def test_impossible_options_are_refused(options, words):
    with pytest.raises(VcnbError, match=words):
        RunOptions.of(options)


@pytest.mark.parametrize("of", ["train", "<lambda>", "Train_Model", "3d", "x" * 200])
def test_names_are_valid_names_of_jobs(of):
    name = job_name(of)

    assert name[0].isalpha()
    assert len(name) <= 50
    assert name.replace("-", "").isalnum()
    assert name == name.lower()
