"""From a %%vcjob cell to a manifest."""

import pytest
from IPython.core.error import UsageError

from vcnb.errors import VcnbError
from vcnb.notebook.cells import SCRIPT_LIMIT, language_of, manifest_of
from vcnb.notebook.jobs import cell_parser


def options(*words):
    return cell_parser().parse_args(words)


@pytest.mark.parametrize(
    ("body", "language"),
    [
        ("print(1)", "python"),
        ("#!/bin/bash\necho hi", "bash"),
        ("#!/usr/bin/env bash\necho hi", "bash"),
        ("apiVersion: v1\nkind: Job\n", "yaml"),
        ("kind: Job\nmetadata: {}\n", "yaml"),
        ("# a comment\napiVersion: v1\nkind: Job", "yaml"),
        ("kinds = 1\nkind: int = 2", "python"),
    ],
)
def test_the_language_is_told_from_the_text(body, language):
    assert language_of(body, None) == language


def test_what_is_asked_for_wins():
    assert language_of("kind: Job\n", "bash") == "bash"


def test_a_python_cell_is_one_task_whose_replicas_run_it():
    manifest = manifest_of(options("train", "--replicas", "3", "--cpu", "1", "--env", "A=b"), "print(1)\n", "python")

    task = manifest["spec"]["tasks"][0]
    container = task["template"]["spec"]["containers"][0]
    assert manifest["metadata"] == {"name": "train"}
    assert (task["name"], task["replicas"]) == ("worker", 3)
    assert container["command"] == ["python", "-c", "print(1)\n"]
    assert container["env"] == [{"name": "A", "value": "b"}]
    assert container["resources"] == {"requests": {"cpu": "1"}, "limits": {"cpu": "1"}}
    assert manifest["spec"]["plugins"] == {"env": []}


def test_a_bash_cell_runs_bash():
    manifest = manifest_of(options("x"), "echo hi", "bash")

    assert manifest["spec"]["tasks"][0]["template"]["spec"]["containers"][0]["command"] == ["bash", "-c", "echo hi"]


def test_without_a_name_one_is_made_up():
    assert manifest_of(options(), "1", "python")["metadata"] == {"generateName": "cell-"}


@pytest.mark.parametrize(
    ("text", "policy"),
    [
        ("PodFailed=RestartJob", {"event": "PodFailed", "action": "RestartJob"}),
        ("PodEvicted=RestartJob:30s", {"event": "PodEvicted", "action": "RestartJob", "timeout": "30s"}),
        ("137=AbortJob", {"exitCode": 137, "action": "AbortJob"}),
        ("PodFailed,PodEvicted=AbortJob", {"events": ["PodFailed", "PodEvicted"], "action": "AbortJob"}),
    ],
)
def test_policies(text, policy):
    assert manifest_of(options("x", "--policy", text), "1", "python")["spec"]["policies"] == [policy]


def test_a_policy_without_an_action_is_a_usage_error():
    with pytest.raises(UsageError, match="EVENT=ACTION"):
        manifest_of(options("x", "--policy", "PodFailed"), "1", "python")


def test_plugins_with_arguments():
    manifest = manifest_of(options("x", "--plugin", "svc", "--plugin", "pytorch=--port=23456"), "1", "python")

    assert manifest["spec"]["plugins"] == {"env": [], "svc": [], "pytorch": ["--port=23456"]}


def test_a_cell_that_is_no_python_is_refused_with_its_line():
    with pytest.raises(VcnbError, match="line 3 of the cell is no Python"):
        manifest_of(options("x"), "a = 1\nb = = 2\n", "python")


def test_a_cell_that_does_not_fit_into_a_command_is_refused():
    with pytest.raises(VcnbError, match="bytes"):
        manifest_of(options("x"), "#" * (SCRIPT_LIMIT + 1), "python")
