"""The worked examples of tensorflow, pytorch, mpi, ray and hcclrank."""

import json
import shutil
import socket
import subprocess
import sys

import pytest

from unit.plugins.plugin_cases import BOTH, DEFAULT, STRICT, added, container, created, env, hook, job, task, variables
from vcnb.controllers.job.plugins import PLUGINS, PluginError
from vcnb.controllers.job.plugins.pytorch import wait_script

ANY = pytest.mark.parametrize("behaviour", BOTH)

# -- tensorflow ---


def tf_config(owner: dict, task_name: str, index: int = 0, behaviour=DEFAULT) -> str | None:
    return variables(created(owner, task_name, index, behaviour)).get("TF_CONFIG")


@ANY
def test_tensorflow_1_cluster_and_task(behaviour):
    tf1 = job("tf1", task("ps"), task("worker", 2), plugins={"tensorflow": []})
    assert tf_config(tf1, "worker", 1, behaviour) == (
        '{"cluster":{"ps":["tf1-ps-0.tf1:2222"],"worker":["tf1-worker-0.tf1:2222","tf1-worker-1.tf1:2222"]},'
        '"task":{"type":"worker","index":1}}'
    )


def test_tensorflow_2_chief_and_port():
    train = job("train-123", task("ps", 2), task("worker", 2), task("chief"), plugins={"tensorflow": ["--port=5000"]})
    assert tf_config(train, "chief") == (
        '{"cluster":{"ps":["train-123-ps-0.train-123:5000","train-123-ps-1.train-123:5000"],'
        '"worker":["train-123-worker-0.train-123:5000","train-123-worker-1.train-123:5000"],'
        '"chief":["train-123-chief-0.train-123:5000"]},"task":{"type":"chief","index":0}}'
    )


def test_tensorflow_3_a_single_pod_needs_no_cluster():
    assert tf_config(job("tf1", task("worker", 1), plugins={"tensorflow": []}), "worker") is None
    two = json.loads(tf_config(job("tf1", task("worker", 2), plugins={"tensorflow": []}), "worker"))
    assert two["cluster"] == {"worker": ["tf1-worker-0.tf1:2222", "tf1-worker-1.tf1:2222"]}


def test_tensorflow_4_roles_by_name():
    args = ["--ps=param", "--worker=trainer"]
    tf1 = job("tf1", task("param"), task("trainer"), plugins={"tensorflow": args})
    assert tf_config(tf1, "trainer") == (
        '{"cluster":{"ps":["tf1-param-0.tf1:2222"],"worker":["tf1-trainer-0.tf1:2222"]},"task":{"type":"worker","index":0}}'
    )


def test_tensorflow_5_a_task_without_a_role():
    tf1 = job("tf1", task("worker", 2), task("tensorboard"), plugins={"tensorflow": []})
    config = json.loads(tf_config(tf1, "tensorboard"))
    assert list(config["cluster"]) == ["worker"]
    assert config["task"] == {"type": "tensorboard", "index": 0}


def test_tensorflow_6_a_bad_port_is_zero():
    config = json.loads(tf_config(job("tf1", task("worker", 2), plugins={"tensorflow": ["--port=x"]}), "worker"))
    assert config["cluster"]["worker"][0] == "tf1-worker-0.tf1:0"


def test_tensorflow_a_fixed_host_name_is_repeated():
    fixed = job("tf1", task("worker", 2, hostname="h", subdomain="net"), plugins={"tensorflow": []})
    assert json.loads(tf_config(fixed, "worker"))["cluster"] == {"worker": ["h.net:2222", "h.net:2222"]}


def test_tensorflow_only_containers_and_no_port():
    tf1 = job("tf1", task("worker", 2, init=[{"name": "i"}]), plugins={"tensorflow": []})
    pod = created(tf1, "worker")
    assert "env" not in pod["spec"]["initContainers"][0]
    assert "ports" not in container(pod)


@ANY
def test_tensorflow_a_name_without_an_index_is_an_error(behaviour):
    tf1 = job("tf1", task("worker", 2), plugins={"tensorflow": []})
    pod = {"metadata": {"name": "a-b-c"}, "spec": {"containers": [{"name": "c"}]}}
    with pytest.raises(PluginError, match="tensorflow: the name of pod a-b-c"):
        PLUGINS["tensorflow"]([], behaviour).on_pod_create(pod, tf1)


# -- pytorch ---


def pt(*args: str, masters: int = 1, extra: tuple = (), **worker) -> dict:
    return job("pt", task("master", masters), task("worker", 2, **worker), *extra, plugins={"pytorch": list(args)})


COMMON = [("MASTER_ADDR", "pt-master-0.pt"), ("MASTER_PORT", "23456"), ("WORLD_SIZE", "3")]
PORT = {"name": "pytorchjob-port", "containerPort": 23456, "protocol": "TCP"}


@ANY
def test_pytorch_1_and_2_master_and_worker(behaviour):
    master, worker = created(pt(), "master", 0, behaviour), created(pt(), "worker", 1, behaviour)
    assert env(master) == [*COMMON, ("RANK", "0")]
    assert env(worker) == [*COMMON, ("RANK", "2")]
    assert container(master)["ports"] == container(worker)["ports"] == [PORT]


def test_pytorch_3_another_task_has_no_rank():
    logger = created(pt(extra=(task("logger", 2),)), "logger", 1)
    assert env(logger) == COMMON
    assert container(logger)["ports"] == [PORT]


def test_pytorch_4_the_port_is_added_to_the_own_ones():
    own = [{"name": "c", "ports": [{"containerPort": 123}]}]
    ports = container(created(pt("--port=5000", containers=own), "worker"))["ports"]
    assert ports == [{"containerPort": 123}, {"name": "pytorchjob-port", "containerPort": 5000, "protocol": "TCP"}]


def test_pytorch_a_declared_port_is_left_alone():
    own = [{"name": "c", "ports": [{"name": "mine", "containerPort": 23456}]}]
    assert container(created(pt(containers=own), "worker"))["ports"] == own[0]["ports"]


WAIT = ["--wait-master-enabled=true", "--wait-master-timeout=600", "--wait-master-image=alpine:latest"]


def test_pytorch_5_workers_wait_for_the_master():
    (waiting,) = created(pt(*WAIT), "worker")["spec"]["initContainers"]
    assert (waiting["name"], waiting["image"]) == ("wait-for-master", "alpine:latest")
    assert waiting["command"][:2] == ["sh", "-c"]
    script = waiting["command"][2]
    assert "nc -z pt-master-0.pt 23456" in script
    assert "600" in script
    assert "resources" not in waiting
    assert "initContainers" not in created(pt(*WAIT), "master")["spec"]
    assert "initContainers" not in created(pt(), "worker")["spec"]


def test_pytorch_5_after_the_own_init_containers_and_never_twice():
    init = [{"name": "prep"}]
    names = [c["name"] for c in created(pt(*WAIT, init=init), "worker")["spec"]["initContainers"]]
    assert names == ["prep", "wait-for-master"]
    own = [{"name": "wait-for-master", "image": "mine"}]
    assert created(pt(*WAIT, init=own), "worker")["spec"]["initContainers"] == own


@ANY
def test_pytorch_6_without_a_master_nothing_happens(behaviour):
    alone = job("pt", task("worker", 2), plugins={"pytorch": WAIT})
    pod = created(alone, "worker", 0, behaviour)
    assert env(pod) == []
    assert "ports" not in container(pod)
    assert "initContainers" not in pod["spec"]


def test_pytorch_roles_by_name():
    named = job("pt", task("head"), task("hand", 2), plugins={"pytorch": ["--master=head", "--worker=hand"]})
    assert variables(created(named, "hand", 1)) == {
        "MASTER_ADDR": "pt-head-0.pt",
        "MASTER_PORT": "23456",
        "WORLD_SIZE": "3",
        "RANK": "2",
    }


def test_pytorch_19_several_masters_have_different_ranks():
    two = pt(masters=2)
    ranks = [created(two, *which) for which in (("master", 0), ("master", 1), ("worker", 0), ("worker", 1))]
    assert [variables(pod)["RANK"] for pod in ranks] == ["0", "1", "2", "3"]
    assert variables(ranks[0])["WORLD_SIZE"] == "4"
    strict = [created(two, *which, STRICT) for which in (("master", 0), ("master", 1), ("worker", 0), ("worker", 1))]
    assert [variables(pod)["RANK"] for pod in strict] == ["0", "0", "1", "2"]


def test_pytorch_8_an_explicit_value_is_respected():
    own = [{"name": "c", "env": [{"name": "MASTER_ADDR", "value": "elsewhere"}]}]
    assert env(created(pt(containers=own), "worker")) == [("MASTER_ADDR", "elsewhere"), *COMMON[1:], ("RANK", "1")]
    assert env(created(pt(containers=own), "worker", 0, STRICT)) == [
        ("MASTER_ADDR", "elsewhere"),
        *COMMON,
        ("RANK", "1"),
    ]


@pytest.fixture(params=["bash", "python3"])
def only(request, tmp_path):
    """A PATH on which the script finds nothing but one program to knock with."""
    programs = {"sleep": shutil.which("sleep"), "bash": shutil.which("bash"), "python3": sys.executable}
    if programs[request.param] is None:
        pytest.skip(f"{request.param} is not installed")
    for name in ("sleep", request.param):
        (tmp_path / name).write_text(f'#!/bin/sh\nexec {programs[name]} "$@"\n')
        (tmp_path / name).chmod(0o755)
    return str(tmp_path)


def wait(port: int, timeout: int, path: str) -> subprocess.CompletedProcess:
    script = wait_script("127.0.0.1", port, timeout)
    return subprocess.run(
        ["/bin/sh", "-c", script], env={"PATH": path}, capture_output=True, text=True, timeout=30, check=False
    )


def test_pytorch_the_script_ends_once_the_master_listens(only):
    with socket.create_server(("127.0.0.1", 0)) as server:
        assert wait(server.getsockname()[1], 600, only).returncode == 0


def test_pytorch_the_script_gives_up_at_the_timeout(only):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    gave_up = wait(port, 0, only)
    assert gave_up.returncode == 1
    assert gave_up.stderr == f"127.0.0.1:{port} does not answer after 0 s\n"


# -- mpi ---


def lm(*args: str, workers: int = 2, master: str = "master", worker: str = "worker", **spec) -> dict:
    return job("lm", task(master), task(worker, workers, **spec), plugins={"mpi": list(args)})


NAMED = ("--master=mpimaster", "--worker=mpiworker")


def mpi_port(number: int) -> dict:
    return {"name": "mpijob-port", "containerPort": number, "protocol": "TCP"}


@ANY
def test_mpi_1_and_2_master_and_worker(behaviour):
    named = lm(*NAMED, master="mpimaster", worker="mpiworker")
    master, worker = created(named, "mpimaster", 0, behaviour), created(named, "mpiworker", 0, behaviour)
    assert env(master) == [("MPI_HOST", "lm-mpiworker-0.lm,lm-mpiworker-1.lm")]
    assert env(worker) == []
    assert container(master)["ports"] == container(worker)["ports"] == [mpi_port(22)]


def test_mpi_3_port():
    both = lm("--port=5000")
    both["spec"]["plugins"]["ssh"] = []
    assert container(created(both, "master"))["ports"] == [mpi_port(5000)]
    assert "Port 22\n" in added(both)[0].data("Secret", "lm-ssh")["config"]


@ANY
def test_mpi_4_no_replicas_and_no_worker_task(behaviour):
    assert env(created(lm(workers=0), "master", 0, behaviour)) == [("MPI_HOST", "")]
    lonely = created(job("lm", task("master"), task("other"), plugins={"mpi": []}), "master", 0, behaviour)
    assert env(lonely) == []
    assert "ports" not in container(lonely)


def test_mpi_5_a_fixed_host_name():
    assert env(created(lm(workers=3, hostname="wk"), "master")) == [("MPI_HOST", "wk.lm")]


def test_mpi_6_a_declared_port():
    own = [{"name": "c", "ports": [{"name": "ssh", "containerPort": 22}]}]
    assert container(created(lm(containers=own), "worker"))["ports"] == own[0]["ports"]


def test_mpi_init_containers_too():
    master = task("master", init=[{"name": "i"}])
    pod = created(job("lm", master, task("worker"), plugins={"mpi": []}), "master")
    (init,) = pod["spec"]["initContainers"]
    assert init["env"] == [{"name": "MPI_HOST", "value": "lm-worker-0.lm"}]
    assert init["ports"] == [mpi_port(22)]


# -- ray ---


def rc(*args: str, head: str = "head", head_container: str = "head", worker_container: str = "worker") -> dict:
    return job(
        "rc",
        task(head, containers=[{"name": head_container, "args": ["x"]}, {"name": "side"}], init=[{"name": "head"}]),
        task("worker", 2, containers=[{"name": worker_container}]),
        plugins={"ray": list(args)},
    )


def command(pod: dict) -> list | None:
    return container(pod).get("command")


@ANY
def test_ray_1_head_worker_and_service(behaviour):
    head, worker = created(rc(), "head", 0, behaviour), created(rc(), "worker", 1, behaviour)
    start = "ray start --head --block --dashboard-host=0.0.0.0 --port=6379 --dashboard-port=8265"
    assert command(head) == ["sh", "-c", f"{start} --ray-client-server-port=10001"]
    assert container(head)["args"] == ["x"]
    ports = [("gcs", 6379), ("dashboard", 8265), ("client-server", 10001)]
    assert [(port["name"], port["containerPort"]) for port in container(head)["ports"]] == ports
    assert command(worker) == ["sh", "-c", "ray start --block --address=rc-head-0.rc:6379"]
    assert "ports" not in container(worker)
    api, controlled = added(rc(), behaviour)
    assert controlled == {"plugin-ray": "ray"}
    service = api.objects["Service", "rc-head-svc"]["spec"]
    assert [(port["name"], port["port"], port["protocol"]) for port in service["ports"]] == [(*p, "TCP") for p in ports]
    assert "clusterIP" not in service


def test_ray_2_everything_by_name():
    args = ["--head=h", "--headContainer=ray", "--workerContainer=ray", "--port=2345"]
    named = rc(*args, head="h", head_container="ray", worker_container="ray")
    assert command(created(named, "worker")) == ["sh", "-c", "ray start --block --address=rc-h-0.rc:2345"]
    service = added(named)[0].objects["Service", "rc-head-svc"]["spec"]
    assert service["selector"] == {
        "volcano.sh/job-name": "rc",
        "volcano.sh/job-namespace": "default",
        "volcano.sh/task-spec": "h",
    }


def test_ray_3_without_its_container_nothing_changes():
    other = rc(head_container="main")
    assert command(created(other, "head")) is None
    assert ("Service", "rc-head-svc") in added(other)[0].there()


def test_ray_4_a_head_alone():
    alone = job("rc", task("head", containers=[{"name": "head"}]), plugins={"ray": []})
    assert command(created(alone, "head"))[2].startswith("ray start --head")


def test_ray_5_other_containers_are_left_alone():
    pod = created(rc(), "head")
    assert container(pod, 1) == {"name": "side"}
    assert pod["spec"]["initContainers"] == [{"name": "head"}]


@ANY
def test_ray_without_a_head_no_pod_can_be_made(behaviour):
    with pytest.raises(PluginError, match="no head task 'head'; name it with --head=<task>"):
        created(job("rc", task("worker"), plugins={"ray": []}), "worker", 0, behaviour)


def test_ray_a_declared_port_is_skipped():
    own = [{"name": "head", "ports": [{"name": "mine", "containerPort": 6379}]}]
    ports = container(created(job("rc", task("head", containers=own), plugins={"ray": []}), "head"))["ports"]
    assert [port["name"] for port in ports] == ["mine", "dashboard", "client-server"]


def test_ray_25_target_ports_are_numbers():
    def targets(behaviour) -> list:
        return [p["targetPort"] for p in added(rc(), behaviour)[0].objects["Service", "rc-head-svc"]["spec"]["ports"]]

    assert targets(DEFAULT) == [6379, 8265, 10001]
    assert targets(STRICT) == ["gcs", "dashboard", "client-server"]


def test_ray_23_the_flag_of_the_guide_is_understood():
    guide = rc("--clientServerPort=10002", "--port=1234")
    assert command(created(guide, "head"))[2].endswith(
        "--port=1234 --dashboard-port=8265 --ray-client-server-port=10002"
    )
    assert "--port=6379" in command(created(guide, "head", 0, STRICT))[2]


@ANY
def test_ray_the_service_goes_with_the_job(behaviour):
    api, controlled = added(rc(), behaviour)
    api.calls.clear()
    hook("on_job_add", rc(), controlled, api, behaviour)
    assert api.calls == []
    hook("on_job_delete", rc(), controlled, api, behaviour)
    assert (api.there(), controlled) == ([], {})


def test_ray_the_service_is_restored_while_restarting():
    api, controlled = added(rc())
    hook("on_job_delete", rc(), controlled, api)
    hook("on_job_update", rc(), controlled, api, STRICT)
    assert api.there() == []
    hook("on_job_update", rc(), controlled, api)
    assert api.there() == [("Service", "rc-head-svc")]


# -- hcclrank ---


def ranks(owner: dict, *pods: tuple[str, int], behaviour=DEFAULT) -> list[str | None]:
    return [created(owner, *pod, behaviour)["metadata"]["annotations"].get("hccl/rankIndex") for pod in pods]


def hccl(*tasks: dict, **plugins: list) -> dict:
    return job("h", *tasks, plugins={"hcclrank": [], **plugins})


@ANY
def test_hcclrank_a_one_master(behaviour):
    owner = hccl(task("master"), task("worker", 2))
    assert ranks(owner, ("master", 0), ("worker", 0), ("worker", 1), behaviour=behaviour) == ["0", "1", "2"]


def test_hcclrank_b_several_masters():
    assert ranks(hccl(task("master", 4), task("worker", 3)), ("master", 3), ("worker", 2)) == ["3", "6"]


def test_hcclrank_c_a_literal_rank():
    ranked = [{"name": "s"}, {"name": "c", "env": [{"name": "RANK", "value": "5"}]}]
    assert ranks(
        hccl(task("worker", 2, containers=ranked), task("ps", containers=ranked)), ("worker", 1), ("ps", 0)
    ) == [
        "5",
        "5",
    ]


def test_hcclrank_c_a_rank_that_is_not_literal_is_passed_over():
    ranked = [{"name": "c", "env": [{"name": "RANK", "valueFrom": {}}]}]
    assert ranks(hccl(task("worker", 2, containers=ranked)), ("worker", 1)) == ["1"]


def test_hcclrank_d_workers_alone():
    assert ranks(hccl(task("worker", 2)), ("worker", 0), ("worker", 1)) == ["0", "1"]


def test_hcclrank_e_an_own_annotation():
    own = task("worker", 2)
    own["template"]["metadata"] = {"annotations": {"hccl/rankIndex": "7"}}
    assert ranks(hccl(own), ("worker", 0), ("worker", 1)) == ["7", "7"]


def test_hcclrank_f_another_task():
    assert ranks(hccl(task("ps")), ("ps", 0)) == [None]


def test_hcclrank_sees_the_ranks_of_pytorch():
    both = hccl(task("master", 2), task("worker", 2), pytorch=[])
    assert ranks(both, ("master", 1), ("worker", 1)) == ["1", "3"]
    assert ranks(both, ("master", 1), ("worker", 1), behaviour=STRICT) == ["0", "2"]


def test_hcclrank_keeps_no_key_and_needs_the_label():
    owner = hccl(task("worker", 2))
    api, controlled = added(owner)
    assert (api.calls, controlled) == ([], {})
    pod = {"metadata": {"name": "h-worker-0", "annotations": {"volcano.sh/task-spec": "worker"}}, "spec": {}}
    with pytest.raises(PluginError, match=r"no index in its label volcano\.sh/task-index"):
        PLUGINS["hcclrank"]([]).on_pod_create(pod, owner)
