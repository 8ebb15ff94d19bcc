"""What sandboxed pods see: names, addresses, mounts, private places; and what of it reaches the machine."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from vcnb.resources.kinds import CONFIGMAP, POD, SECRET, SERVICE

pytestmark = pytest.mark.integration


def svc_pod(node, name, *command, **more):
    return node.create(name, *command, hostname=name, subdomain="j", **more)


def test_pods_have_names_and_addresses_of_their_own(run_node, sandbox):
    async def scenario(node):
        await svc_pod(node, "j-w-0", "sleep", "600")
        await svc_pod(
            node, "j-w-1", "sh", "-c", "hostname; getent hosts j-w-0.j; getent hosts j-w-0; getent hosts j-w-1"
        )
        first = await node.phase("j-w-0", "Running")
        second = await node.phase("j-w-1", "Succeeded")
        one, two = first["status"]["podIP"], second["status"]["podIP"]
        assert one != two
        lines = node.log("j-w-1").splitlines()
        assert lines[0] == "j-w-1"
        assert [line.split()[0] for line in lines[1:]] == [one, one, two]

    run_node(scenario, sandbox)


def test_running_pods_see_pods_that_come_and_go(run_node, sandbox):
    watch = "while ! getent hosts late.j; do sleep 0.02; done; while getent hosts late.j >/dev/null; do sleep 0.02; done; echo gone"

    async def scenario(node):
        await svc_pod(node, "early", "sh", "-c", watch)
        await node.phase("early", "Running")
        await svc_pod(node, "late", "sleep", "600")
        late = await node.phase("late", "Running")
        await node.until(lambda: late["status"]["podIP"] in node.log("early"))
        await node.store.delete(POD, "late", "default")
        await node.phase("early", "Succeeded")
        assert node.log("early").splitlines()[-1] == "gone"

    run_node(scenario, sandbox)


def test_a_service_is_a_name_for_the_pods_it_selects(run_node, sandbox):
    async def scenario(node):
        await node.store.create(
            {
                "apiVersion": "v1",
                "kind": SERVICE.kind,
                "metadata": {"name": "ray-head-svc", "namespace": "default"},
                "spec": {"selector": {"role": "head"}},
            }
        )
        await node.create("head", "sleep", "600", metadata={"labels": {"role": "head"}})
        head = await node.phase("head", "Running")
        await node.run("a", "sh", "-c", "getent ahostsv4 ray-head-svc | head -1")
        assert node.log("a").split()[0] == head["status"]["podIP"]

    run_node(scenario, sandbox)


def test_pods_listen_on_the_same_port_at_their_own_addresses(run_node, sandbox):
    serve = (
        "import socket, os; s = socket.create_server((os.environ['VCNB_POD_IP'], 23456)); "
        "c, _ = s.accept(); c.sendall(os.environ['HOSTNAME'].encode())"
    )
    ask = (
        "import socket, time\n"
        "def ask(host):\n"
        "    for _ in range(500):\n"
        "        try: return socket.create_connection((host, 23456)).recv(99).decode()\n"
        "        except OSError: time.sleep(0.02)\n"
        "print(ask('j-w-0.j'), ask('j-w-1.j'))"
    )

    async def scenario(node):
        for name in ("j-w-0", "j-w-1"):
            await svc_pod(node, name, "python3", "-c", serve)
        await svc_pod(node, "j-m-0", "python3", "-c", ask)
        await node.phase("j-m-0", "Succeeded")
        assert node.log("j-m-0") == "j-w-0 j-w-1\n"
        for name in ("j-w-0", "j-w-1"):
            await node.phase(name, "Succeeded")

    run_node(scenario, sandbox)


def test_mounts_appear_in_the_container_and_not_on_the_machine(run_node, sandbox):
    places = ["/etc/volcano-test", "/no-such-root/deep", "/root/.ssh-test", "/mnt/vcnb-test", "/usr/share/vcnb-test"]

    async def scenario(node):
        await node.store.create(
            {
                "apiVersion": "v1",
                "kind": CONFIGMAP.kind,
                "metadata": {"name": "cm", "namespace": "default"},
                "data": {"w.host": "a\nb"},
            }
        )
        pod = node.pod("a", "sh", "-c", "; ".join(f"cat {place}/w.host; echo" for place in places))
        pod["spec"]["containers"][0]["volumeMounts"] = [{"name": "v", "mountPath": place} for place in places]
        pod["spec"]["volumes"] = [{"name": "v", "configMap": {"name": "cm"}}]
        await node.store.create(pod)
        await node.phase("a", "Succeeded")
        assert node.log("a") == "a\nb\n" * len(places)

    run_node(scenario, sandbox)
    assert not any(os.path.lexists(place) for place in (*places, "/no-such-root"))


def test_the_users_files_are_there_and_writable(run_node, sandbox, tmp_path):
    (tmp_path / "data.csv").write_text("1,2\n")

    async def scenario(node):
        await node.run("a", "sh", "-c", f"cat data.csv {tmp_path}/data.csv; echo result >{tmp_path}/out; pwd")
        assert node.log("a") == f"1,2\n1,2\n{tmp_path}\n"

    run_node(scenario, sandbox)
    assert (tmp_path / "out").read_text() == "result\n"


def test_tmp_and_shm_are_private(run_node, sandbox):
    name = f"vcnb-private-{os.getpid()}"

    async def scenario(node):
        await node.run("a", "sh", "-c", f"echo x >/tmp/{name}; echo x >/dev/shm/{name}; ls /dev/shm")
        assert node.log("a") == f"{name}\n"
        await node.run("b", "sh", "-c", f"ls /tmp/{name} /dev/shm/{name} 2>/dev/null; echo none")
        assert node.log("b") == "none\n"

    run_node(scenario, sandbox)
    assert not Path("/tmp", name).exists()
    assert not Path("/dev/shm", name).exists()


def test_the_process_ids_are_private_and_orphans_are_reaped(run_node, sandbox):
    count = "ls -d /proc/[0-9]* | wc -l"
    script = f"(sh -c 'sleep 0.05 &') ; sleep 0.3; grep -l 'State:.Z' /proc/[0-9]*/status; {count}"

    async def scenario(node):
        await node.run("a", "sh", "-c", script)
        assert int(node.log("a").split()[-1]) < 10
        assert "status" not in node.log("a")

    run_node(scenario, sandbox)


def test_the_containers_of_a_pod_share_name_and_address(run_node, sandbox):
    async def scenario(node):
        pod = node.pod("a", "sh", "-c", "hostname; echo $VCNB_POD_IP")
        pod["spec"]["containers"].append({**pod["spec"]["containers"][0], "name": "two"})
        await node.store.create(pod)
        await node.phase("a", "Succeeded")
        assert node.log("a") == node.log("a", container="two") != ""

    run_node(scenario, sandbox)


def test_read_only_mounts(run_node, sandbox):
    async def scenario(node):
        mount = {"name": "v", "mountPath": "/data"}
        await node.run(
            "a",
            "sh",
            "-c",
            "touch /rw/x && echo written; touch /data/x || echo refused",
            container={"volumeMounts": [{**mount, "readOnly": True}, {**mount, "mountPath": "/rw"}]},
            volumes=[{"name": "v", "emptyDir": {}}],
        )
        assert node.log("a").splitlines()[0] == "written"
        assert node.log("a").splitlines()[-1] == "refused"

    run_node(scenario, sandbox)


@pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="no OpenSSH")
@pytest.mark.skipif(not Path("/usr/sbin/sshd").exists(), reason="no sshd")
def test_ssh_from_the_master_to_a_worker_by_name(run_node, sandbox, tmp_path):
    import base64
    import subprocess

    key = tmp_path / "id_rsa"
    subprocess.run(["ssh-keygen", "-q", "-t", "rsa", "-b", "2048", "-N", "", "-f", str(key)], check=True)
    host_key = tmp_path / "host_key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(host_key)], check=True)
    config = "StrictHostKeyChecking no\nUserKnownHostsFile /dev/null\nLogLevel ERROR\n"
    config += "Host j-worker-0\n  HostName j-worker-0.j\n  Port 2222\n"
    public = key.with_suffix(".pub").read_text()
    files = {"id_rsa": key.read_text(), "id_rsa.pub": public, "authorized_keys": public, "config": config}
    sshd = (
        f"mkdir -p /run/sshd; exec /usr/sbin/sshd -D -e -p 2222 -h {host_key} -o ListenAddress=$VCNB_POD_IP "
        "-o PidFile=none -o UsePAM=no -o PermitRootLogin=yes"
    )
    master = "for i in $(seq 200); do ssh j-worker-0 'echo from $(hostname)' && exit 0; sleep 0.1; done; exit 1"

    async def scenario(node):
        await node.store.create(
            {
                "apiVersion": "v1",
                "kind": SECRET.kind,
                "metadata": {"name": "j-ssh", "namespace": "default"},
                "data": {name: base64.b64encode(text.encode()).decode() for name, text in files.items()},
            }
        )
        volume = {
            "name": "j-ssh",
            "secret": {
                "secretName": "j-ssh",
                "defaultMode": 0o600,
                "items": [{"key": name, "path": f".ssh/{name}"} for name in files],
            },
        }
        mounts = {"volumeMounts": [{"name": "j-ssh", "mountPath": "/root/.ssh", "subPath": ".ssh"}]}
        await svc_pod(node, "j-worker-0", "sh", "-c", sshd, container=mounts, volumes=[volume])
        await svc_pod(node, "j-master-0", "sh", "-c", master, container=mounts, volumes=[volume])
        await node.phase("j-master-0", "Succeeded", "Failed")
        assert node.log("j-master-0").splitlines()[-1] == "from j-worker-0", node.log("j-worker-0")

    run_node(scenario, sandbox)


def test_without_being_asked_only_pods_that_need_it_are_sandboxed(run_node, sandbox):
    """A sandbox has a pid namespace of its own, a plain process is in this one's."""
    show = ("readlink", "/proc/self/ns/pid")
    own = str(Path("/proc/self/ns/pid").readlink())

    async def scenario(node):
        assert node.agent.runtime_name == "sandbox"
        await node.run("plain", *show)
        assert node.log("plain").strip() == own
        await node.run("named", *show, hostname="named", subdomain="j")
        mounts = {"volumeMounts": [{"name": "v", "mountPath": "/data"}]}
        await node.run("mounted", *show, container=mounts, volumes=[{"name": "v", "emptyDir": {}}])
        await node.run("words", *show, container={"terminationMessagePath": "/tmp/words"})
        for name in ("named", "mounted", "words"):
            assert node.log(name).strip() not in {"", own}, name

    run_node(scenario, None)
