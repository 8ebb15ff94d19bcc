"""``vcnb worker`` and ``vcnb coordinator``: what is wrong with their flags is one clear line."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from vcnb.cache.remote.home import Home
from vcnb.cache.remote.process import advertised, configured
from vcnb.cache.remote.secret import TOKEN, TOKEN_FILE
from vcnb.cache.remote.serving import Listen
from vcnb.cli.main import main
from vcnb.errors import ClusterBusy, InvalidObject, StoreCorrupt, VcnbError

NOWHERE = "127.0.0.1:1"


@pytest.fixture(autouse=True)
def _no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (TOKEN, TOKEN_FILE, "VCNB_CACHE_ETCD"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def token(tmp_path: Path) -> str:
    file = tmp_path / "token"
    file.touch(mode=0o600)
    file.write_text("0123456789abcdef0123")
    return str(file)


def vcnb(*words: str) -> Result:
    result = CliRunner().invoke(main, list(words))
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    assert "Traceback" not in result.output
    return result


@pytest.mark.parametrize("command", ["worker", "coordinator"])
def test_no_etcd_was_named(command: str, token: str) -> None:
    result = vcnb(command, "--token-file", token)
    assert result.exit_code == 1
    assert "error: workers and coordinators meet in etcd, and none was given: use --etcd HOST:PORT" in result.stderr


@pytest.mark.parametrize("command", ["worker", "coordinator"])
def test_no_etcd_answers(command: str, token: str, tmp_path: Path) -> None:
    words = ["--dir", str(tmp_path / "w"), "--capacity", "1Gi"] if command == "worker" else []
    result = vcnb(command, "--etcd", NOWHERE, "--token-file", token, "--listen", ":0", *words)
    assert result.exit_code == 1
    assert f"error: no etcd answers at {NOWHERE}" in result.stderr
    assert "often 2379" in result.stderr


def test_no_token() -> None:
    result = vcnb("coordinator", "--etcd", NOWHERE)
    assert result.exit_code == 1
    assert "--token-file FILE" in result.stderr


@pytest.mark.parametrize(
    ("words", "code", "text"),
    [
        (["--etcd", "nonsense"], 1, "'nonsense' is no etcd: write HOST:PORT"),
        (["--etcd", "ftp://h:1"], 1, "'ftp://h:1' is no etcd"),
        (["--etcd", "h:0"], 1, "'h:0' is no etcd"),
        (["--etcd", NOWHERE, "-D", "novalue"], 1, "novalue: write a property as NAME=VALUE"),
        (["--etcd", NOWHERE, "-D", "alluxio.job.batch.sise=3"], 1, "did you mean alluxio.job.batch.size?"),
        (["--etcd", NOWHERE, "-D", "alluxio.job.batch.size=many"], 1, "alluxio.job.batch.size"),
        (["--etcd", NOWHERE, "-D", "alluxio.job.retention.time=soon"], 1, "'soon' is not a duration"),
        (["--etcd", NOWHERE, "--properties", "/none"], 1, "the properties in /none cannot be read"),
        (["--etcd", NOWHERE, "--capacity", "1Gi"], 2, "a worker needs --dir"),
        (["--etcd", NOWHERE, "--dir", "/tmp/x"], 2, "a worker needs --capacity"),
        (["--etcd", NOWHERE, "--dir", "/tmp/x", "--capacity", "lots"], 2, "'lots' is not a size"),
        (["--etcd", NOWHERE, "--dir", "/tmp/x", "--capacity", "10k"], 2, "less than a page"),
        (["--etcd", NOWHERE, "--dir", "/tmp/x", "--capacity", "1Gi", "--listen", "80"], 1, "no address to listen at"),
        (["--nonsense"], 2, "No such option"),
    ],
)
def test_a_bad_flag_of_a_worker(words: list[str], code: int, text: str, token: str) -> None:
    result = vcnb("worker", "--token-file", token, *words)
    assert (result.exit_code, text in result.stderr) == (code, True), result.stderr


def test_properties_come_from_a_file_then_from_flags(tmp_path: Path) -> None:
    file = tmp_path / "alluxio-site.properties"
    file.write_text(
        "# a comment\n\nalluxio.job.batch.size = 7\nalluxio.etcd.endpoints=a:1\nalluxio.job.retention.time=1d\n"
    )
    config = configured(["b:2,c:3", "http://d:4/"], ["alluxio.job.batch.size=9"], file)
    assert config.endpoints == ("b:2", "c:3", "http://d:4")
    assert (config.batch_size, config.retention, config.store_type) == (9, 86400.0, "ETCD")
    assert configured([], [], file).endpoints == ("a:1",)
    with pytest.raises(InvalidObject) as error:
        configured(["b:2"], ["alluxio.x=1", "alluxio.job.cleanup.interval=never"], None)
    assert {problem.path for problem in error.value.errors} == {"alluxio.x", "alluxio.job.cleanup.interval"}


@pytest.mark.parametrize(
    ("listen", "advertise", "url"),
    [
        (":0", "", "http://127.0.0.1:5000"),
        ("[::1]:0", "", "http://[::1]:5000"),
        ("0.0.0.0:0", "worker-1", "http://worker-1:5000"),
        ("0.0.0.0:0", "worker-1:80", "http://worker-1:80"),
        ("0.0.0.0:0", "https://worker-1/", "https://worker-1"),
    ],
)
def test_what_others_are_told(listen: str, advertise: str, url: str) -> None:
    assert advertised(Listen(listen), 5000, advertise) == url


def test_the_directory_of_a_worker_keeps_its_name_and_identity(tmp_path: Path) -> None:
    first = Home(tmp_path / "w", "w1")
    identity = first.identity
    with pytest.raises(ClusterBusy, match=f"in use by another worker \\(process {os.getpid()}\\)"):
        Home(tmp_path / "w")
    first.close()
    again = Home(tmp_path / "w")
    assert (again.name, again.identity) == ("w1", identity)
    again.close()
    with pytest.raises(VcnbError, match="belongs to the worker w1"):
        Home(tmp_path / "w", "w2")
    other = Home(tmp_path / "other", "w2")
    assert other.identity != identity
    other.close()


def test_a_directory_that_cannot_be_used_says_so(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(VcnbError, match="cannot be used"):
        Home(tmp_path / "file" / "w")
    (tmp_path / "w").mkdir()
    (tmp_path / "w" / "identity").write_text("nonsense")
    with pytest.raises(StoreCorrupt, match="identity cannot be read"):
        Home(tmp_path / "w")
