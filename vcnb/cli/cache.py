"""``vcnb cache ...``: Alluxio's ``job`` commands, with its option names, what it prints, and its exit codes.

0 done (also: already running, nothing to stop), 255 the service refused or did not answer, 254 progress of a job that is not
known, 2 usage. With ``--strict``: 0 created or resumed, 3 exists already, 4 not known, 5 FAILED, 6 STOPPED.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import Any, Final, ParamSpec, TypeVar

import click

from vcnb.errors import NotFound, VcnbError

__all__ = ["cache"]

P = ParamSpec("P")
R = TypeVar("R")

REFUSED: Final = 255
UNKNOWN: Final = 254
STRICT: Final[Mapping[str, int]] = {"already_exists": 3, "not found": 4, "FAILED": 5, "STOPPED": 6}

_SAID: Final[Mapping[str, tuple[str, str]]] = {
    "LOAD": ("Load", "load"),
    "FREE": ("Free", "free"),
    "COPY": ("Copy", "copy"),
    "MOVE": ("Move", "move"),
}


@click.group()
@click.option(
    "--cache",
    "place",
    metavar="URL",
    envvar="VCNB_CACHE",
    help="another Job Service: etcd://host:port (shared job store), alluxio://host:19999 (a real Alluxio)",
)
def cache(place: str | None) -> None:
    """Load datasets into the cache, free, copy and move them: the commands of `alluxio job`.

    Without --cache (or VCNB_CACHE) the jobs are those of the cluster. A process of its own works on what was submitted; it
    leaves the jobs to a notebook that opens the cluster.

    Exit codes are Alluxio's: 0 done, 254 progress of a job that is not known, 255 refused or no answer; 2 for a wrong option.
    """


@contextmanager
def _opened(*, work: bool = False, look: bool = False, patience: float = 0.0) -> Iterator[Any]:
    """The cluster's cache; without ``work`` nothing is begun, and with ``look`` nothing can be changed."""
    from vcnb.client.cache import background
    from vcnb.client.connect import connect

    context = click.get_current_context()
    root, group = context.find_root(), context.parent
    place = group.params.get("place") if group is not None else None
    if place:
        cluster = connect("memory://", controllers="off", cache=place)
    else:
        url = root.params.get("cluster")
        cluster = _look(url) if look else _own(url, look=not work, patience=patience)
    with contextlib.ExitStack() as ends:
        if not place and not look:
            ends.callback(background.go_on, root.params.get("cluster"))
        ends.enter_context(cluster)
        cluster.cache._works = work  # noqa: SLF001 - a command looks, and starts nothing unless it waits
        yield cluster.cache


def _directory(url: str | None) -> Path:
    from vcnb.client.url import DEFAULT_URL, parse_url

    return parse_url(url or os.environ.get("VCNB_CLUSTER") or DEFAULT_URL).directory


def _go_on(opened: Any) -> None:
    """Have unfinished jobs of an own cluster worked on when this command has ended."""
    from vcnb.client.cache import background

    own = opened._host.embedded  # noqa: SLF001 - the command is a part of the client
    directory = opened._host.directory  # noqa: SLF001
    if own is None or directory is None or own.store.shared or not background.wanted():
        return
    if any(opened.list(state=state, limit=1) for state in ("WAITING", "RUNNING", "VERIFYING")):
        background.interrupted.add(directory.parent)  # begun when this command has closed the cluster
        own.remember_activity()


def _own(url: str | None, *, look: bool, patience: float = 0.0) -> Any:
    """The cluster of a URL, or (``look``) its jobs as they are, without taking the cluster from whoever has it.

    ``patience``: seconds to try again while another process has it.
    """
    from vcnb.client.connect import connect
    from vcnb.errors import ClusterBusy

    end = time.monotonic() + patience
    while True:
        try:
            return connect(url, controllers="off")
        except ClusterBusy as busy:
            if look:
                return _seen(url, busy.pid)
            if time.monotonic() >= end:
                raise
        time.sleep(0.1)


def _seen(url: str | None, owner: int | None = None) -> Any:
    """A cluster that shows the jobs of another one's cache. Raises StoreUnavailable when there are none."""
    from vcnb.client.connect import connect

    cluster = connect("memory://", controllers="off")
    try:
        cluster._bridge.run(cluster._engine.cache.look_at(_directory(url), owner))  # noqa: SLF001 - a part of the client
    except BaseException:
        cluster.close()
        raise
    return cluster


def _look(url: str | None) -> Any:
    """As ``_own`` to look; what is on the disk is enough, so that nobody has to give way for that."""
    from vcnb.cache.errors import StoreUnavailable

    if not (url or os.environ.get("VCNB_CLUSTER") or "embedded://").startswith("embedded://"):
        return _own(url, look=False)
    try:
        return _seen(url)
    except StoreUnavailable:  # there are no jobs yet, or they are being written just now
        return _own(url, look=True)


def _exits(command: Callable[P, int | None]) -> Callable[P, None]:
    """The command's result is the exit code; an error of vcnb is one line, and 255."""

    @wraps(command)
    def guarded(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            code = command(*args, **kwargs)
        except VcnbError as error:
            click.echo(str(error), err=True)
            code = REFUSED
        if code:
            sys.exit(code)

    return guarded


def _operation(submit: bool, progress: bool, stop: bool) -> str:
    chosen = [name for name, given in (("submit", submit), ("progress", progress), ("stop", stop)) if given]
    if not chosen:
        raise click.UsageError("Must have one of submit / stop / progress: --submit, --progress or --stop")
    if len(chosen) > 1:
        raise click.UsageError(f"--{chosen[0]} and --{chosen[1]} exclude each other; give one operation")
    return chosen[0]


def _options(*decorators: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def apply(command: Any) -> Any:
        for decorator in reversed(decorators):
            command = decorator(command)
        return command

    return apply


_operations = _options(
    click.option("--submit", is_flag=True, help="submit the job; it runs in the background"),
    click.option("--progress", is_flag=True, help="how far the job is"),
    click.option("--stop", is_flag=True, help="stop the job; what is done stays"),
    click.option(
        "--index-file", metavar="F", help="a file that names the paths, one a line (src TAB dst for copy, move)"
    ),
    click.option("--batch-size", type=int, metavar="N", help="files of a batch (free: files per second and worker)"),
    click.option("--format", "shown", type=click.Choice(["TEXT", "JSON"], case_sensitive=False), default="TEXT"),
    click.option("--verbose", is_flag=True, help="with --progress: failed files with their reasons"),
    click.option(
        "--file-status",
        type=click.Choice(["FAILURE"], case_sensitive=False),
        help="with --progress: list the failed files",
    ),
    click.option(
        "--limit", type=click.IntRange(1), default=1000, show_default=True, help="files that --file-status lists"
    ),
    click.option("--skip", type=click.IntRange(0), default=0, help="files that --file-status passes over"),
    click.option("--escape", is_flag=True, help="the path really holds * or ?"),
    click.option("--wait", is_flag=True, help="with --submit: until the job has ended, with its progress"),
    click.option("--timeout", type=float, metavar="S", help="with --wait: stop waiting after so many seconds"),
    click.option(
        "--strict", is_flag=True, help="other exit codes: 3 exists already, 4 not known, 5 FAILED, 6 STOPPED, 1 refused"
    ),
    click.option(
        "--storage-option", "storage", multiple=True, metavar="K=V", help="an option of fsspec for the source"
    ),
)

_path = click.option("--path", metavar="P", help="the source: s3://bucket/data, /data/set; directories with all below")
_src = click.option("--src", metavar="S", help="the source")
_dst = click.option("--dst", metavar="D", help="the target")


@cache.command()
@_path
@_operations
@click.option("--replicas", type=int, metavar="N", help="cached copies (default: 1)")
@click.option("--skip-if-exists", is_flag=True, help="skip what is cached in the source's version")
@click.option("--verify", is_flag=True, help="afterwards look at every file, and reload what is not fully cached")
@click.option("--partial-listing", is_flag=True, help="begin before the directory is listed; no totals until then")
@click.option("--metadata-only", is_flag=True, help="load only the files' metadata")
@click.option("--bandwidth", metavar="B", help="bytes per second and worker, e.g. 100MB")
@click.option("--file-filter-regx", metavar="RE", help="only files whose whole base name matches")
@click.option("--max-failed-files", type=int, metavar="N", help="so many failed files still make SUCCEEDED")
@_exits
def load(path: str | None, **given: Any) -> int:
    """Load a directory or file into the cache."""
    return _run("LOAD", {"path": path}, given)


@cache.command()
@_path
@_operations
@click.option("--force", is_flag=True, help="pinned files, too, and although some workers are offline")
@_exits
def free(path: str | None, **given: Any) -> int:
    """Take a directory or file out of the cache; the source is not touched."""
    return _run("FREE", {"path": path}, given)


def _transfer(type: str, text: str) -> click.Command:
    @click.command(name=type.lower(), help=text)
    @_src
    @_dst
    @_operations
    @click.option("--check-content", is_flag=True, help="compare source and target after copying")
    @click.option("--partial-listing", is_flag=True, help="begin before the directory is listed")
    @click.option("--overwrite", is_flag=True, help="replace targets that exist")
    @click.option("--bandwidth", metavar="B", help="bytes per second and worker, e.g. 100MB")
    @click.option("--verify", is_flag=True, help="look at every file again afterwards")
    @_exits
    def command(src: str | None, dst: str | None, **given: Any) -> int:
        return _run(type, {"src": src, "dst": dst}, given)

    return command


cache.add_command(_transfer("COPY", "Copy a directory or file to another place."))
cache.add_command(_transfer("MOVE", "Move a directory or file: copy it, then delete the source."))

_JOB_OPTIONS: Final = (
    "index_file",
    "batch_size",
    "replicas",
    "skip_if_exists",
    "verify",
    "partial_listing",
    "metadata_only",
    "bandwidth",
    "file_filter_regx",
    "max_failed_files",
    "force",
    "check_content",
    "overwrite",
)


def _run(type: str, places: Mapping[str, str | None], given: Mapping[str, Any]) -> int:
    operation = _operation(given["submit"], given["progress"], given["stop"])
    named = {name: place for name, place in places.items() if place is not None}
    if not given["index_file"] and len(named) < len(places):
        missing = next(name for name in places if name not in named)
        raise click.UsageError(f"--{missing} is required (or --index-file)")
    if given["index_file"] and named:
        raise click.UsageError(f"--index-file takes the place of --{next(iter(named))}; give one of them")
    shown = given["index_file"] or ":".join(named.values())
    if operation == "submit":
        return _submit(type, named, given, shown)
    with _opened(look=operation == "progress") as opened:
        if operation == "stop":
            code = _stop(opened, type, named, given, shown)
            _go_on(opened)
            return code
        return _progress(opened, type, named, given, shown)


def _storage(pairs: Sequence[str]) -> dict[str, str] | None:
    found = dict(pair.partition("=")[::2] for pair in pairs)
    if any(not name or "=" not in pair for name, pair in zip(found, pairs, strict=False)):
        raise click.UsageError("--storage-option: write NAME=VALUE")
    return found or None


def _submit(type: str, places: Mapping[str, str], given: Mapping[str, Any], shown: str) -> int:
    from vcnb.cache.protocol import JobType

    options = {name: given.get(name) or None for name in _JOB_OPTIONS if name in given}
    for name in ("batch_size", "replicas", "max_failed_files"):  # a zero is refused, not taken for "not given"
        if given.get(name) is not None:
            options[name] = given[name]
    options["storage_options"] = _storage(given["storage"])
    title, noun = _SAID[type]
    with _opened(work=given["wait"]) as opened:
        try:
            job = opened._bridge.run(  # noqa: SLF001 - the command is a part of the client
                opened._submit(JobType(type), places, options, escape=given["escape"])  # noqa: SLF001
            )
        except VcnbError as error:
            click.echo(f"Failed to submit {noun} job {shown}: {error}", err=True)
            return 1 if given["strict"] else REFUSED
        exists = job.outcome == "already_exists"
        if exists:
            click.echo(f"{title} already running for path '{shown}' ")
        else:
            click.echo(f"{title} '{shown}' is successfully submitted. JobId: {job.id}")
        for warning in job.warnings:
            click.echo(f"warning: {warning}", err=True)
        if given["wait"]:
            return _wait(job, given)
        _go_on(opened)
        return STRICT["already_exists"] if exists and given["strict"] else 0


def _wait(job: Any, given: Mapping[str, Any]) -> int:
    from vcnb.client.cache.following import progress_lines

    for line in progress_lines(job, given["timeout"]):
        click.echo(line)
    state = job.state
    if state == "SUCCEEDED":
        return 0
    click.echo(job.why(), err=True)
    return STRICT.get(state, 1) if given["strict"] else 1


def _found(opened: Any, type: str, places: Mapping[str, str], given: Mapping[str, Any]) -> Any:
    if given["index_file"]:
        return opened.job(type, index_file=given["index_file"])
    return opened.job(type, places.get("path") or places.get("src"), places.get("dst"))


def _stop(opened: Any, type: str, places: Mapping[str, str], given: Mapping[str, Any], shown: str) -> int:
    title, noun = _SAID[type]
    try:
        stopped = _found(opened, type, places, given).stop()
    except NotFound:
        stopped = False
    except VcnbError as error:
        click.echo(f"Failed to stop {noun} job {shown}: {error}", err=True)
        return 1 if given["strict"] else REFUSED
    if stopped:
        click.echo(f"{title} '{shown}' is successfully stopped.")
        return 0
    click.echo(f"Cannot find {noun} job for path {shown}, it might have already been stopped or finished")
    return STRICT["not found"] if given["strict"] else 0


def _progress(opened: Any, type: str, places: Mapping[str, str], given: Mapping[str, Any], shown: str) -> int:
    from vcnb.cache.report import failures_json, failures_text, header, json_report, text_report

    title, noun = _SAID[type]
    as_json = given["shown"].upper() == "JSON"
    try:
        job = _found(opened, type, places, given)
        progress, facts = job.progress(), job.facts
        if given["file_status"]:
            files = job.failures(limit=given["skip"] + given["limit"])[given["skip"] :]
            click.echo(failures_json(files) if as_json else failures_text(files))
        else:
            files = job.failures() if given["verbose"] and progress.failed_files else ()
            if as_json:
                click.echo(json_report(facts, progress, files, verbose=given["verbose"]))
            else:
                click.echo(header(facts, shown))
                click.echo(text_report(facts, progress, files, verbose=given["verbose"]))
    except NotFound:
        click.echo(f"{title} for path '{shown}' cannot be found.")
        return STRICT["not found"] if given["strict"] else UNKNOWN
    except VcnbError as error:
        click.echo(f"Failed to get progress for {noun} job {shown}: {error}", err=True)
        return 1 if given["strict"] else REFUSED
    return STRICT.get(facts.state, 0) if given["strict"] else 0


_TYPES: Final = ("LOAD", "FREE", "COPY", "MOVE", "ALL")
_STATES: Final = ("WAITING", "RUNNING", "VERIFYING", "STOPPED", "SUCCEEDED", "FAILED", "ALL")


@cache.command(name="list")
@click.option("--job-type", type=click.Choice(_TYPES, case_sensitive=False), default="ALL", show_default=True)
@click.option("--job-state", type=click.Choice(_STATES, case_sensitive=False), default="ALL", show_default=True)
@click.option("--coordinator", metavar="A", default="", help="only jobs of this coordinator")
@click.option("--format", "shown", type=click.Choice(["TEXT", "JSON"], case_sensitive=False), default="TEXT")
@click.option("--limit", type=click.IntRange(1), default=1000, show_default=True, help="at most so many")
@click.option("--after", metavar="ID", default="", help="go on after the job with this id")
@_exits
def list_jobs(job_type: str, job_state: str, coordinator: str, shown: str, limit: int, after: str) -> None:
    """The jobs of the last seven days, newest first."""
    from vcnb.scene.cache import COLUMNS, jobs_rows
    from vcnb.scene.tables import text_table

    with _opened(look=True) as opened:
        jobs = opened.list(job_type, job_state, coordinator=coordinator, limit=limit, after=after)
        rows = jobs_rows(jobs._jobs)  # noqa: SLF001 - the table's own rows
    if shown.upper() == "JSON":
        click.echo(json.dumps([dict(zip(COLUMNS, row, strict=True)) for row in rows], ensure_ascii=False))
    else:
        click.echo(_titles(text_table(COLUMNS, rows), COLUMNS))


def _titles(table: str, columns: Sequence[str]) -> str:
    """The table with its column names spelled as they are."""
    head, newline, rest = table.partition("\n")
    for name in columns:
        head = head.replace(name.upper(), name, 1)
    return f"{head}{newline}{rest}"


@cache.command()
@click.option("--path", metavar="P", help="the path of one stuck job")
@click.option("--type", "kind", type=click.Choice(_TYPES[:-1], case_sensitive=False), default="LOAD", show_default=True)
@click.option("--id", "uuid", metavar="ID", default="", help="the id of one stuck job")
@click.option("--coordinator", metavar="HOST", default="", help="every job of a coordinator that failed")
@_exits
def rerun(path: str | None, kind: str, uuid: str, coordinator: str) -> int:
    """Put stuck jobs back into the queue. Only with a shared job store (etcd)."""
    if sum(map(bool, (path, uuid, coordinator))) != 1:
        raise click.UsageError("name --path (with --type), --id, or --coordinator")
    with _opened() as opened:
        jobs = opened.rerun(path, type=kind, id=uuid, coordinator=coordinator)
    for job in jobs:
        click.echo(f"{job.facts.id} {job.facts.type.lower()} {job.facts.path} {job.outcome}")
    return 0 if any(job.outcome == "requeued" for job in jobs) else 1


@cache.command()
@_exits
def work() -> None:
    """Work on the jobs of this cluster's cache until none is unfinished: what --submit starts in the background."""
    import signal
    import threading

    from vcnb.client.cache.background import announced

    ended = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: ended.set())
    url = click.get_current_context().find_root().params.get("cluster")
    with announced(_directory(url)), _opened(work=True, patience=10.0) as opened:
        while not ended.is_set() and any(opened.list(state=state, limit=1) for state in _STATES[:3]):
            ended.wait(0.5)


@cache.command()
@click.argument("path")
@click.option("--storage-option", "storage", multiple=True, metavar="K=V", help="an option of fsspec for the source")
@_exits
def coverage(path: str, storage: Sequence[str]) -> None:
    """The share of a dataset that is cached in the version the source has."""
    with _opened(work=True) as opened:
        click.echo(f"{opened.coverage(path, storage_options=_storage(storage)):.2%}")


@cache.command()
@click.argument("settings", nargs=-1, metavar="[PROPERTY=VALUE]...")
@_exits
def config(settings: Sequence[str]) -> None:
    """Show or change properties of the Job Service, by Alluxio's names."""
    wrong = [pair for pair in settings if "=" not in pair]
    if wrong:
        raise click.UsageError(f"{wrong[0]!r}: write PROPERTY=VALUE")
    with _opened() as opened:
        if settings:
            opened.config.set(dict(pair.split("=", 1) for pair in settings))
        names = [pair.split("=", 1)[0] for pair in settings] or sorted(opened.config)
        for name in names:
            click.echo(f"{name}={opened.config[name]}")
