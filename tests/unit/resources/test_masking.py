"""What looks secret is not shown."""

import pytest

from vcnb.resources.masking import MASK, is_secret_at, looks_secret, masked


@pytest.mark.parametrize("name", ["API_TOKEN", "password", "DB_PASSWORD", "AWS_SECRET_ACCESS_KEY", "sshKey"])
def test_secret_names(name):
    assert looks_secret(name)


@pytest.mark.parametrize("name", ["PATH", "HOME", "VC_TASK_INDEX", "LR"])
def test_plain_names(name):
    assert not looks_secret(name)


def test_masked_copy():
    pod = {"spec": {"containers": [{"env": [
        {"name": "TOKEN", "value": "t"}, {"name": "LR", "value": "1"}, {"name": "KEY", "valueFrom": {"secretKeyRef": {}}},
    ]}]}}  # fmt: skip
    shown = masked(pod)["spec"]["containers"][0]["env"]
    assert shown == [
        {"name": "TOKEN", "value": MASK}, {"name": "LR", "value": "1"}, {"name": "KEY", "valueFrom": {"secretKeyRef": {}}},
    ]  # fmt: skip
    assert pod["spec"]["containers"][0]["env"][0]["value"] == "t"


def test_the_data_of_a_secret():
    assert masked({"kind": "Secret", "data": {"a": "x"}}) == {"kind": "Secret", "data": {"a": MASK}}
    assert masked({"kind": "ConfigMap", "data": {"a": "x"}}) == {"kind": "ConfigMap", "data": {"a": "x"}}


def test_secret_places():
    pod = {"kind": "Pod", "spec": {"env": [{"name": "TOKEN", "value": 1}, {"name": "A", "value": 2}]}}
    assert is_secret_at(pod, ("spec", "env", 0, "value"))
    assert not is_secret_at(pod, ("spec", "env", 1, "value"))
    assert not is_secret_at(pod, ("spec", "env", 7, "value"))
    assert is_secret_at({"kind": "Secret"}, ("data", "a"))
