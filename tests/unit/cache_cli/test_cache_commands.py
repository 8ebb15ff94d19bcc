"""``vcnb cache``: every command line of the brief (reference 2.10), option names, outputs and exit codes."""

import json

import pytest
from click.testing import CliRunner

from vcnb.cli.main import main

PATH = "s3://bucket/small-files/"


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Runs a command line against one durable cluster; nobody works on its jobs."""
    monkeypatch.delenv("VCNB_CACHE", raising=False)
    monkeypatch.setenv("VCNB_CACHE_BACKGROUND", "off")

    def invoke(*words):
        return CliRunner().invoke(main, ["--cluster", f"embedded://t?dir={tmp_path}", "cache", *words])

    return invoke


def last_id(run):
    return json.loads(run("list", "--format", "JSON").output)[0]["JobId"]


# the command lines of the brief


def test_list_all_types_and_states(run):
    run("load", "--path", PATH, "--submit")

    result = run("list", "--job-type", "ALL", "--job-state", "ALL")

    head, row = result.output.splitlines()
    assert result.exit_code == 0
    assert head.split() == ["JobId", "Type", "State", "Path", "Owner", "Submitted", "Updated", "Files", "Bytes"]
    assert row.split()[1:4] == ["LOAD", "WAITING", "s3://bucket/small-files"]


def test_load_progress_and_stop(run):
    run("load", "--path", PATH, "--submit")

    progress = run("load", "--path", PATH, "--progress")
    stop = run("load", "--path", PATH, "--stop")

    assert progress.exit_code == stop.exit_code == 0
    assert progress.output.startswith(f"Progress for loading path '{PATH}':\n\tSettings:")
    assert "\tJob State: WAITING\n" in progress.output
    assert stop.output == f"Load '{PATH}' is successfully stopped.\n"


def test_free_progress(run):
    run("free", "--path", PATH, "--submit")

    result = run("free", "--path", PATH, "--progress")

    assert result.exit_code == 0
    assert result.output.startswith(f"Progress for Free path file '{PATH}':\n\tJob Id: {last_id(run)}\n")


def test_failed_files(run):
    run("load", "--path", PATH, "--submit")

    result = run("load", "--path", PATH, "--progress", "--file-status", "FAILURE")

    assert (result.exit_code, result.output) == (0, "Failed files:\n\tnone\n")


def test_submit_with_a_batch_size(run):
    result = run("load", "--path", PATH, "--submit", "--batch-size", "2000")

    assert result.exit_code == 0
    assert result.stdout == f"Load '{PATH}' is successfully submitted. JobId: {last_id(run)}\n"


def test_a_batch_size_in_the_properties_file(run, tmp_path):
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / "alluxio-site.properties").write_text("# tuned\nalluxio.job.batch.size=2000\n")

    assert run("config", "alluxio.job.batch.size=3000").output == "alluxio.job.batch.size=3000\n"
    assert "alluxio.job.batch.size=3000" in run("config").output.splitlines()


@pytest.mark.parametrize("words", [("--path", "/data/my-dataset", "--type", "load"), ("--coordinator", "failed-host")])
def test_rerun_needs_etcd_and_says_so_as_alluxio_does(run, words):
    result = run("rerun", *words)

    assert result.exit_code == 255
    assert result.stderr == "UnavailableException: Job ETCD is not enabled\n"


# identity, duplicates, unknown jobs


def test_a_duplicate_is_no_error(run):
    run("load", "--path", PATH, "--submit")

    again = run("load", "--path", PATH.rstrip("/"), "--submit", "--verify")
    strict = run("load", "--path", PATH, "--submit", "--strict")

    assert again.exit_code == 0
    assert again.stdout == f"Load already running for path '{PATH.rstrip('/')}' \n"
    assert "not applied: verify" in again.stderr
    assert strict.exit_code == 3


def test_a_stopped_load_goes_on_under_its_id(run):
    run("load", "--path", PATH, "--submit")
    first = last_id(run)
    run("load", "--path", PATH, "--stop")

    again = run("load", "--path", PATH, "--submit", "--skip-if-exists")

    assert again.exit_code == 0
    assert again.stdout == f"Load '{PATH}' is successfully submitted. JobId: {first}\n"


def test_stopping_twice_and_stopping_nothing(run):
    run("load", "--path", PATH, "--submit")
    run("load", "--path", PATH, "--stop")

    again, never = run("load", "--path", PATH, "--stop"), run("load", "--path", "/never", "--stop", "--strict")

    text = "Cannot find load job for path {}, it might have already been stopped or finished\n"
    assert (again.exit_code, again.output) == (0, text.format(PATH))
    assert (never.exit_code, never.output) == (4, text.format("/never"))


def test_progress_of_an_unknown_job(run):
    plain, strict = run("load", "--path", "/x", "--progress"), run("load", "--path", "/x", "--progress", "--strict")

    assert (plain.exit_code, plain.output) == (254, "Load for path '/x' cannot be found.\n")
    assert strict.exit_code == 4


def test_strict_progress_tells_a_stopped_job(run):
    run("load", "--path", PATH, "--submit")
    run("load", "--path", PATH, "--stop")

    assert run("load", "--path", PATH, "--progress", "--strict").exit_code == 6


# usage


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("load", "--path", PATH), "Must have one of submit / stop / progress"),
        (("load", "--path", PATH, "--submit", "--stop"), "exclude each other"),
        (("load", "--submit"), "--path is required (or --index-file)"),
        (("copy", "--src", "a", "--submit"), "--dst is required (or --index-file)"),
        (("load", "--path", PATH, "--index-file", "f", "--submit"), "give one of them"),
        (("load", "--path", PATH, "--progress", "--file-status", "RUNNING"), "'RUNNING' is not"),
        (("load", "--path", PATH, "--submit", "--storage-option", "key"), "NAME=VALUE"),
        (("rerun",), "--coordinator"),
        (("list", "--job-type", "LOADS"), "'LOADS' is not"),
        (("config", "alluxio.job.batch.size"), "PROPERTY=VALUE"),
    ],
)
def test_usage_errors_exit_with_2(run, words, said):
    result = run(*words)

    assert result.exit_code == 2
    assert said in result.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("load", "--path", "s3://b/*.csv", "--submit"), "wildcards are not supported"),
        (("load", "--path", "s3://b", "--submit", "--replicas", "0"), "replicas: must be at least 1"),
        (("load", "--path", "s3://b", "--submit", "--batch-size", "0"), "batch_size: must be at least 1"),
        (("load", "--path", "s3://b", "--submit", "--bandwidth", "0"), "bandwidth: must be at least 1"),
        (("load", "--path", "s3://b", "--submit", "--bandwidth", "fast"), "'fast' is not a size"),
        (("load", "--path", "s3://b", "--submit", "--file-filter-regx", "("), "no regular expression"),
        (("load", "--path", "/", "--submit"), "everything on this machine"),
        (("load", "--path", " ", "--submit"), "is empty"),
        (("copy", "--src", "/a", "--dst", "/a/", "--submit"), "is the source"),
    ],
)
def test_what_is_refused_is_said_and_nothing_is_written(run, words, said):
    result = run(*words)

    assert result.exit_code == 255
    assert result.stderr.startswith("Failed to submit ")
    assert said in result.stderr
    assert json.loads(run("list", "--format", "JSON").output) == []


def test_an_escaped_path_may_hold_a_star(run):
    assert run("load", "--path", "s3://b/*.csv", "--submit", "--escape").exit_code == 0


def test_unknown_properties_are_refused(run):
    result = run("config", "alluxio.job.batch.sise=1")

    assert result.exit_code == 255
    assert "alluxio.job.batch.sise: is not a property" in result.stderr


# what else there is


def test_copy_and_move_are_addressed_by_source_and_target(run):
    for verb in ("copy", "move"):
        submitted = run(verb, "--src", "/a", "--dst", "/b", "--submit", "--check-content")
        progress = run(verb, "--src", "/a", "--dst", "/b", "--progress")

        assert submitted.exit_code == progress.exit_code == 0
        assert '\tSettings: "check-content: true"' in progress.output
    assert [row["Path"] for row in json.loads(run("list", "--format", "JSON").output)] == ["file:///a:file:///b"] * 2


def test_an_index_file_takes_the_place_of_the_path(run, tmp_path):
    index = tmp_path / "paths.txt"
    index.write_text("s3://b/x\ns3://b/y\n")

    submitted = run("load", "--index-file", str(index), "--submit")
    progress = run("load", "--index-file", str(index), "--progress")

    assert submitted.exit_code == progress.exit_code == 0
    assert f"Progress for loading path '{index}':" in progress.output


def test_lists_are_filtered_and_paged(run):
    for name in "abc":
        run("load", "--path", f"s3://b/{name}", "--submit")
    run("free", "--path", "s3://b/a", "--submit")
    run("load", "--path", "s3://b/c", "--stop")

    def paths(*words):
        return [row["Path"] for row in json.loads(run("list", "--format", "JSON", *words).output)]

    assert paths("--job-type", "load") == ["s3://b/c", "s3://b/b", "s3://b/a"]
    assert paths("--job-state", "STOPPED") == ["s3://b/c"]
    assert paths("--limit", "1") == ["s3://b/a"]
    assert paths("--coordinator", "nobody") == []
    assert paths("--after", last_id(run)) == ["s3://b/c", "s3://b/b", "s3://b/a"]


def test_secrets_are_neither_printed_nor_on_the_disk(run, tmp_path):
    run("load", "--path", PATH, "--submit", "--storage-option", "secret=hunter2horse")

    shown = run("load", "--path", PATH, "--progress", "--verbose").output + run("list").output
    written = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())

    assert "hunter2horse" not in shown
    assert b"hunter2horse" not in written
    assert (tmp_path / "cache" / "key").stat().st_mode & 0o777 == 0o600


def test_a_service_that_does_not_answer_exits_with_255(run):
    result = CliRunner().invoke(main, ["cache", "--cache", "alluxio://127.0.0.1:1", "list"])

    assert result.exit_code == 255
    assert "cannot be reached" in result.stderr


@pytest.mark.parametrize("url", ["etcd://", "http://x", "alluxio://a,b", "alluxio://host:99999999"])
def test_a_wrong_cache_url_says_what_to_write(url):
    result = CliRunner().invoke(main, ["cache", "--cache", url, "list"])

    assert result.exit_code == 255
    assert "://host:" in result.stderr or "is no host:port" in result.stderr or "name one coordinator" in result.stderr
