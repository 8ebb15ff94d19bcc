"""The worked examples of plugin ssh, its Secret over a job's life, and keys that OpenSSH takes."""

import shutil
import subprocess

import pytest

from unit.plugins.plugin_cases import BOTH, DEFAULT, STRICT, Keys, added, container, created, hook, job, task
from vcnb.controllers.job.plugins import PluginError, generate_keys

CONFIG = """\
StrictHostKeyChecking no
UserKnownHostsFile /dev/null
Host mpi1-master-0
  HostName mpi1-master-0.mpi1
  Port 22
Host mpi1-worker-0
  HostName mpi1-worker-0.mpi1
  Port 22
Host mpi1-worker-1
  HostName mpi1-worker-1.mpi1
  Port 22
"""
SECRET = ("Secret", "mpi1-ssh")


def mpi1(*args: str, workers: int = 2, **more) -> dict:
    return job("mpi1", task("master", **more), task("worker", workers), plugins={"ssh": list(args)})


@pytest.mark.parametrize("behaviour", BOTH)
def test_example_1_mount_mode_and_config(behaviour):
    api, controlled = added(mpi1(), behaviour)
    assert controlled == {"plugin-ssh": "ssh"}
    assert api.objects[SECRET]["type"] == "Opaque"
    assert api.data(*SECRET) == {
        "id_rsa": "private-1",
        "id_rsa.pub": "ssh-rsa public-1\n",
        "authorized_keys": "ssh-rsa public-1\n",
        "config": CONFIG,
    }
    pod = created(mpi1(), "master", 0, behaviour)
    assert container(pod)["volumeMounts"] == [{"name": "mpi1-ssh", "mountPath": "/root/.ssh", "subPath": ".ssh"}]
    files = ["id_rsa", "id_rsa.pub", "authorized_keys", "config"]
    items = [{"key": file, "path": f".ssh/{file}"} for file in files]
    secret = {"secretName": "mpi1-ssh", "items": items, "defaultMode": 0o600}
    assert pod["spec"]["volumes"] == [{"name": "mpi1-ssh", "secret": secret}]


@pytest.mark.parametrize("behaviour", BOTH)
def test_example_2_another_directory_and_port(behaviour):
    other = mpi1("--ssh-key-file-path=/home/user/.ssh", "--ssh-port=2026")
    pod = created(other, "worker", 0, behaviour)
    assert container(pod)["volumeMounts"] == [{"name": "mpi1-ssh", "mountPath": "/home/user/.ssh", "subPath": ".ssh"}]
    assert pod["spec"]["volumes"][0]["secret"]["defaultMode"] == 0o644
    assert added(other, behaviour)[0].data(*SECRET)["config"].count("  Port 2026\n") == 3


def test_quirk_27_another_port_holds_for_both_forms_of_a_name():
    other = mpi1("--ssh-port=2026")
    assert "Host mpi1-worker-0 mpi1-worker-0.mpi1\n" in added(other, DEFAULT)[0].data(*SECRET)["config"]
    assert "Host mpi1-worker-0\n" in added(other, STRICT)[0].data(*SECRET)["config"]


def test_example_3_given_keys_are_taken_as_they_are():
    keys = Keys()
    data = added(mpi1("--ssh-private-key=K", "--ssh-public-key=P"), keys=keys)[0].data(*SECRET)
    assert (data["id_rsa"], data["id_rsa.pub"], data["authorized_keys"]) == ("K", "P", "P")
    assert keys.made == 0


def test_example_4_a_public_key_alone_is_ignored():
    assert added(mpi1("--ssh-public-key=P"))[0].data(*SECRET)["id_rsa.pub"] == "ssh-rsa public-1\n"


@pytest.mark.parametrize("args", [["--ssh-port=-10"], ["--ssh-port=0"], ["--ssh-port=65536"], ["--no-root"]])
def test_example_5_what_is_no_port_is_22(args):
    assert added(mpi1(*args))[0].data(*SECRET)["config"] == CONFIG


def test_a_fixed_host_name_is_one_entry():
    fixed = job("j", task("a", 3, hostname="h", subdomain="net"), plugins={"ssh": []})
    config = added(fixed)[0].data("Secret", "j-ssh")["config"]
    assert config.splitlines()[2:] == ["Host h", "  HostName h.net", "  Port 22"]


def test_init_containers_get_the_mount():
    pod = created(job("j", task("a", init=[{"name": "i"}]), plugins={"ssh": []}), "a")
    assert pod["spec"]["initContainers"][0]["volumeMounts"][0]["mountPath"] == "/root/.ssh"


@pytest.mark.parametrize("behaviour", BOTH)
def test_an_unchanged_secret_is_left_alone_and_no_key_is_made(behaviour):
    keys = Keys()
    api, _ = added(mpi1(), behaviour, keys)
    hook("on_job_add", mpi1(), {}, api, behaviour, keys)
    assert keys.made == 1
    assert api.wrote() == [("create", *SECRET)]


def test_strict_other_hosts_replace_the_keys_too():
    keys = Keys()
    api, _ = added(mpi1(), STRICT, keys)
    hook("on_job_add", mpi1(workers=3), {}, api, STRICT, keys)
    assert api.data(*SECRET)["id_rsa"] == "private-2"
    assert "mpi1-worker-2.mpi1" in api.data(*SECRET)["config"]


@pytest.mark.parametrize("hook_name", ["on_job_add", "on_job_update"])
@pytest.mark.parametrize("stored", [{}, {"plugin-ssh": "ssh"}])
def test_quirk_14_other_hosts_reach_the_config_and_keep_the_keys(hook_name, stored):
    keys = Keys()
    api, _ = added(mpi1(), DEFAULT, keys)
    hook(hook_name, mpi1(workers=3), dict(stored), api, DEFAULT, keys)
    assert api.data(*SECRET)["id_rsa"] == "private-1"
    assert "mpi1-worker-2.mpi1" in api.data(*SECRET)["config"]


def test_strict_an_update_does_nothing():
    api, controlled = added(mpi1(), STRICT)
    api.calls.clear()
    hook("on_job_update", mpi1(workers=3), controlled, api, STRICT)
    hook("on_job_add", mpi1(workers=3), controlled, api, STRICT)
    assert api.calls == []


@pytest.mark.parametrize("behaviour", BOTH)
def test_delete_removes_secret_and_key(behaviour):
    api, controlled = added(mpi1(), behaviour)
    hook("on_job_delete", mpi1(), controlled, api, behaviour)
    assert (api.there(), controlled) == ([], {})


def test_without_the_key_upstream_leaves_the_secret():
    api, _ = added(mpi1(), STRICT)
    hook("on_job_delete", mpi1(), {}, api, STRICT)
    assert api.there() == [SECRET]


def test_a_secret_of_somebody_else_is_not_overwritten():
    api, _ = added(mpi1())
    api.objects[SECRET]["metadata"] = {**api.objects[SECRET]["metadata"], "ownerReferences": []}
    with pytest.raises(PluginError, match="Secret default/mpi1-ssh exists"):
        hook("on_job_add", mpi1(workers=3), {}, api)


@pytest.mark.parametrize(
    ("path", "user", "mode"),
    [
        ("/root/.ssh", None, 0o600),
        ("/root/.ssh", 0, 0o600),
        ("/root/.ssh", 1000, 0o644),
        ("/home/u/.ssh", None, 0o644),
        ("/home/u/.ssh", 1000, 0o644),
        ("/home/u/.ssh", 0, 0o600),
    ],
)
def test_quirk_15_the_mode_follows_the_user(path, user, mode):
    context = {} if user is None else {"securityContext": {"runAsUser": user}}
    pod = created(mpi1(f"--ssh-key-file-path={path}", **context), "master")
    assert pod["spec"]["volumes"][0]["secret"]["defaultMode"] == mode


def test_quirk_15_containers_of_different_users_fall_back_to_the_path():
    two = [{"name": "a", "securityContext": {"runAsUser": 0}}, {"name": "b", "securityContext": {"runAsUser": 7}}]
    pod = created(job("j", task("a", containers=two), plugins={"ssh": []}), "a")
    assert pod["spec"]["volumes"][0]["secret"]["defaultMode"] == 0o600


def test_strict_the_mode_follows_the_path_alone():
    pod = created(mpi1(securityContext={"runAsUser": 1000}), "master", 0, STRICT)
    assert pod["spec"]["volumes"][0]["secret"]["defaultMode"] == 0o600


def test_generated_keys_have_the_formats_that_openssh_reads():
    from cryptography.hazmat.primitives import serialization

    keys, others = generate_keys(), generate_keys()
    assert keys.private.startswith("-----BEGIN RSA PRIVATE KEY-----\n")
    assert keys.private.endswith("-----END RSA PRIVATE KEY-----\n")
    kind, body = keys.public.split(" ")
    assert (kind, body[-1]) == ("ssh-rsa", "\n")
    key = serialization.load_pem_private_key(keys.private.encode(), password=None)
    assert key.key_size == 2048
    public = key.public_key().public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
    assert public.decode() == keys.public.strip()
    assert others != keys


@pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="OpenSSH is not installed")
def test_openssh_derives_the_same_public_key(tmp_path):
    keys = generate_keys()
    file = tmp_path / "id_rsa"
    file.write_text(keys.private)
    file.chmod(0o600)
    derived = subprocess.run(["ssh-keygen", "-y", "-f", str(file)], capture_output=True, text=True, check=True)
    assert derived.stdout.split()[:2] == keys.public.split()
