"""The worked examples of plugin env."""

import pytest

from unit.plugins.plugin_cases import BOTH, added, created, env, hook, job, task


def indexes(value: str) -> list[tuple[str, str]]:
    return [("VK_TASK_INDEX", value), ("VC_TASK_INDEX", value)]


@pytest.mark.parametrize("behaviour", BOTH)
def test_example_1_the_index(behaviour):
    train = job("train", task("worker", 2), plugins={"env": []})
    assert env(created(train, "worker", 1, behaviour)) == indexes("1")


def test_example_2_every_container_and_init_container():
    worker = task("worker", 2, containers=[{"name": "main"}, {"name": "sidecar"}], init=[{"name": "prep"}])
    pod = created(job("train", worker, plugins={"env": []}), "worker", 1)
    assert env(pod, 0) == env(pod, 1) == indexes("1")
    assert [entry["name"] for entry in pod["spec"]["initContainers"][0]["env"]] == ["VK_TASK_INDEX", "VC_TASK_INDEX"]


def test_example_3_each_task_counts_from_zero():
    train = job("train", task("ps"), task("worker"), plugins={"env": []})
    assert env(created(train, "ps")) == env(created(train, "worker")) == indexes("0")


@pytest.mark.parametrize("behaviour", BOTH)
def test_example_4_the_real_index_comes_last(behaviour):
    own = [{"name": "c", "env": [{"name": "VC_TASK_INDEX", "value": "9"}]}]
    pod = created(job("train", task("worker", containers=own), plugins={"env": []}), "worker", 0, behaviour)
    assert env(pod) == [("VC_TASK_INDEX", "9"), *indexes("0")]


def test_example_5_no_padding():
    assert env(created(job("train", task("worker", 12), plugins={"env": []}), "worker", 11)) == indexes("11")


@pytest.mark.parametrize("behaviour", BOTH)
def test_only_the_key_is_kept_and_arguments_mean_nothing(behaviour):
    train = job("train", task("worker"), plugins={"env": ["--x=1"]})
    api, controlled = added(train, behaviour)
    assert controlled == {"plugin-env": "env"}
    hook("on_job_update", train, controlled, api, behaviour)
    hook("on_job_delete", train, controlled, api, behaviour)
    assert controlled == {}
    assert api.calls == []


def test_the_template_is_not_changed():
    train = job("train", task("worker"), plugins={"env": []})
    created(train, "worker")
    assert "env" not in train["spec"]["tasks"][0]["template"]["spec"]["containers"][0]
