"""The verbs of ``%cache``: Alluxio's commands with its option names, on the notebook's cluster."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from IPython.core.error import UsageError

from vcnb.errors import InvalidObject, NotFound, Problem, WaitTimeout
from vcnb.notebook.arguments import Parser, add_quietness, key_values
from vcnb.notebook.current import current
from vcnb.notebook.following import say
from vcnb.notebook.frontend import front_end, widgets_wanted
from vcnb.notebook.silence import silence

if TYPE_CHECKING:
    from vcnb.client.cache.handle import CacheHandle

__all__ = ["VERBS", "parser_of"]

_TYPES: Final = ("load", "free", "copy", "move")
_STATES: Final = ("WAITING", "RUNNING", "VERIFYING", "STOPPED", "SUCCEEDED", "FAILED", "ALL")

_ABOUT: Final[Mapping[str, str]] = {
    "load": "Load a directory or file, with all below it, into the cache.",
    "free": "Take a directory or file out of the cache; the source is not touched.",
    "copy": "Copy a directory or file to another place.",
    "move": "Move a directory or file: copy it, then delete the source.",
    "list": "The jobs of the last seven days, newest first.",
    "progress": "How far a job is.",
    "stop": "Stop a job; what is done stays, and submitting it again goes on.",
    "rerun": "Put stuck jobs back into the queue (only with a shared job store, etcd).",
    "coverage": "The share of a dataset that is cached in the version the source has.",
    "config": "Show or change properties of the Job Service, by Alluxio's names.",
}

_EXAMPLES: Final[Mapping[str, str]] = {
    "load": "%cache load s3://bucket/data/ --replicas 2 --skip-if-exists\n%cache load --path /data/set --verify --out job",
    "free": "%cache free s3://bucket/data/",
    "copy": "%cache copy s3://bucket/data/ /data/copy --check-content",
    "move": "%cache move /data/new s3://bucket/archive/",
    "progress": "%cache progress s3://bucket/data/\n%cache progress /data/set --type free --file-status FAILURE",
    "rerun": "%cache rerun --path /data/set --type load\n%cache rerun --coordinator host-3",
}


def parser_of(verb: str) -> Parser:
    """The parser of a verb; its help has examples."""
    examples = _EXAMPLES.get(verb)
    parser = Parser(f"%cache {verb}", _ABOUT[verb], f"examples:\n{examples}" if examples else "")
    _ADD.get(verb, _add_nothing)(parser)
    add_quietness(parser)
    return parser


def _add_nothing(_: Parser) -> None:
    """A verb without options of its own."""


def _add_places(parser: Parser, verb: str) -> None:
    add = parser.add_argument
    if verb in {"load", "free"}:
        add("place", nargs="?", metavar="PATH", help="a URL (s3://bucket/data) or a local path")
        add("--path", metavar="P", help="the same, as Alluxio has it")
    else:
        add("places", nargs="*", metavar="SRC DST", help="source and target: URLs or local paths")
        add("--src", metavar="S", help="the source, as Alluxio has it")
        add("--dst", metavar="D", help="the target, as Alluxio has it")
    add("--index-file", metavar="F", help="a file that names the paths, one a line (copy, move: src TAB dst)")


def _add_job(verb: str) -> Callable[[Parser], None]:
    def add_to(parser: Parser) -> None:
        add = parser.add_argument
        _add_places(parser, verb)
        operation = parser.add_mutually_exclusive_group()
        operation.add_argument("--submit", action="store_true", help="submit the job (what is done without a word)")
        operation.add_argument("--progress", action="store_true", help="how far the job is")
        operation.add_argument("--stop", action="store_true", help="stop the job")
        add("--batch-size", type=int, metavar="N", help="files of a batch (free: files per second and worker)")
        if verb == "load":
            add("--replicas", type=int, metavar="N", help="cached copies (1)")
            add("--skip-if-exists", action="store_true", help="skip what is cached in the source's version")
            add("--metadata-only", action="store_true", help="load only the files' metadata")
        if verb == "free":
            add("--force", action="store_true", help="pinned files, too, and although some workers are offline")
        else:
            add("--verify", action="store_true", help="afterwards look at every file, and reload what is missing")
            add("--partial-listing", action="store_true", help="begin before the directory is listed")
            add("--bandwidth", metavar="B", help="bytes per second and worker, e.g. 100MB")
            add("--file-filter-regx", metavar="RE", help="only files whose whole base name matches")
        if verb in {"copy", "move"}:
            add("--check-content", action="store_true", help="compare source and target after copying")
            add("--overwrite", action="store_true", help="replace targets that exist")
        add("--max-failed-files", type=int, metavar="N", help="so many failed files still make SUCCEEDED")
        add("--storage-option", action="append", default=[], metavar="K=V", help="an option of fsspec for the source")
        add("--escape", action="store_true", help="the path really holds * or ?")
        _add_report(parser)
        waiting = parser.add_mutually_exclusive_group()
        waiting.add_argument("--wait", action="store_true", help="wait for the end (default without a live front end)")
        waiting.add_argument("--no-wait", action="store_true", help="return at once")
        add("--timeout", type=float, metavar="S", help="stop waiting after this many seconds; the job goes on")
        add("--out", "-o", metavar="VAR", help="also keep the handle in this variable")

    return add_to


def _add_report(parser: Parser) -> None:
    parser.add_argument("--format", type=str.upper, choices=("TEXT", "JSON"), help="Alluxio's report as text or JSON")
    parser.add_argument("--verbose", action="store_true", help="in the report: failed files with their reasons")
    parser.add_argument("--file-status", type=str.upper, choices=("FAILURE",), help="the failed files, as a table")


def _add_address(parser: Parser) -> None:
    add = parser.add_argument
    add("place", nargs="?", metavar="PATH", help="the path of the job; of a copy or move its source")
    add("target", nargs="?", metavar="DST", help="the target of a copy or move")
    add("--path", metavar="P", help="the same as PATH")
    add("--type", type=str.lower, choices=_TYPES, default="load", help="which kind of job (load)")
    add("--id", metavar="ID", help="the job with this id")


def _add_progress(parser: Parser) -> None:
    _add_address(parser)
    _add_report(parser)


def _add_list(parser: Parser) -> None:
    add = parser.add_argument
    add("--job-type", type=str.upper, choices=("LOAD", "FREE", "COPY", "MOVE", "ALL"), default="ALL")
    add("--job-state", type=str.upper, choices=_STATES, default="ALL")
    add("--coordinator", default="", metavar="A", help="only jobs of this coordinator")
    add("--limit", type=int, default=1000, metavar="N", help="at most so many (1000)")
    add("--after", default="", metavar="ID", help="go on after the job with this id")


def _add_rerun(parser: Parser) -> None:
    add = parser.add_argument
    add("place", nargs="?", metavar="PATH", help="the path of one stuck job")
    add("--path", metavar="P", help="the same as PATH")
    add("--type", type=str.lower, choices=_TYPES, default="load", help="which kind of job (load)")
    add("--id", default="", metavar="ID", help="the id of one stuck job")
    add("--coordinator", default="", metavar="HOST", help="every job of a coordinator that failed")


def _add_coverage(parser: Parser) -> None:
    parser.add_argument("place", metavar="PATH", help="a URL or a local path")
    parser.add_argument("--storage-option", action="append", default=[], metavar="K=V", help="an option of fsspec")


def _add_config(parser: Parser) -> None:
    parser.add_argument("settings", nargs="*", metavar="PROPERTY=VALUE", help="what to change; nothing shows all")


_ADD: Final[Mapping[str, Callable[[Parser], None]]] = {
    **{verb: _add_job(verb) for verb in _TYPES},
    "list": _add_list,
    "progress": _add_progress,
    "stop": _add_address,
    "rerun": _add_rerun,
    "coverage": _add_coverage,
    "config": _add_config,
}


# -- what the verbs do


def _job(verb: str) -> Callable[[Any, Sequence[str]], Any]:
    def run(shell: Any, words: Sequence[str]) -> Any:
        options = parser_of(verb).parse_args(words)
        places = _places(verb, options)
        if options.progress or options.stop:
            return _look_or_stop(verb, places, options)
        return _submit(shell, verb, places, options)

    return run


def _look_or_stop(verb: str, places: Mapping[str, str], options: argparse.Namespace) -> Any:
    try:
        job = _found(verb, places, options.index_file)
    except NotFound:
        if not options.stop:
            raise
        return say(_gone(verb, options.index_file or ":".join(places.values())), options)
    return _report(job, options) if options.progress else _stopped(job, options)


def _places(verb: str, options: argparse.Namespace) -> dict[str, str]:
    """The places that were named, one way or the other."""
    if verb in {"load", "free"}:
        given = {"path": _one(options.place, options.path, "--path")}
    else:
        pair = [*options.places, None, None]
        if len(options.places) > 2:
            raise UsageError(f"%cache {verb}: name a source and a target, not {len(options.places)} places")
        given = {"src": _one(pair[0], options.src, "--src"), "dst": _one(pair[1], options.dst, "--dst")}
    places = {name: place for name, place in given.items() if place is not None}
    if not options.index_file and len(places) < len(given):
        missing = next(name for name in given if name not in places)
        raise UsageError(f"%cache {verb}: {missing} is required (or --index-file); %cache {verb} -h shows all options")
    return places


def _one(word: str | None, option: str | None, name: str) -> str | None:
    if word is not None and option is not None:
        raise UsageError(f"{word!r} and {name} {option!r}: name it once")
    return word if word is not None else option


def _submit(shell: Any, verb: str, places: Mapping[str, str], options: argparse.Namespace) -> Any:
    from vcnb.cache.jobs.options import job_options
    from vcnb.cache.protocol import JobType

    kind = JobType(verb.upper())
    asked = {
        name: getattr(options, name)
        for name in ("batch_size", "replicas", "max_failed_files", "bandwidth", "file_filter_regx", "index_file")
        if getattr(options, name, None) is not None
    }
    flags = ("skip_if_exists", "verify", "metadata_only", "partial_listing", "force", "check_content", "overwrite")
    asked |= {name: True for name in flags if getattr(options, name, False)}
    storage = key_values(options.storage_option, "--storage-option")
    job_options(kind, asked)  # a mistake is told before anything is started
    if storage:
        asked["storage_options"] = storage
    cache = current().cache
    job: CacheHandle = cache._bridge.run(  # noqa: SLF001 - the magic is a part of the client
        cache._submit(kind, places, asked, escape=options.escape)  # noqa: SLF001
    )
    if options.out:
        shell.user_ns[options.out] = job
    for warning in job.warnings:
        say(f"warning: {warning}", options)
    live = front_end(shell) == "live" and not options.quiet
    if live:
        _show(job)
    if options.wait or (not options.no_wait and not live):
        _follow(job, options, live=live)
    return silence(shell, job) if options.quiet or live else job


def _show(job: CacheHandle) -> None:
    import IPython.display

    display: Callable[..., Any] = IPython.display.display
    display(job.view() if widgets_wanted() else job)


def _follow(job: CacheHandle, options: argparse.Namespace, *, live: bool) -> None:
    from vcnb.client.cache.following import progress_lines

    try:
        if not live and not options.quiet:
            for text in progress_lines(job, options.timeout):
                print(text, flush=True)  # noqa: T201 - the front end shows nothing else
        job.wait(timeout=options.timeout, check=not options.no_raise)
    except WaitTimeout as error:
        if not options.no_raise:
            raise
        say(f"WaitTimeout: {error}", options)


def _found(verb: str, places: Mapping[str, str], index_file: str | None = None) -> CacheHandle:
    cache = current().cache
    if index_file:
        return cache.job(verb, index_file=index_file)
    return cache.job(verb, places.get("path") or places.get("src"), places.get("dst"))


def _report(job: CacheHandle, options: argparse.Namespace) -> Any:
    """The job itself, or what Alluxio prints of it."""
    from vcnb.cache.report import header, json_report, text_report

    if options.file_status:
        return job.failures()
    if options.format is None:
        return job
    progress, facts = job.progress(), job.facts
    files = job.failures() if options.verbose and progress.failed_files else ()
    if options.format == "JSON":
        print(json_report(facts, progress, files, verbose=options.verbose))  # noqa: T201 - what was asked for
    else:
        print(header(facts, job.path))  # noqa: T201 - as above
        print(text_report(facts, progress, files, verbose=options.verbose))  # noqa: T201 - as above
    return None


def _stopped(job: CacheHandle, options: argparse.Namespace) -> None:
    if job.stop():
        say(f"{job.type.capitalize()} '{job.path}' is successfully stopped.", options)
    else:
        say(_gone(job.type.lower(), job.path), options)


def _gone(verb: str, path: str) -> str:
    return f"Cannot find {verb} job for path {path}, it might have already been stopped or finished"


def _addressed(verb: str, options: argparse.Namespace) -> CacheHandle:
    place = _one(options.place, options.path, "--path")
    if (place is None) == (options.id is None):
        raise UsageError(f"%cache {verb}: name a job by its path or by --id")
    cache = current().cache
    if options.id is not None:
        from vcnb.client.cache.handle import CacheHandle

        access = cache._bridge.run(cache._access())  # noqa: SLF001
        return CacheHandle(current(), cache._bridge.run(access.facts(options.id)))  # noqa: SLF001
    if options.type in {"copy", "move"} and options.target is None:
        raise InvalidObject([Problem("DST", None, f"is required to name a {options.type}")], f"%cache {verb}")
    return cache.job(options.type, place, options.target)


def _progress(_shell: Any, words: Sequence[str]) -> Any:
    options = parser_of("progress").parse_args(words)
    return _report(_addressed("progress", options), options)


def _stop(_shell: Any, words: Sequence[str]) -> None:
    options = parser_of("stop").parse_args(words)
    try:
        _stopped(_addressed("stop", options), options)
    except NotFound:
        say(_gone(options.type, str(options.place or options.path or options.id)), options)


def _list(_shell: Any, words: Sequence[str]) -> Any:
    options = parser_of("list").parse_args(words)
    return current().cache.list(
        options.job_type,
        options.job_state,
        coordinator=options.coordinator,
        limit=options.limit,
        after=options.after,
    )


def _rerun(_shell: Any, words: Sequence[str]) -> Any:
    options = parser_of("rerun").parse_args(words)
    place = _one(options.place, options.path, "--path")
    if sum(map(bool, (place, options.id, options.coordinator))) != 1:
        raise UsageError("%cache rerun: name a path (with --type), --id, or --coordinator")
    return current().cache.rerun(place, type=options.type, id=options.id, coordinator=options.coordinator)


def _coverage(_shell: Any, words: Sequence[str]) -> float:
    options = parser_of("coverage").parse_args(words)
    storage = key_values(options.storage_option, "--storage-option")
    share: float = current().cache.coverage(options.place, storage_options=storage or None)
    say(f"{share:.1%} cached", options)
    return share


def _config(_shell: Any, words: Sequence[str]) -> Any:
    options = parser_of("config").parse_args(words)
    config = current().cache.config
    if options.settings:
        changed = key_values(options.settings, "%cache config")
        config.set(changed)
        for name in changed:
            say(f"{name}={config[name]}", options)
        return None
    return config


VERBS: dict[str, Callable[[Any, Sequence[str]], Any]] = {
    **{verb: _job(verb) for verb in _TYPES},
    "list": _list,
    "progress": _progress,
    "stop": _stop,
    "rerun": _rerun,
    "coverage": _coverage,
    "config": _config,
}
