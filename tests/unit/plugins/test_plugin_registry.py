"""What holds for all plugins: names, order, keys, cost, and the life of a job with several of them."""

import subprocess
import sys
import time

import pytest

from unit.plugins.plugin_cases import BOTH, DEFAULT, STRICT, Keys, added, bare_pod, created, env, hook, job, task
from vcnb.controllers.job.plugins import PLUGINS, PluginBehaviour, PluginError, plugins_of
from vcnb.controllers.job.plugins.layout import layout_of

NAMES = ["env", "svc", "ssh", "tensorflow", "pytorch", "mpi", "ray", "hcclrank"]


def test_the_names_in_the_order_of_their_hooks():
    assert list(PLUGINS) == NAMES
    assert all(plugin.name == name for name, plugin in PLUGINS.items())


def test_the_order_does_not_depend_on_the_manifest():
    backwards = job("j", task("master"), plugins={name: [] for name in reversed(NAMES)})
    assert [plugin.name for plugin in plugins_of(backwards)] == NAMES


def test_a_name_that_no_plugin_has():
    with pytest.raises(PluginError, match="failed to get plugin nosuch; there are env, svc"):
        plugins_of(job("j", task("a"), plugins={"nosuch": []}))


@pytest.mark.parametrize("declared", [None, {}])
def test_no_plugins(declared):
    plain = job("j", task("a"))
    plain["spec"]["plugins"] = declared
    assert plugins_of(plain) == []


def test_a_plugin_without_a_list_has_no_arguments():
    assert env(created(job("j", task("a"), plugins={"env": None}), "a"))[0] == ("VK_TASK_INDEX", "0")


@pytest.mark.parametrize("behaviour", BOTH)
def test_the_keys_of_all_plugins(behaviour):
    everything = job("j", task("master"), task("head"), plugins={name: [] for name in NAMES})
    _, controlled = added(everything, behaviour)
    assert controlled == {f"plugin-{name}": name for name in NAMES if name != "hcclrank"}


def test_behaviours():
    assert PluginBehaviour.of("strict") == STRICT == PluginBehaviour.strict()
    assert PluginBehaviour.of("default") == DEFAULT == PluginBehaviour()
    assert not any(vars(STRICT).values())
    assert all(vars(DEFAULT).values())


def test_a_full_pod_of_svc_ssh_and_mpi():
    plugins = {"mpi": ["--master=mpimaster", "--worker=mpiworker"], "svc": [], "ssh": []}
    pod = created(job("lm", task("mpimaster"), task("mpiworker"), plugins=plugins), "mpimaster")
    (container,) = pod["spec"]["containers"]
    names = ["VC_MPIMASTER_HOSTS", "VC_MPIMASTER_NUM", "VC_MPIWORKER_HOSTS", "VC_MPIWORKER_NUM", "MPI_HOST"]
    assert [entry["name"] for entry in container["env"]] == names
    assert container["env"][-1]["value"] == "lm-mpiworker-0.lm"
    assert [mount["mountPath"] for mount in container["volumeMounts"]] == ["/etc/volcano", "/root/.ssh"]
    assert [volume["name"] for volume in pod["spec"]["volumes"]] == ["lm-svc", "lm-ssh"]


LM = {"mpi": [], "svc": [], "ssh": []}
FOUR = [("ConfigMap", "lm-svc"), ("NetworkPolicy", "lm"), ("Secret", "lm-ssh"), ("Service", "lm")]


def lm(workers: int = 2) -> dict:
    return job("lm", task("master"), task("worker", workers), plugins=LM)


def test_the_life_of_a_job_upstream():
    keys = Keys()
    api, controlled = added(lm(), STRICT, keys)
    assert api.there() == FOUR
    hook("on_job_update", lm(4), controlled, api, STRICT, keys)
    assert api.data("ConfigMap", "lm-svc")["VC_WORKER_NUM"] == "4"
    hook("on_job_delete", lm(4), controlled, api, STRICT, keys)
    assert (api.there(), controlled) == ([], {})
    hook("on_job_update", lm(4), controlled, api, STRICT, keys)
    assert (api.there(), controlled) == ([("ConfigMap", "lm-svc")], {})
    hook("on_job_add", lm(4), controlled, api, STRICT, keys)
    assert api.there() == FOUR
    assert keys.made == 2
    assert controlled == {"plugin-svc": "svc", "plugin-ssh": "ssh", "plugin-mpi": "mpi"}


def test_the_life_of_a_job():
    keys = Keys()
    api, controlled = added(lm(), DEFAULT, keys)
    hook("on_job_update", lm(4), controlled, api, DEFAULT, keys)
    assert "lm-worker-3.lm" in api.data("Secret", "lm-ssh")["config"]
    hook("on_job_delete", lm(4), controlled, api, DEFAULT, keys)
    assert (api.there(), controlled) == ([], {})
    hook("on_job_update", lm(4), controlled, api, DEFAULT, keys)
    assert api.there() == FOUR
    assert {"plugin-svc", "plugin-ssh"} <= set(controlled)


def test_nothing_heavy_is_imported():
    code = "import sys, vcnb.controllers.job.plugins; print('cryptography' in sys.modules, 'pydantic' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]


def test_the_layout_is_worked_out_once_per_spec():
    one = job("j", task("a", 3))
    assert layout_of(one) is layout_of({**one, "status": {"running": 1}})
    assert layout_of(one) is not layout_of({**one, "spec": dict(one["spec"])})
    assert layout_of(one) is not layout_of({**one, "metadata": {**one["metadata"], "name": "k"}})


def test_pods_share_what_they_have_in_common():
    big = job("j", task("a", 2), plugins={"svc": []})
    one, two = created(big, "a", 0), created(big, "a", 1)
    assert one["spec"]["volumes"][-1] is two["spec"]["volumes"][-1]


def seconds_for(pods: int) -> float:
    plugins = {name: [] for name in ("env", "svc", "ssh", "pytorch", "mpi", "hcclrank")}
    big = job("big", task("master"), task("worker", pods), plugins=plugins)
    ready = plugins_of(big)
    drafts = [bare_pod(big, "worker", index) for index in range(pods)]
    begin = time.perf_counter()
    for draft in drafts:
        for plugin in ready:
            plugin.on_pod_create(draft, big)
    return time.perf_counter() - begin


def test_ten_thousand_pods_are_built_in_linear_time():
    seconds_for(1000)
    # A machine that is busy with something else may stretch one run, so the best of three counts.
    small = min(seconds_for(1000) for _ in range(3))
    large = min(seconds_for(10_000) for _ in range(3))
    assert large < small * 40
    assert large < 5
