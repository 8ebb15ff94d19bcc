"""Plugin svc on the embedded cluster: pods find each other by name, and know who is there."""

from __future__ import annotations

import pytest

import vcnb
from integration.plugins.plugin_jobs import MASTER_COMPLETES, python, sh, until

pytestmark = [pytest.mark.integration, pytest.mark.timeout(90)]

HOSTS = "$(for f in /etc/volcano/*.host; do cat $f; echo; done)"  # the last line of a file has no end
WAIT_FOR_ALL = f"for h in {HOSTS}; do until getent hosts $h >/dev/null; do sleep 0.05; done; done; "


def test_every_pod_resolves_every_pod_by_every_form_of_its_name(cluster):
    resolve = WAIT_FOR_ALL + (
        'own=$(getent hosts $(hostname) | cut -d" " -f1); echo own $own $VCNB_POD_IP; '
        "for h in names-a-0 names-b-0 names-b-1; do for d in '' .names .names.default "
        ".names.default.svc .names.default.svc.cluster.local; do echo $h $(getent hosts $h$d | cut -d' ' -f1); done; done; "
        "echo done; sleep 300"  # a pod that has ended has no name any more
    )
    handle = cluster.submit(
        vcnb.Job(name="names", tasks=[sh("a", resolve), sh("b", resolve, replicas=2)], plugins={"svc": []})
    )

    until(lambda: handle.logs().count("done") == 3, "all to have looked")
    addresses = {}
    for pod in handle.pods:
        rows = [line.split() for line in pod.logs().splitlines()]
        own, seen = rows[0], rows[1:-1]
        assert own[1] == own[2] != ""
        addresses[pod.name] = own[1]
        assert len(seen) == 15
        assert len({tuple(row) for row in seen}) == 3, "each name is one address in all its forms"
        assert dict(seen)[pod.name] == own[1]
    assert len(set(addresses.values())) == 3
    for pod in handle.pods:
        rows = [line.split() for line in pod.logs().splitlines()][1:-1]
        assert dict(rows) == addresses


def test_a_server_in_one_pod_is_reached_by_name_from_another(run):
    serve = (
        "import socket\n"
        "server = socket.create_server((socket.gethostname(), 7000))\n"
        "for _ in range(2):\n"
        "    peer, address = server.accept()\n"
        "    with peer: peer.sendall(f'{socket.gethostname()} hears {address[0]}'.encode())\n"
    )
    ask = (
        "import socket, time\n"
        "def ask(host):\n"
        "    while True:\n"
        "        try: peer = socket.create_connection((host, 7000), timeout=5)\n"
        "        except OSError: time.sleep(0.05); continue\n"
        "        with peer: return peer.recv(99).decode().split(' hears ')[0]\n"
        "from pathlib import Path\n"
        "hosts = Path('/etc/volcano/server.host').read_text().split()\n"
        "print([ask(host) for host in hosts])\n"
    )
    tasks = [python("server", serve, replicas=2), python("client", ask, replicas=2)]

    handle = run(vcnb.Job(name="tcp", tasks=tasks, plugins={"svc": []}))

    assert handle.logs("client", 0) == handle.logs("client", 1) == "['tcp-server-0', 'tcp-server-1']\n"


def test_the_files_and_variables_name_the_hosts_of_every_task(run):
    show = (
        "cd /etc/volcano; for f in *; do echo $f $(cat $f); done; "
        "echo $VC_PS_HOSTS $VC_PS_NUM $VC_BIG_WORKER_HOSTS $VC_BIG_WORKER_NUM; touch x 2>/dev/null || echo read-only"
    )
    tasks = [sh("ps", show), sh("big-worker", "true", replicas=2)]

    handle = run(vcnb.Job(name="files", tasks=tasks, plugins={"svc": []}))

    workers = ["files-big-worker-0.files", "files-big-worker-1.files"]
    assert handle.logs("ps").splitlines() == [
        f"VC_BIG_WORKER_HOSTS {','.join(workers)}",
        "VC_BIG_WORKER_NUM 2",
        "VC_PS_HOSTS files-ps-0.files",
        "VC_PS_NUM 1",
        f"big_worker.host {' '.join(workers)}",
        "ps.host files-ps-0.files",
        f"files-ps-0.files 1 {','.join(workers)} 2",
        "read-only",
    ]


def test_running_pods_see_others_come_and_go_when_the_job_is_scaled(cluster):
    watch = (
        'last=; while true; do now="$(getent hosts scaled-w-1.scaled >/dev/null && echo there || echo gone)'
        ' $(wc -w </etc/volcano/w.host)"; [ "$now" = "$last" ] || echo $now; last=$now; sleep 0.05; done'
    )
    job = vcnb.Job(
        name="scaled", min_available=1, tasks=[sh("w", watch, replicas=1, min_available=1)], plugins={"svc": []}
    )
    handle = cluster.submit(job)

    def said() -> list[str]:
        return handle.logs("w", 0).splitlines()

    until(lambda: said() == ["gone 1"], "the first look")
    handle.scale({"w": 2})
    until(lambda: "there 2" in said(), "the new pod to be seen by the first")
    handle.scale({"w": 1})
    until(lambda: said()[-1] == "gone 1", "the name to be gone")

    handle.delete()
    assert [len(kind) for kind in (cluster.services, cluster.configmaps, cluster.networkpolicies)] == [0, 0, 0]


def test_a_pod_that_was_replaced_is_found_at_its_new_address(cluster):
    master = (
        "import socket, time\n"
        "seen = []\n"
        "while len(seen) < 2:\n"
        "    try:\n"
        "        with socket.create_connection(('again-w-0.again', 7001), timeout=5) as peer: uid = peer.recv(99).decode()\n"
        "        if uid and uid not in seen: seen.append(uid); print(uid, flush=True)\n"
        "    except OSError: pass\n"
        "    time.sleep(0.05)\n"
    )
    worker = (
        "import socket, uuid\n"
        "server = socket.create_server((socket.gethostname(), 7001)); me = uuid.uuid4().hex\n"
        "while True:\n"
        "    with server.accept()[0] as peer: peer.sendall(me.encode())\n"
    )
    job = vcnb.Job(
        name="again",
        tasks=[python("m", master, policies=MASTER_COMPLETES), python("w", worker)],
        plugins={"svc": []},
    )
    handle = cluster.submit(job)
    until(lambda: len(handle.logs("m").splitlines()) == 1, "the first worker")

    cluster.pods["again-w-0"].delete()

    handle.wait(timeout=30)
    assert len(handle.logs("m").splitlines()) == 2


def test_a_subdomain_of_a_template_resolves_too(cluster):
    task = sh(
        "w", "until getent hosts own-w-1.other; do sleep 0.05; done; sleep 300", replicas=2, pod={"subdomain": "other"}
    )

    handle = cluster.submit(vcnb.Job(name="own", tasks=[task], plugins={"svc": []}))

    until(lambda: "own-w-1.other" in handle.logs("w", 0), "the other pod's name")


def test_names_of_equal_jobs_in_two_namespaces_are_apart(cluster):
    cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "second"}})
    script = "getent hosts same-w-0; echo $VCNB_POD_IP; getent hosts same-w-0.same.default | wc -l; sleep 300"
    handles = []
    for namespace in ("default", "second"):
        job = vcnb.Job(name="same", namespace=namespace, tasks=[sh("w", script)], plugins={"svc": []})
        handles.append(cluster.submit(job))

    for handle in handles:
        until(lambda handle=handle: len(handle.logs().splitlines()) == 3, "the pod to have looked")
        resolved, own, across = handle.logs().splitlines()
        assert resolved.split()[0] == own
        assert across == "1"
    assert handles[0].logs() != handles[1].logs()
