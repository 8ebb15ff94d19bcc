"""Volumes, hosts files, addresses, tails and the directory of the node, without any process."""

from __future__ import annotations

import base64
import os
from pathlib import Path

import pytest

from vcnb.local.node.addresses import Addresses
from vcnb.local.node.environment import MissingObject, Sources
from vcnb.local.node.hosts import hosts_text, write_in_place
from vcnb.local.node.layout import Exit, Layout
from vcnb.local.node.rooms import Mount, room_command
from vcnb.local.node.tail import tail_offset
from vcnb.local.node.termination import termination_message
from vcnb.local.node.volumes import File, VolumeError, files_of, make_volume, write_files

POD = {"metadata": {"name": "p", "namespace": "default", "uid": "u", "labels": {"a": "b"}}, "spec": {}}
CONFIG = {"cm": {"data": {"a": "1", "b": "2"}}}
SECRETS = {"s": {"data": {"k": base64.b64encode(b"\x00\xff").decode()}}}
SOURCES = Sources(CONFIG.get, SECRETS.get, {})


def no_claim(name):
    raise MissingObject(name)


def test_files_of_projections():
    cm = {"name": "v", "configMap": {"name": "cm", "defaultMode": 0o600}}
    assert files_of(cm, POD, SOURCES) == {"a": File(b"1", 0o600), "b": File(b"2", 0o600)}
    items = {"secretName": "s", "items": [{"key": "k", "path": "deep/k", "mode": 0o400}]}
    assert files_of({"name": "v", "secret": items}, POD, SOURCES) == {"deep/k": File(b"\x00\xff", 0o400)}
    sources = [
        {"configMap": {"name": "cm", "items": [{"key": "a", "path": "x"}]}},
        {"secret": {"name": "s"}},
        {"downwardAPI": {"items": [{"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}}]}},
        {"serviceAccountToken": {"path": "token"}},
    ]
    projected = files_of({"name": "v", "projected": {"sources": sources}}, POD, SOURCES)
    assert projected == {"x": File(b"1"), "k": File(b"\x00\xff"), "labels": File(b'a="b"')}


def test_missing_sources():
    with pytest.raises(MissingObject, match='configmap "none" not found'):
        files_of({"name": "v", "configMap": {"name": "none"}}, POD, SOURCES)
    assert files_of({"name": "v", "configMap": {"name": "none", "optional": True}}, POD, SOURCES) == {}
    with pytest.raises(MissingObject, match="has no key 'z'"):
        files_of({"name": "v", "configMap": {"name": "cm", "items": [{"key": "z", "path": "z"}]}}, POD, SOURCES)
    with pytest.raises(VolumeError, match="must stay inside"):
        files_of({"name": "v", "configMap": {"name": "cm", "items": [{"key": "a", "path": "../a"}]}}, POD, SOURCES)


def test_writing_replaces_what_differs_and_removes_the_rest(tmp_path):
    write_files(tmp_path / "v", {"a": File(b"1"), "old": File(b"x"), "deep/b": File(b"2", 0o400)})
    kept = (tmp_path / "v" / "a").stat().st_ino
    write_files(tmp_path / "v", {"a": File(b"1"), "deep/b": File(b"3", 0o600)})
    assert sorted(str(path.relative_to(tmp_path / "v")) for path in (tmp_path / "v").rglob("*")) == [
        "a",
        "deep",
        "deep/b",
    ]
    assert (tmp_path / "v" / "a").stat().st_ino == kept
    assert (tmp_path / "v" / "deep" / "b").read_bytes() == b"3"
    assert (tmp_path / "v" / "deep" / "b").stat().st_mode & 0o777 == 0o600


def test_host_paths(tmp_path):
    def host(path, kind=""):
        return make_volume(
            {"name": "v", "hostPath": {"path": str(path), "type": kind}}, POD, tmp_path, SOURCES, no_claim
        )

    assert host(tmp_path).path == tmp_path
    assert host(tmp_path / "new", "DirectoryOrCreate").path.is_dir()
    assert host(tmp_path / "file", "FileOrCreate").path.is_file()
    with pytest.raises(VolumeError, match="does not exist"):
        host(tmp_path / "none")
    with pytest.raises(VolumeError, match="not a directory"):
        host(tmp_path / "file", "Directory")
    with pytest.raises(VolumeError, match="not a file"):
        host(tmp_path, "File")


def test_a_volume_that_this_node_does_not_have(tmp_path):
    with pytest.raises(VolumeError, match="is of kind nfs"):
        make_volume({"name": "v", "nfs": {"server": "x"}}, POD, tmp_path, SOURCES, no_claim)


def named(name, ip, namespace="default", phase="Running", labels=None, **spec):
    return {
        "metadata": {"name": name, "namespace": namespace, "labels": labels or {}},
        "spec": spec,
        "status": {"podIP": ip, "phase": phase},
    }


def test_hosts_file():
    pods = [
        named("j-w-0", "127.1.0.1", hostname="j-w-0", subdomain="j"),
        named("plain", "127.1.0.2"),
        named("o-w-0", "127.1.0.3", namespace="other", hostname="o-w-0", subdomain="o"),
        named("done", "127.1.0.4", phase="Succeeded", hostname="done", subdomain="j"),
        named("head", "127.1.0.5", labels={"role": "head"}),
    ]
    services = [
        {"metadata": {"name": "svc", "namespace": "default"}, "spec": {"selector": {"role": "head"}}},
        {"metadata": {"name": "empty", "namespace": "default"}, "spec": {}},
    ]
    text = hosts_text("default", pods, services)
    lines = {line.split("\t")[1]: line.split("\t")[0] for line in text.splitlines() if "127.1" in line}
    by_name = {name: ip for names, ip in lines.items() for name in names.split()}
    assert by_name["j-w-0.j"] == by_name["j-w-0"] == by_name["j-w-0.j.default.svc.cluster.local"] == "127.1.0.1"
    assert by_name["plain"] == "127.1.0.2"
    assert by_name["o-w-0.o.other"] == "127.1.0.3"
    assert by_name["svc"] == by_name["svc.default.svc"] == "127.1.0.5"
    assert not {"o-w-0", "o-w-0.o", "done", "done.j", "empty"} & set(by_name)


def test_a_hosts_file_keeps_its_inode(tmp_path):
    path = tmp_path / "hosts"
    write_in_place(path, "a long first text\n")
    inode = path.stat().st_ino
    write_in_place(path, "short\n")
    assert path.read_text() == "short\n"
    assert path.stat().st_ino == inode


def test_addresses_are_unique_stable_and_not_reused_at_once(tmp_path):
    addresses = Addresses(tmp_path)
    first, second = addresses.take("one"), addresses.take("two")
    assert first != second
    assert not first.startswith("127.0.")
    assert addresses.take("one", first) == first
    assert addresses.take("three", first) not in {first, second}
    addresses.give_back("one")
    assert addresses.take("four") != first
    later = Addresses(tmp_path)
    later.keep([("two", second)])
    assert later.take("five") != second
    assert Addresses(tmp_path / "elsewhere").take("x").split(".")[1] != first.split(".")[1]


@pytest.mark.parametrize(
    "content", [b"", b"\n", b"a", b"a\n", b"a\nb", b"a\nb\n", b"\n\n\n", b"x" * 200_000 + b"\ny\n", b"l\n" * 100_000]
)
@pytest.mark.parametrize("count", [0, 1, 2, 3, 70_000])
def test_tail(tmp_path, content, count):
    path = tmp_path / "log"
    path.write_bytes(content)
    lines = content.split(b"\n")
    lines = [line + b"\n" for line in lines[:-1]] + ([lines[-1]] if lines[-1] else [])
    with path.open("rb") as stream:
        at = tail_offset(stream.fileno(), count)
    assert content[at:] == b"".join(lines[len(lines) - min(count, len(lines)) :])


def test_termination_messages_are_cut(tmp_path):
    attempt = Layout(tmp_path).pod(POD).attempt("c", 0)
    attempt.create()
    attempt.termination_log.write_bytes(b"x" * 5000)
    assert len(termination_message({}, attempt, Exit(0, 0, 0.0))) == 4096
    attempt.termination_log.write_bytes(b"")
    attempt.log.write_text("".join(f"{number}\n" for number in range(5000)))
    assert termination_message({}, attempt, Exit(1, 0, 0.0)) == ""
    fallback = {"terminationMessagePolicy": "FallbackToLogsOnError"}
    assert termination_message(fallback, attempt, Exit(0, 0, 0.0)) == ""
    message = termination_message(fallback, attempt, Exit(1, 0, 0.0))
    assert message.splitlines()[-1] == "4999"
    assert len(message.splitlines()) == 80


def test_the_directory_of_the_node(tmp_path):
    layout = Layout(tmp_path / "node")
    layout.create()
    assert (tmp_path / "node").stat().st_mode & 0o777 == 0o700
    owner = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": "j", "uid": "job-uid"}
    member = {"metadata": {**POD["metadata"], "ownerReferences": [owner]}, "spec": {}}
    assert layout.pod(member).job_uid == "job-uid"
    assert layout.pod(POD).job_uid == "pod-u"
    attempts = [layout.pod(POD).attempt("c", number) for number in (10, 9, 0)]
    for attempt in attempts:
        attempt.create()
    assert [attempt.number for attempt in layout.pod(POD).attempts("c")] == [0, 9, 10]
    assert layout.tell_once("j", "Reason")
    assert not layout.tell_once("j", "Reason")


def test_an_abandoned_attempt_is_nobodys(tmp_path):
    attempt = Layout(tmp_path).pod(POD).attempt("c", 0)
    attempt.create()
    assert attempt.abandon() is None
    assert attempt.started().shim == 0
    assert attempt.started().process() is None
    with pytest.raises(FileExistsError):
        os.link(__file__, attempt.path / "started.json")


def words_of(command, option):
    return [tuple(command[at : at + 3]) for at, word in enumerate(command) if word == option]


def test_a_room_mounts_over_what_is_there(tmp_path):
    target = tmp_path / "there"
    target.mkdir()
    command = room_command("bwrap", "cat", "h", [Mount("/etc", tmp_path), Mount("/usr", tmp_path, read_only=True)], "/")
    assert ("--dev-bind", "/", "/") in words_of(command, "--dev-bind")
    assert ("--dev-bind", str(tmp_path), "/etc") in words_of(command, "--dev-bind")
    assert ("--ro-bind", str(tmp_path), "/usr") in words_of(command, "--ro-bind")
    assert words_of(command, "--tmpfs") == [
        ("--tmpfs", "/dev/shm", "--proc"),
        ("--tmpfs", "/tmp", *words_of(command, "--tmpfs")[1][2:]),
    ]
    assert command[-2:] == ["--", "cat"]


def test_a_room_shadows_the_nearest_directory_of_a_missing_mount_point(tmp_path):
    command = room_command("bwrap", "cat", "h", [Mount("/etc/no-such/deep", tmp_path)], "/")
    tmpfs = [words[1] for words in words_of(command, "--tmpfs")]
    assert "/etc" in tmpfs
    links = {words[2]: words[1] for words in words_of(command, "--symlink")}
    assert links["/etc/passwd"] == "/dev/.host/etc/passwd"
    assert "/" not in tmpfs


def test_a_room_with_a_new_top_directory_rebuilds_the_root(tmp_path):
    command = room_command("bwrap", "cat", "h", [Mount("/no-such-top/x", tmp_path)], "/")
    assert ("--dev-bind", "/", "/") not in words_of(command, "--dev-bind")
    assert ("--dev-bind-try", "/usr", "/usr") in words_of(command, "--dev-bind-try")


def test_a_working_directory_in_tmp_stays_where_it_is(tmp_path):
    work = tmp_path / "project"
    work.mkdir()
    command = room_command("bwrap", "cat", "h", [], str(work))
    if Path("/tmp") in work.parents:
        top = str(Path("/tmp", work.relative_to("/tmp").parts[0]))
        assert ("--dev-bind-try", top, top) in words_of(command, "--dev-bind-try")


def test_mounts_below_root_are_below_the_home_of_another_user(tmp_path, monkeypatch):
    from vcnb.local.node.runtimes import SandboxRuntime

    def targets(uid):
        monkeypatch.setattr(os, "getuid", lambda: uid)
        monkeypatch.setenv("HOME", str(tmp_path))
        command = SandboxRuntime().room("h", [Mount("/root/.ssh", tmp_path)], "/")
        return {words[2] for words in words_of(command, "--dev-bind")}

    assert f"{tmp_path}/.ssh" not in targets(0)
    assert {f"{tmp_path}/.ssh", "/root/.ssh"} <= targets(65534)
