"""Secrets do not show: which names are secret, and what is masked in a manifest."""

import json

import pytest

from vcnb.client.masking import MASK, hide, looks_secret, masked, secret_values
from vcnb.resources.names import LAST_APPLIED


@pytest.mark.parametrize(
    "name",
    [
        "HF_TOKEN",
        "token",
        "DB_PASSWORD",
        "PASSWD",
        "AWS_SECRET_ACCESS_KEY",
        "API_KEY",
        "apiKey",
        "KEY",
        "CREDENTIALS",
        "SSH_PRIVATE",
        "PASSPHRASE",
        "DB_PASS",
        "MYSQL_PWD",
        "BASIC_AUTH",
    ],
)
def test_secret_names(name):
    assert looks_secret(name)


@pytest.mark.parametrize("name", ["PATH", "HOME", "PWD", "OLDPWD", "LR", "AUTHOR", "COMPASS", "VC_TASK_INDEX", ""])
def test_plain_names(name):
    assert not looks_secret(name)


def manifest(*env: dict) -> dict:
    return {
        "kind": "Job",
        "spec": {"tasks": [{"template": {"spec": {"containers": [{"name": "c", "env": list(env)}]}}}]},
    }


def env_of(obj: dict) -> list:
    return obj["spec"]["tasks"][0]["template"]["spec"]["containers"][0]["env"]


def test_values_of_secret_variables_are_masked():
    obj = manifest({"name": "HF_TOKEN", "value": "abc"}, {"name": "LR", "value": "0.1"})
    assert env_of(masked(obj)) == [{"name": "HF_TOKEN", "value": MASK}, {"name": "LR", "value": "0.1"}]
    assert env_of(obj)[0]["value"] == "abc"


def test_what_holds_no_secret_is_the_same_object():
    plain = manifest({"name": "LR", "value": "0.1"})
    assert masked(plain) is plain
    both = {"plain": plain, "env": [{"name": "A_KEY", "value": "abc"}]}
    assert masked(both)["plain"] is plain


def test_references_and_empty_values_stay():
    reference = {"name": "HF_TOKEN", "valueFrom": {"secretKeyRef": {"name": "s", "key": "token"}}}
    obj = manifest(reference, {"name": "A_TOKEN", "value": ""})
    assert masked(obj) is obj


def test_data_of_a_secret_and_variables_as_keys():
    assert masked({"kind": "Secret", "data": {"a": "YQ=="}, "stringData": {"b": "c"}}) == {
        "kind": "Secret",
        "data": {"a": MASK},
        "stringData": {"b": MASK},
    }
    assert masked({"env": {"HF_TOKEN": "abc", "LR": "1"}}) == {"env": {"HF_TOKEN": MASK, "LR": "1"}}
    assert masked({"kind": "ConfigMap", "data": {"a.host": "x"}}) == {"kind": "ConfigMap", "data": {"a.host": "x"}}


def test_passwords_in_urls_and_arguments():
    assert masked(["postgres://me:pw@host/db", "https://host/a:b"]) == [
        f"postgres://me:{MASK}@host/db",
        "https://host/a:b",
    ]
    assert masked({"ssh": ["--ssh-private-key=K\nL", "--ssh-port=22"]}) == {
        "ssh": [f"--ssh-private-key={MASK}", "--ssh-port=22"]
    }
    assert masked(["run", "--token", "abc", "--lr", "1"]) == ["run", "--token", MASK, "--lr", "1"]


def test_what_was_last_applied():
    inner = json.dumps(manifest({"name": "HF_TOKEN", "value": "abc"}))
    shown = masked({"metadata": {"annotations": {LAST_APPLIED: inner}}})["metadata"]["annotations"][LAST_APPLIED]
    assert "abc" not in shown
    assert env_of(json.loads(shown))[0]["value"] == MASK
    assert masked({LAST_APPLIED: "no JSON"}) == {LAST_APPLIED: MASK}
    plain = {LAST_APPLIED: "{}"}
    assert masked(plain) is plain


@pytest.mark.parametrize("value", [None, 1, True, 1.5, b"bytes", "text"])
def test_other_values_stay(value):
    assert masked(value) is value


def test_secret_values_are_found_and_hidden_in_texts():
    obj = manifest(
        {"name": "HF_TOKEN", "value": "abcdef"}, {"name": "A_KEY", "value": "abc"}, {"name": "LR", "value": "0.1"}
    )
    url = manifest({"name": "DB", "value": "postgres://me:pw123@host"})
    assert secret_values(obj, url) == ("abcdef", "pw123")
    assert (
        hide("got abcdef and pw123 at ftp://u:x@h", secret_values(obj, url))
        == f"got {MASK} and {MASK} at ftp://u:{MASK}@h"
    )


def test_longer_values_are_hidden_first():
    obj = manifest({"name": "A_KEY", "value": "abcd"}, {"name": "B_KEY", "value": "abcdefgh"})
    assert hide("abcdefgh", secret_values(obj)) == MASK
