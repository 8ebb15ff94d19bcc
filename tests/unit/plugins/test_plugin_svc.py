"""The worked examples of plugin svc, its objects over a job's life, and where it is better than upstream."""

import pytest

from unit.plugins.plugin_cases import BOTH, DEFAULT, STRICT, Api, added, container, created, env, hook, job, task
from vcnb.controllers.job.plugins import PluginError

PS_WORKER = {
    "ps.host": "tf1-ps-0.tf1",
    "VC_PS_HOSTS": "tf1-ps-0.tf1",
    "VC_PS_NUM": "1",
    "worker.host": "tf1-worker-0.tf1\ntf1-worker-1.tf1",
    "VC_WORKER_HOSTS": "tf1-worker-0.tf1,tf1-worker-1.tf1",
    "VC_WORKER_NUM": "2",
}
ALL = [("ConfigMap", "tf1-svc"), ("NetworkPolicy", "tf1"), ("Service", "tf1")]
POLICY = ("NetworkPolicy", "tf1")


def tf1(*args: str, workers: int = 2, **more) -> dict:
    return job("tf1", task("ps"), task("worker", workers), plugins={"svc": list(args)}, **more)


@pytest.mark.parametrize("behaviour", BOTH)
def test_example_1_hosts(behaviour):
    api, controlled = added(tf1(), behaviour)
    assert api.data("ConfigMap", "tf1-svc") == PS_WORKER
    assert controlled == {"plugin-svc": "svc"}
    assert api.there() == ALL
    pod = created(tf1(), "worker", 1, behaviour)
    assert (pod["spec"]["hostname"], pod["spec"]["subdomain"]) == ("tf1-worker-1", "tf1")
    names = ["VC_PS_HOSTS", "VC_PS_NUM", "VC_WORKER_HOSTS", "VC_WORKER_NUM"]
    assert container(pod)["env"] == [
        {"name": name, "valueFrom": {"configMapKeyRef": {"name": "tf1-svc", "key": name}}} for name in names
    ]
    assert container(pod)["volumeMounts"] == [{"name": "tf1-svc", "mountPath": "/etc/volcano"}]
    assert pod["spec"]["volumes"] == [{"name": "tf1-svc", "configMap": {"name": "tf1-svc", "defaultMode": 420}}]


@pytest.mark.parametrize("behaviour", BOTH)
def test_example_2_dashes_no_replicas_and_a_fixed_host_name(behaviour):
    odd = job(
        "tf1",
        task("big-worker", 2),
        task("idle", 0),
        task("fix", 3, hostname="h0", subdomain="net"),
        plugins={"svc": []},
    )
    assert added(odd, behaviour)[0].data("ConfigMap", "tf1-svc") == {
        "big_worker.host": "tf1-big-worker-0.tf1\ntf1-big-worker-1.tf1",
        "VC_BIG_WORKER_HOSTS": "tf1-big-worker-0.tf1,tf1-big-worker-1.tf1",
        "VC_BIG_WORKER_NUM": "2",
        "idle.host": "",
        "VC_IDLE_HOSTS": "",
        "VC_IDLE_NUM": "0",
        "fix.host": "h0.net",
        "VC_FIX_HOSTS": "h0.net",
        "VC_FIX_NUM": "1",
    }
    pod = created(odd, "fix", 2, behaviour)
    assert (pod["spec"]["hostname"], pod["spec"]["subdomain"]) == ("h0", "net")


def test_example_3_not_ready_addresses_and_no_network_policy():
    api, _ = added(tf1("--publish-not-ready-addresses", "--disable-network-policy=true"))
    assert api.objects["Service", "tf1"]["spec"]["publishNotReadyAddresses"] is True
    assert POLICY not in api.there()


def test_example_4_no_variables_but_files():
    pod = created(tf1("--inject-hosts-env=false"), "ps")
    assert env(pod) == []
    assert container(pod)["volumeMounts"] == [{"name": "tf1-svc", "mountPath": "/etc/volcano"}]


@pytest.mark.parametrize("behaviour", BOTH)
def test_example_5_scaling_rewrites_the_hosts(behaviour):
    api, controlled = added(tf1(), behaviour)
    hook("on_job_update", tf1(workers=3), controlled, api, behaviour)
    data = api.data("ConfigMap", "tf1-svc")
    assert data["worker.host"].endswith("\ntf1-worker-2.tf1")
    assert data["VC_WORKER_NUM"] == "3"


def test_example_6_a_bad_boolean_switches_off_and_hides_the_rest():
    bad = tf1("--inject-hosts-env=yes", "--disable-network-policy")
    assert POLICY in added(bad)[0].there()
    assert env(created(bad, "ps")) == []


def test_init_containers_get_the_same():
    prepared = job("j", task("a", init=[{"name": "i"}]), plugins={"svc": []})
    init = created(prepared, "a")["spec"]["initContainers"][0]
    assert [entry["name"] for entry in init["env"]] == ["VC_A_HOSTS", "VC_A_NUM"]
    assert init["volumeMounts"] == [{"name": "j-svc", "mountPath": "/etc/volcano"}]


def test_objects_belong_to_the_job_and_select_its_pods():
    api, _ = added(tf1())
    selector = {"volcano.sh/job-name": "tf1", "volcano.sh/job-namespace": "default"}
    assert api.objects["Service", "tf1"]["spec"] == {"clusterIP": "None", "selector": selector}
    assert api.objects[POLICY]["spec"] == {
        "podSelector": {"matchLabels": selector},
        "policyTypes": ["Ingress"],
        "ingress": [{"from": [{"podSelector": {"matchLabels": selector}}]}],
    }
    for obj in api.objects.values():
        assert "labels" not in obj["metadata"]
        assert obj["metadata"]["ownerReferences"] == [
            {
                "apiVersion": "batch.volcano.sh/v1alpha1",
                "kind": "Job",
                "name": "tf1",
                "uid": "uid-1",
                "controller": True,
                "blockOwnerDeletion": True,
            }
        ]


@pytest.mark.parametrize("behaviour", BOTH)
def test_objects_are_made_in_order_and_once(behaviour):
    api, controlled = added(tf1(), behaviour)
    assert api.wrote() == [("create", "ConfigMap", "tf1-svc"), ("create", "Service", "tf1"), ("create", *POLICY)]
    api.calls.clear()
    hook("on_job_add", tf1(), {}, api, behaviour)
    hook("on_job_update", tf1(), controlled, api, behaviour)
    assert api.wrote() == []


def test_strict_a_stored_key_means_nothing_to_do():
    api, controlled = added(tf1(), STRICT)
    api.calls.clear()
    hook("on_job_add", tf1(workers=5), controlled, api, STRICT)
    assert api.calls == []


def test_scaling_while_pending_reaches_the_hosts():
    api, controlled = added(tf1(), DEFAULT)
    hook("on_job_add", tf1(workers=5), controlled, api)
    assert api.data("ConfigMap", "tf1-svc")["VC_WORKER_NUM"] == "5"


@pytest.mark.parametrize("behaviour", BOTH)
def test_delete_removes_everything_and_may_be_repeated(behaviour):
    api, controlled = added(tf1(), behaviour)
    api.calls.clear()
    hook("on_job_delete", tf1(), controlled, api, behaviour)
    assert (api.there(), controlled) == ([], {})
    assert api.wrote() == [("delete", "ConfigMap", "tf1-svc"), ("delete", "Service", "tf1"), ("delete", *POLICY)]
    hook("on_job_delete", tf1(), controlled, api, behaviour)
    hook("on_job_delete", tf1(), {"plugin-svc": "svc"}, api, behaviour)


def test_a_disabled_network_policy_is_not_deleted_either():
    api, controlled = added(tf1(), STRICT)
    hook("on_job_delete", tf1("--disable-network-policy"), controlled, api, STRICT)
    assert api.there() == [POLICY]


def test_strict_without_the_key_nothing_is_removed():
    api, _ = added(tf1(), STRICT)
    hook("on_job_delete", tf1(), {}, api, STRICT)
    assert api.there() == ALL


def test_quirk_2_what_was_made_before_the_key_was_stored_is_removed():
    api, _ = added(tf1(), DEFAULT)
    hook("on_job_delete", tf1(), {}, api, DEFAULT)
    assert api.there() == []


def test_while_restarting_upstream_restores_the_hosts_only():
    api, controlled = Api(), {}
    hook("on_job_update", tf1(), controlled, api, STRICT)
    assert (api.there(), controlled) == ([("ConfigMap", "tf1-svc")], {})


def test_while_restarting_everything_is_restored():
    api, controlled = Api(), {}
    hook("on_job_update", tf1(), controlled, api, DEFAULT)
    assert (api.there(), controlled) == (ALL, {"plugin-svc": "svc"})


# -- objects of others (quirk 5) ---


def foreign(kind: str, name: str, **metadata) -> Api:
    api = Api()
    metadata = {"name": name, "namespace": "default", "uid": "foreign", "resourceVersion": "0", **metadata}
    api.objects[kind, name] = {"apiVersion": "v1", "kind": kind, "metadata": metadata, "data": {"mine": "1"}}
    return api


@pytest.mark.parametrize(("kind", "name"), ALL)
def test_an_object_of_somebody_else_is_refused_by_name(kind, name):
    api = foreign(kind, name)
    with pytest.raises(PluginError, match=f"{kind} default/{name} exists and is not owned by a Job; Job tf1 needs"):
        hook("on_job_add", tf1(), {}, api)
    assert api.objects[kind, name]["metadata"]["uid"] == "foreign"


@pytest.mark.parametrize(("kind", "name"), ALL)
def test_an_object_of_somebody_else_is_not_deleted(kind, name):
    api = foreign(kind, name)
    hook("on_job_delete", tf1(), {"plugin-svc": "svc"}, api)
    assert api.there() == [(kind, name)]


def test_an_object_of_the_predecessor_says_whose_it_is():
    api, _ = added(tf1(uid="old"))
    with pytest.raises(PluginError, match=r"belongs to Job tf1 \(uid old\)"):
        hook("on_job_add", tf1(uid="new"), {}, api)


def test_an_object_that_is_being_deleted_is_waited_for():
    api, _ = added(tf1())
    service = api.objects["Service", "tf1"]
    service["metadata"] = {**service["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z"}
    with pytest.raises(PluginError, match="is being deleted"):
        hook("on_job_add", tf1(), {}, api)


def test_strict_takes_over_whatever_has_the_name():
    api = foreign("ConfigMap", "tf1-svc")
    hook("on_job_add", tf1(), {}, api, STRICT)
    assert api.data("ConfigMap", "tf1-svc") == PS_WORKER
    hook("on_job_delete", tf1(), {"plugin-svc": "svc"}, api, STRICT)
    assert api.there() == []


# -- other differences ---


def test_quirk_9_a_mount_of_the_template_wins():
    own = [{"name": "c", "volumeMounts": [{"name": "mine", "mountPath": "/etc/volcano/"}]}]
    mine = job("j", task("a", containers=own), plugins={"svc": []})
    assert container(created(mine, "a"))["volumeMounts"] == own[0]["volumeMounts"]
    assert len(container(created(mine, "a", 0, STRICT))["volumeMounts"]) == 2


def test_quirk_10_a_subdomain_of_a_template_gets_a_service():
    named = job("j", task("a"), task("b", subdomain="net"), task("c", subdomain="net"), plugins={"svc": []})
    api, controlled = added(named)
    assert [name for kind, name in api.there() if kind == "Service"] == ["j", "net"]
    hook("on_job_delete", named, controlled, api)
    assert api.there() == []
    assert [name for kind, name in added(named, STRICT)[0].there() if kind == "Service"] == ["j"]


def test_quirk_10_a_service_that_the_user_made_for_it_is_used_and_left():
    named = job("j", task("b", subdomain="net"), plugins={"svc": []})
    api, controlled = foreign("Service", "net"), {}
    hook("on_job_add", named, controlled, api)
    hook("on_job_delete", named, controlled, api)
    assert api.there() == [("Service", "net")]


def test_quirk_16_hosts_that_no_process_could_start_with_stay_in_the_files():
    huge = job("j", task("small", 2), task("worker", 9000), plugins={"svc": []})
    names = [name for name, _ in env(created(huge, "worker", 8999))]
    assert names == ["VC_SMALL_HOSTS", "VC_SMALL_NUM", "VC_WORKER_NUM"]
    assert added(huge)[0].data("ConfigMap", "j-svc")["VC_WORKER_NUM"] == "9000"
    assert "VC_WORKER_HOSTS" in [name for name, _ in env(created(huge, "worker", 8999, STRICT))]


def test_quirk_17_every_pod_gets_the_variables_of_all_tasks():
    assert [name for name, _ in env(created(tf1(), "ps"))][-1] == "VC_WORKER_NUM"
