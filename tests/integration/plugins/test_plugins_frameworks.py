"""Plugins pytorch, tensorflow, ray, mpi, hcclrank and env on the embedded cluster: what they say is true there."""

from __future__ import annotations

import importlib.util
import json
import stat
from pathlib import Path

import pytest

import vcnb
from integration.plugins.plugin_jobs import MASTER_COMPLETES, python, sh, until

pytestmark = [pytest.mark.integration, pytest.mark.timeout(90)]

ALL_REDUCE = """
import os, socket, struct, time
rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
address = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
mine = [float(rank + 1), 10.0 * (rank + 1)]
pack = struct.Struct("!i2d")

def receive(peer):
    data = b""
    while len(data) < pack.size:
        more = peer.recv(pack.size - len(data))
        if not more:
            raise ConnectionError("the peer is gone")
        data += more
    return pack.unpack(data)

if rank == 0:
    peers, total = {}, mine
    with socket.create_server(address) as server:
        while len(peers) < size - 1:
            peer, _ = server.accept()
            try:
                other, *values = receive(peer)
            except ConnectionError:  # somebody who only looked whether the port is open
                continue
            peers[other] = peer
            total = [a + b for a, b in zip(total, values)]
        for peer in peers.values():
            peer.sendall(pack.pack(0, *total))
            peer.close()
    assert sorted(peers) == list(range(1, size)), peers
else:
    while True:
        try:
            peer = socket.create_connection(address, timeout=20)
            break
        except OSError:
            time.sleep(0.05)
    with peer:
        peer.sendall(pack.pack(rank, *mine))
        total = list(receive(peer)[1:])
print(rank, size, total)
"""

GLOO = """
import torch, torch.distributed as dist
dist.init_process_group("gloo")
tensor = torch.tensor([float(dist.get_rank() + 1), 10.0 * (dist.get_rank() + 1)])
dist.all_reduce(tensor)
print(dist.get_rank(), dist.get_world_size(), tensor.tolist())
dist.destroy_process_group()
"""

PROGRAMS = [pytest.param(ALL_REDUCE, id="sockets")]
if importlib.util.find_spec("torch") is not None:
    PROGRAMS.append(pytest.param(GLOO, id="gloo"))


@pytest.mark.parametrize("program", PROGRAMS)
def test_pytorch_replicas_meet_at_their_master_and_reduce(run, program):
    tasks = [python("master", program), python("worker", program)]

    handle = run(vcnb.Job(name="reduce", tasks=tasks, plugins={"pytorch": []}))

    assert handle.logs("master") == "0 2 [3.0, 30.0]\n"
    assert handle.logs("worker") == "1 2 [3.0, 30.0]\n"


def test_pytorch_with_several_workers_on_another_port(run):
    tasks = [python("lead", ALL_REDUCE), python("work", ALL_REDUCE, replicas=3)]
    plugins = {"pytorch": ["--master=lead", "--worker=work", "--port=24555"]}

    handle = run(vcnb.Job(name="more", tasks=tasks, plugins=plugins))

    said = sorted(line.split(" | ")[1] for line in handle.logs().splitlines())
    assert said == [f"{rank} 4 [10.0, 100.0]" for rank in range(4)]


def test_pytorch_workers_that_wait_for_their_master(run):
    """The master starts late: the workers' own container begins when the master's port is open."""
    late = "import time; time.sleep(1)\n" + ALL_REDUCE
    at_once = ALL_REDUCE.replace("except OSError:\n            time.sleep(0.05)", "finally:\n            pass")
    assert at_once != ALL_REDUCE
    tasks = [python("master", late), python("worker", at_once)]
    plugins = {"pytorch": ["--wait-master-enabled=true", "--wait-master-image=busybox"]}

    handle = run(vcnb.Job(name="patient", tasks=tasks, plugins=plugins))

    assert handle.logs("worker") == "1 2 [3.0, 30.0]\n"


TF_SERVER = """
import json, os, socket, time
config = json.loads(os.environ["TF_CONFIG"])
role, index = config["task"]["type"], config["task"]["index"]
host, port = config["cluster"][role][index].split(":")
assert host.split(".")[0] == socket.gethostname(), (host, socket.gethostname())
server = socket.create_server((host, int(port)))
if role == "worker":
    for addresses in config["cluster"].values():
        for address in addresses:
            name, number = address.split(":")
            while True:
                try:
                    socket.create_connection((name, int(number)), timeout=20).close()
                    break
                except OSError:
                    time.sleep(0.05)
    print("reached", sum(map(len, config["cluster"].values())))
else:
    while True:
        server.accept()[0].close()
"""


def test_tensorflow_names_lead_to_servers(run):
    tasks = [
        python("ps", TF_SERVER, replicas=2),
        python("worker", TF_SERVER, policies=MASTER_COMPLETES),
    ]

    handle = run(vcnb.Job(name="tf", tasks=tasks, plugins={"tensorflow": []}))

    assert handle.logs("worker") == "reached 3\n"
    assert all(json.loads(environment_of(pod)["TF_CONFIG"])["cluster"]["worker"] for pod in handle.pods)


def environment_of(pod) -> dict[str, str]:
    return {entry["name"]: entry.get("value", "") for entry in pod.spec["containers"][0]["env"]}


FAKE_RAY = """#!/usr/bin/env python3
import socket, sys, time
options = dict(word.lstrip("-").partition("=")[::2] for word in sys.argv[2:])
print(sys.argv[1], *sorted(options), flush=True)
if "head" in options:
    server = socket.create_server((socket.gethostname(), int(options["port"])))
    for _ in range(2):
        print("joined by", server.accept()[0].recv(99).decode(), flush=True)
    time.sleep(300)
host, port = options["address"].split(":")
while True:
    try:
        peer = socket.create_connection((host, int(port)), timeout=20)
        break
    except OSError:
        time.sleep(0.05)
peer.sendall(socket.gethostname().encode())
time.sleep(300)
"""


def test_ray_workers_join_their_head_and_the_service_leads_to_it(cluster, tmp_path):
    program = tmp_path / "ray"
    program.write_text(FAKE_RAY)
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    env = {"PATH": f"{tmp_path}:/usr/local/bin:/usr/bin:/bin"}
    client = "until getent ahostsv4 rays-head-svc | head -1 | grep -q .; do sleep 0.05; done; getent ahostsv4 rays-head-svc | head -1; getent hosts rays-head-0.rays; sleep 300"
    tasks = [
        vcnb.Task("head", image="rayproject/ray", env=env),
        vcnb.Task("worker", replicas=2, image="rayproject/ray", env=env),
        sh("client", client),
    ]

    handle = cluster.submit(vcnb.Job(name="rays", tasks=tasks, plugins={"ray": []}))

    until(lambda: handle.logs("head").count("joined by") == 2, "the workers to join")
    lines = handle.logs("head").splitlines()
    assert lines[0] == "start block dashboard-host dashboard-port head port ray-client-server-port"
    assert sorted(lines[1:]) == ["joined by rays-worker-0", "joined by rays-worker-1"]
    service, name = until(lambda: (found := handle.logs("client").splitlines())[1:] and found, "the head's name")
    assert service.split()[0] == name.split()[0]


def test_hcclrank_is_an_annotation_that_a_pod_can_read(run):
    field = {"fieldRef": {"fieldPath": "metadata.annotations['hccl/rankIndex']"}}
    tasks = [sh(name, "echo $HCCL", replicas=2, env={"HCCL": field}) for name in ("master", "worker")]

    handle = run(vcnb.Job(name="hccl", tasks=tasks, plugins={"hcclrank": []}))

    assert [line.split(" | ")[1] for line in handle.logs().splitlines()] == ["0", "1", "2", "3"]
    assert [pod.annotations["hccl/rankIndex"] for pod in handle.pods] == ["0", "1", "2", "3"]


def test_env_gives_every_pod_its_index(run):
    handle = run(
        vcnb.Job(name="env", tasks=[sh("w", "echo $VK_TASK_INDEX $VC_TASK_INDEX", replicas=3)], plugins={"env": []})
    )

    assert handle.logs() == "".join(f"env-w-{n} | {n} {n}\n" for n in range(3))


def test_an_init_container_has_the_names_and_files_too(run):
    init = [
        {
            "name": "look",
            "image": "debian",
            "command": ["sh", "-c", "getent hosts $(hostname) && cat /etc/volcano/w.host"],
        }
    ]
    task = sh("w", "cat /etc/volcano/w.host", pod={"initContainers": init})

    handle = run(vcnb.Job(name="first", tasks=[task], plugins={"svc": []}))

    assert handle.logs() == "first-w-0.first"
    assert handle.logs("w", 0, "look").endswith("first-w-0.first")


def test_nothing_of_the_plugins_is_left_on_the_machine(run):
    run(
        vcnb.Job(
            name="traces", tasks=[sh("w", "ls /etc/volcano /root/.ssh >/dev/null")], plugins={"svc": [], "ssh": []}
        )
    )

    assert not Path("/etc/volcano").exists()
