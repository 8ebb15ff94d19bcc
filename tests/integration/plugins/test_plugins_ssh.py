"""Plugin ssh and mpi on the embedded cluster: Debian's sshd in the workers, the master logs in by name.

Every pod is on one machine, so a worker's sshd listens at the worker's own address. The client's configuration, the keys
and ``authorized_keys`` are those that the plugin has put into the pods.
"""

from __future__ import annotations

import getpass
import os
import shutil
from pathlib import Path

import pytest

import vcnb
from integration.plugins.plugin_jobs import MASTER_COMPLETES, sh

SSHD = shutil.which("sshd") or "/usr/sbin/sshd"
NEEDED = Path(SSHD).exists() and shutil.which("ssh") and shutil.which("ssh-keygen")

pytestmark = [
    pytest.mark.integration,
    pytest.mark.timeout(90),
    pytest.mark.skipif(not NEEDED and not os.environ.get("VCNB_NO_SKIP"), reason="OpenSSH is not installed"),
]

PORT = 2222
SERVE = (
    "mkdir -p /run/sshd 2>/dev/null; ssh-keygen -q -t ed25519 -N '' -f /tmp/host_key; "
    f"exec {SSHD} -D -e -f /dev/null -h /tmp/host_key -p {PORT} -o ListenAddress=$(hostname) -o PidFile=none "
    "-o UsePAM=no -o PermitRootLogin=prohibit-password -o PasswordAuthentication=no -o StrictModes=no"
)
ON_WORKER = "ssh -o LogLevel=ERROR $host"
WAIT = f"for n in $(seq 300); do {ON_WORKER} true 2>/dev/null && break; sleep 0.1; done; "


def job(name: str, master: str, plugins: dict[str, list[str]], workers: int = 2) -> vcnb.Job:
    tasks = [sh("master", master, policies=MASTER_COMPLETES), sh("worker", SERVE, replicas=workers)]
    return vcnb.Job(name=name, tasks=tasks, plugins=plugins)


def test_the_master_runs_commands_on_workers_by_name(run):
    each = WAIT + f"{ON_WORKER} 'echo $(hostname) as $(whoami)'; "
    master = f"set -e; for host in login-worker-0 login-worker-1; do {each} done"

    handle = run(job("login", master, {"ssh": [f"--ssh-port={PORT}"], "svc": []}))

    me = getpass.getuser()
    assert handle.logs("master").splitlines() == [f"login-worker-0 as {me}", f"login-worker-1 as {me}"]


def test_nobody_without_the_jobs_key_gets_in(run):
    master = (
        f"set -e; host=login-worker-0; {WAIT} ssh-keygen -q -t ed25519 -N '' -f /tmp/other; "
        "ssh -o IdentitiesOnly=yes -i /tmp/other -F none -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null "
        f"-o IdentityAgent=none -o BatchMode=yes -o LogLevel=ERROR -p {PORT} login-worker-0.login true && exit 1; echo refused"
    )

    handle = run(job("login", master, {"ssh": [f"--ssh-port={PORT}"], "svc": []}, workers=1))

    assert handle.logs("master").splitlines()[-1] == "refused"


def test_an_mpi_master_starts_its_processes_with_the_host_list(run):
    """What ``mpiexec --host`` does: a process on each host of MPI_HOST, with its rank."""
    master = (
        "set -e; rank=0; printf '%s\\n' $(echo $MPI_HOST | tr , ' ') >/tmp/hostfile; "
        f"for host in $(cat /tmp/hostfile); do {WAIT} rank=$((rank + 1)); done; rank=0; "
        "for host in $(cat /tmp/hostfile); do "
        f'{ON_WORKER} "echo rank $rank of $(wc -l </tmp/hostfile) on \\$(hostname)" & rank=$((rank + 1)); done; '
        "wait"
    )

    handle = run(job("ring", master, {"mpi": [f"--port={PORT}"], "ssh": [f"--ssh-port={PORT}"], "svc": []}))

    said = sorted(handle.logs("master").splitlines())
    assert said == ["rank 0 of 2 on ring-worker-0", "rank 1 of 2 on ring-worker-1"]


def test_the_keys_are_in_the_pods_and_nowhere_else(run):
    before = sorted(Path("/root/.ssh").iterdir()) if os.access("/root/.ssh", os.R_OK) else []
    script = "cd /root/.ssh && stat -L -c '%n %a' * && ssh-keygen -y -f id_rsa | cut -d' ' -f1,2 | diff - <(cut -d' ' -f1,2 id_rsa.pub) && echo pair"

    handle = run(vcnb.Job(name="keys", tasks=[sh("a", script)], plugins={"ssh": [], "svc": []}))

    names = ["authorized_keys", "config", "id_rsa", "id_rsa.pub"]
    assert handle.logs().splitlines() == [*(f"{name} 600" for name in names), "pair"]
    after = sorted(Path("/root/.ssh").iterdir()) if os.access("/root/.ssh", os.R_OK) else []
    assert before == after


def test_another_path_for_the_keys(run):
    script = "cd /home/keys/.ssh && stat -L -c '%n %a' id_rsa && grep -c Host config"

    handle = run(
        vcnb.Job(
            name="path", tasks=[sh("a", script)], plugins={"ssh": ["--ssh-key-file-path=/home/keys/.ssh"], "svc": []}
        )
    )

    assert handle.logs().splitlines()[0] == "id_rsa 644"
