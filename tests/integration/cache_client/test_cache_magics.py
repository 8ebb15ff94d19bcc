"""``%cache`` in a shell: what a cell gives and prints, mistakes as one clean line, completion, help."""

import atexit
from types import SimpleNamespace

import pytest
from IPython.core.error import UsageError
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output
from traitlets.config import Config

import vcnb
from integration.cache_client.dataset import MIB, make
from vcnb.client.cache.handle import CacheHandle
from vcnb.notebook import current, frontend

pytestmark = [pytest.mark.integration, pytest.mark.timeout(90)]


@pytest.fixture(scope="module")
def kernel():
    shell = InteractiveShell(config=Config(HistoryManager={"enabled": False, "hist_file": ":memory:"}))
    shell.run_cell("%load_ext vcnb")
    yield shell
    atexit.unregister(shell.atexit_operations)
    shell.atexit_operations()


@pytest.fixture
def run(kernel, monkeypatch, tmp_path):
    """Runs a cell; ``{data}`` in it is a directory of four files."""
    monkeypatch.setattr(frontend, "_chosen", "none")
    kernel.user_ns["data"] = make(tmp_path / "da ta", files=4, size=1000)
    with vcnb.connect("memory://", controllers="off") as cluster:
        monkeypatch.setattr(current, "_current", cluster)
        yield lambda text: Ran(kernel, text)


class Ran:
    """One cell that was run: its value, what it raised, and what it showed."""

    def __init__(self, shell, text):
        with capture_output() as captured:
            result = shell.run_cell(text, store_history=True)
        self.value = result.result
        self.error = result.error_in_exec or result.error_before_exec
        self.out, self.err, self.shown = captured.stdout, captured.stderr, captured.outputs
        self.names = shell.user_ns

    @property
    def message(self):
        return str(self.error)


def test_a_load_prints_its_progress_and_gives_the_handle(run):
    ran = run("%cache load {data} --replicas 1 --batch-size 2 --out job")

    assert ran.error is None
    assert isinstance(ran.value, CacheHandle)
    assert ran.names["job"] is ran.value
    lines = ran.out.splitlines()
    assert lines[-1].startswith("✔ load file://") or "✔ load" in ran.out
    assert "SUCCEEDED  4 of 4 files" in ran.out


def test_alluxios_form_is_taken(run):
    run("%cache load --path {data} --submit --wait;")

    progress = run("%cache load --path {data} --progress --format TEXT")
    stopped = run("%cache load --path {data} --stop")
    as_json = run("%cache progress {data} --format JSON")

    assert "\tInodes Scanned: 4\n" in progress.out
    assert "it might have already been stopped or finished" in stopped.out
    assert '"mJobState": "SUCCEEDED"' in as_json.out


def test_a_load_that_fails_fails_the_cell_with_one_line(run):
    ran = run("%cache load {data}/nowhere")
    told = run("%cache load {data}/nowhere --no-raise")

    assert isinstance(ran.error, vcnb.CacheJobFailed)
    assert ran.error._render_traceback_() == [f"CacheJobFailed: {ran.error}"]
    assert told.error is None
    assert told.value.state == "FAILED"


def test_failed_files_are_a_table(run, tmp_path):
    (tmp_path / "list").write_text(f"{tmp_path}/da ta/f001\n{tmp_path}/lost\n")

    run(f"%cache load --index-file {tmp_path}/list --no-raise")
    failed = run(f"%cache load --index-file {tmp_path}/list --progress --file-status FAILURE").value

    assert [(file.path, file.reason) for file in failed] == [(f"file://{tmp_path}/lost", "NOT_FOUND")]


def test_free_copy_move_list_coverage(run, tmp_path):
    run("%cache load {data};")
    covered = run("%cache coverage {data}")
    freed = run("%cache free {data}")
    copied = run(f"%cache copy {{data}} {tmp_path}/c --check-content")
    moved = run(f"%cache move --src {tmp_path}/c --dst {tmp_path}/m")
    listed = run("%cache list --job-type ALL --job-state SUCCEEDED")

    assert (covered.value, covered.out.splitlines()[0]) == (1.0, "100.0% cached")
    assert freed.value.progress().loaded_files == 4
    assert (copied.value.type, moved.value.type) == ("COPY", "MOVE")
    assert [job.type for job in listed.value] == ["MOVE", "COPY", "FREE", "LOAD"]
    assert run(f"%cache progress {{data}} {tmp_path}/c --type copy").value.id == copied.value.id
    assert run(f"%cache progress --id {copied.value.id}").value.path == copied.value.path


@pytest.mark.parametrize(
    ("cell", "said"),
    [
        ("%cache", None),
        ("%cache lod", "unknown verb 'lod'; did you mean 'load'?"),
        ("%cache load", "path is required"),
        ("%cache copy a", "dst is required"),
        ("%cache copy a b c", "not 3 places"),
        ("%cache load a --path b", "name it once"),
        ("%cache load a --replica 2", "did you mean --replicas?"),
        ("%cache load a --submit --stop", "not allowed with"),
        ("%cache load a --batch-size many", "invalid int value"),
        ("%cache load a --storage-option key", "NAME=VALUE"),
        ("%cache progress", "by its path or by --id"),
        ("%cache rerun", "--coordinator"),
        ("%cache load {nowhere}", "nowhere"),
    ],
)
def test_mistakes_in_the_line_are_usage_errors(run, cell, said):
    ran = run(cell)

    if said is None:
        assert ran.error is None
        assert "%cache load s3://bucket/data/" in ran.out
    else:
        assert isinstance(ran.error, UsageError)
        assert said in ran.message


@pytest.mark.parametrize(
    ("cell", "kind", "said"),
    [
        ("%cache load s3://b/*.csv", vcnb.InvalidObject, "wildcards are not supported"),
        ("%cache load s3://b --replicas 0", vcnb.InvalidObject, "replicas: must be at least 1"),
        ("%cache load s3://b --bandwidth fast", vcnb.InvalidObject, "size such as 100MB"),
        ("%cache load /", vcnb.InvalidObject, "everything on this machine"),
        ("%cache progress /nowhere", vcnb.NotFound, "never submitted"),
        ("%cache progress /nowhere --type copy", vcnb.InvalidObject, "DST: is required"),
        (
            "%cache rerun --path /data/my-dataset --type load",
            vcnb.VcnbError,
            "UnavailableException: Job ETCD is not enabled",
        ),
        ("%cache config alluxio.job.batch.sise=3", vcnb.InvalidObject, "did you mean"),
    ],
)
def test_other_mistakes_are_one_clean_message(run, cell, kind, said):
    ran = run(cell)

    assert isinstance(ran.error, kind)
    assert said in ran.message
    assert run(f"{cell} --no-raise").error is None


def test_stop_of_what_is_not_there_is_no_error(run):
    ran = run("%cache stop /nowhere")

    assert ran.error is None
    assert ran.out == "Cannot find load job for path /nowhere, it might have already been stopped or finished\n"


def test_a_job_is_stopped_and_gone_on_with(run, tmp_path):
    big = make(tmp_path / "big", files=8, size=2 * MIB)

    first = run(f"%cache load {big} --bandwidth 2MB --batch-size 1 --no-wait").value
    stopped = run(f"%cache stop {big}")
    again = run(f"%cache load {big} --skip-if-exists").value

    assert stopped.out == f"Load 'file://{big}' is successfully stopped.\n"
    assert again.id == first.id
    assert again.state == "SUCCEEDED"


def test_a_live_front_end_gets_a_view(run, monkeypatch):
    shown = []
    monkeypatch.setattr(frontend, "_chosen", "live")
    monkeypatch.setattr(frontend, "_widgets", False)
    monkeypatch.setattr("IPython.display.display", lambda thing, **_: shown.append(thing))

    ran = run("%cache load {data} --wait")

    assert ran.error is None
    assert [type(thing) for thing in shown] == [CacheHandle]
    assert "✔" not in ran.out


def test_properties(run):
    assert run("%cache config alluxio.job.batch.size=9").out == "alluxio.job.batch.size=9\n"
    assert run("%cache config").value["alluxio.job.batch.size"] == 9


@pytest.mark.parametrize(
    "verb", ["load", "free", "copy", "move", "list", "progress", "stop", "rerun", "coverage", "config"]
)
def test_every_verb_has_help(run, verb):
    ran = run(f"%cache {verb} -h")

    assert ran.error is None
    assert f"usage: %cache {verb}" in ran.out
    assert "show this help" in ran.out


def test_completion(run, kernel):
    run("%cache load {data};")

    def complete(line):
        *_, hook = kernel.strdispatchers["complete_command"].flat_matches(line.split(" ")[0])
        return hook(SimpleNamespace(text_until_cursor=line))

    assert {"load", "list"} <= set(complete("%cache l"))
    assert {"--skip-if-exists", "--batch-size", "--file-filter-regx"} <= set(complete("%cache load --"))
    assert "--replicas" not in complete("%cache free --")
    assert set(complete("%cache list --job-state ")) >= {"WAITING", "VERIFYING", "ALL"}
    assert {"load", "free", "copy", "move"} <= set(complete("%cache progress x --type "))
    assert any(path.startswith("file:///") for path in complete("%cache progress "))


def test_the_magics_go_with_the_extension(kernel):
    kernel.run_cell("%unload_ext vcnb")
    assert "cache" not in kernel.magics_manager.magics["line"]
    kernel.run_cell("%load_ext vcnb")
    assert "cache" in kernel.magics_manager.magics["line"]
