"""The verbs of ``%vcjob`` and the submission of a ``%%vcjob`` cell."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from IPython.core.error import UsageError

from vcnb.client.job import JobHandle
from vcnb.errors import InvalidObject, Problem
from vcnb.notebook.arguments import Parser, add_quietness, expand_body, key_values
from vcnb.notebook.cells import language_of, manifest_of
from vcnb.notebook.current import current
from vcnb.notebook.following import (
    add_cell_options,
    compared,
    delete_first,
    follow,
    in_cell,
    is_live,
    line_in_cell,
    print_manifest,
    say,
)
from vcnb.notebook.frontend import front_end
from vcnb.notebook.live import show
from vcnb.notebook.progress import report
from vcnb.notebook.silence import silence
from vcnb.resources import kinds
from vcnb.resources.manifest import dump

__all__ = ["VERBS", "add_job_options", "cell_parser", "submit_cell"]


def cell_parser() -> Parser:
    """The options of ``%%vcjob``."""
    parser = Parser("%%vcjob", "Run the cell as a gang-scheduled job: all replicas start together, or none does.")
    add = parser.add_argument
    add("name", nargs="?", help="the job's name; without one a name is made up")
    add_job_options(parser)
    add("--namespace", "-n", metavar="NS", help="the namespace (default: default)")
    add_cell_options(parser, "job")
    return parser


def add_job_options(parser: Parser) -> None:
    """The options that say what a cell's job is; a node of ``%%jobflow`` has them, too."""
    add = parser.add_argument
    add("--task", default="worker", help="the task's name (default: worker)")
    add("--replicas", type=int, default=1, metavar="N", help="how many pods run the cell (default: 1)")
    add("--min-available", type=int, metavar="N", help="how many must be able to start together (default: all)")
    add("--queue", "-q", metavar="Q", help="the queue (default: default)")
    add("--image", metavar="I", help="the container image; embedded pods use this machine's programs")
    add("--cpu", metavar="C", help="CPUs of each replica, e.g. 1 or 250m")
    add("--memory", metavar="M", help="memory of each replica, e.g. 1Gi")
    add("--env", action="append", default=[], metavar="K=V", help="an environment variable; may be repeated")
    add("--lang", choices=("python", "bash", "yaml"), help="what the cell is, when it is not told from its text")
    add("--plugin", action="append", default=[], metavar="P", help="a job plugin, e.g. svc, pytorch; may be repeated")
    add("--policy", action="append", default=[], metavar="E=A", help="e.g. PodFailed=RestartJob, 137=AbortJob:30s")
    add("--max-retry", type=int, metavar="N", help="how often the job may be restarted (default: 3)")
    add("--ttl", type=int, metavar="S", help="delete the job this many seconds after it has finished")


def submit_cell(shell: Any, words: Sequence[str], body: str) -> Any:
    """Submit the cell; shows it as the front end can, waits where that is asked for or the default."""
    options = cell_parser().parse_args(words)
    if not body.strip():
        raise UsageError("%%vcjob: the cell's body is empty; it is the script that every replica runs, or YAML")
    if options.template:
        body = expand_body(body, shell.user_ns)
    source, shift = _source(options, body)
    cluster = current()
    try:
        if options.dry_run:
            return _dry_run(cluster, source, options)
        if options.diff:
            from vcnb.client.documents import read

            return compared(shell, cluster, read(source), options)
        if options.replace:
            from vcnb.client.documents import read

            delete_first(cluster.jobs, kinds.JOB, read(source), options.namespace)
        found = cluster.submit(source, namespace=options.namespace)
    except InvalidObject as error:
        raise in_cell(error, shift) from None
    handles = found if isinstance(found, list) else [found]
    if options.out:
        shell.user_ns[options.out] = found
    for handle in handles:
        _show_warnings(handle.warnings, options, shift)
    follow_all(shell, [handle for handle in handles if isinstance(handle, JobHandle)], options)
    return silence(shell, found) if options.quiet or is_live(shell, options) else found


def _source(options: argparse.Namespace, body: str) -> tuple[Any, int | None]:
    """What is submitted, and by how many lines its text is shifted in the cell; None: it stands in the magic's line."""
    language = language_of(body, options.lang)
    if language != "yaml":
        return manifest_of(options, body, language), None
    _refuse_for_yaml(options)
    return _named_yaml(options, body), 1


def _refuse_for_yaml(options: argparse.Namespace) -> None:
    parser = Parser("")
    add_job_options(parser)
    for action in parser._actions:  # noqa: SLF001 - no public list
        if action.dest not in ("help", "lang") and getattr(options, action.dest) != action.default:
            option = max(action.option_strings, key=len)
            raise UsageError(f"%%vcjob: {option} is for a script; a cell of YAML says it in the object's spec")


def _named_yaml(options: argparse.Namespace, body: str) -> str:
    from vcnb.resources.manifest import load

    try:
        documents = load(body)
    except InvalidObject as error:
        raise in_cell(error) from None
    names = [document.object.get("metadata", {}).get("name") for document in documents]
    if options.name and names != [options.name]:
        raise UsageError(
            f"%%vcjob {options.name}: the YAML says metadata.name: {', '.join(map(str, names))}; say the name once"
        )
    return body


def _dry_run(cluster: Any, source: Any, options: argparse.Namespace) -> None:
    from vcnb.client.documents import read
    from vcnb.client.handles import exported

    checked = cluster._bridge.run(cluster._check(read(source), options.namespace))  # noqa: SLF001 - admission without storing
    print("---\n".join(dump(exported(item.object)) for item in checked), end="")  # noqa: T201 - what was asked for


def _show_warnings(warnings: Sequence[Problem], options: argparse.Namespace, shift: int | None = 0) -> None:
    for warning in warnings:
        say(f"warning: {line_in_cell(warning, shift)}", options)


def follow_all(shell: Any, handles: Sequence[JobHandle], options: argparse.Namespace) -> None:
    """Show the jobs, and wait for them unless told otherwise; raises JobFailed when one fails."""
    follow(shell, handles, options, show, report)


# -- verbs of %vcjob --------------------------------------------------------------------------------------------------


def _parser(verb: str, description: str, *, named: bool = True) -> Parser:
    parser = Parser(f"%vcjob {verb}", description)
    if named:
        parser.add_argument("name", help="the job's name")
    parser.add_argument("--namespace", "-n", metavar="NS", help="the namespace (default: default; '*': all)")
    add_quietness(parser)
    return parser


def _job(options: argparse.Namespace) -> JobHandle:
    handle: JobHandle = current().jobs.get(options.name, options.namespace)
    return handle


def _list(_shell: Any, words: Sequence[str]) -> Any:
    parser = _parser("list", "The jobs of a namespace.", named=False)
    parser.add_argument("--queue", "-q", metavar="Q", help="only those of this queue")
    parser.add_argument("--phase", metavar="P", help="only those in this phase")
    parser.add_argument("--selector", "-l", default="", metavar="L", help="only those with these labels")
    options = parser.parse_args(words)
    return current().jobs.only(options.namespace, options.selector, options.queue, options.phase)


def _get(_shell: Any, words: Sequence[str]) -> Any:
    parser = _parser("get", "One job: its phases, pods and events.")
    parser.add_argument("-o", "--output", choices=("yaml", "json"), help="the whole object instead")
    options = parser.parse_args(words)
    job = _job(options)
    if options.output is None:
        return job
    print_manifest(job, options)
    return None


def _watch(shell: Any, words: Sequence[str]) -> Any:
    parser = _parser("watch", "Show a job live until it has ended; find it again after a kernel restart.")
    parser.add_argument("--timeout", type=float, metavar="S", help="stop watching after this many seconds")
    options = parser.parse_args(words)
    options.wait, options.watch, options.no_wait = False, False, front_end(shell) == "live"
    job: Any = current().attach(options.name, options.namespace, kind="job")
    follow_all(shell, [job], options)
    return silence(shell, job) if is_live(shell, options) else job


def _logs(_shell: Any, words: Sequence[str]) -> None:
    parser = _parser("logs", "What the job's pods have written.")
    parser.add_argument("--task", metavar="T", help="only this task's pods")
    parser.add_argument("--index", type=int, metavar="N", help="only the pod with this index")
    parser.add_argument("--container", "-c", metavar="C", help="this container (default: the first)")
    parser.add_argument("--tail", type=int, metavar="N", help="only the last N lines of each pod")
    parser.add_argument("--previous", action="store_true", help="the container before its last restart")
    parser.add_argument("--follow", "-f", action="store_true", help="go on until the job has ended")
    options = parser.parse_args(words)
    job = _job(options)
    if options.follow:
        for line in job.logs(options.task, options.index, options.container, True, options.tail, options.previous):
            say(line, options)
        return
    text = job.logs(options.task, options.index, options.container, tail=options.tail, previous=options.previous)
    say(str(text).removesuffix("\n"), options)


def _describe(_shell: Any, words: Sequence[str]) -> None:
    options = _parser("describe", "Everything about a job as text.").parse_args(words)
    say(_job(options).describe(), options)


def _why(_shell: Any, words: Sequence[str]) -> None:
    options = _parser("why", "What the job waits for, or how it ended.").parse_args(words)
    say(_job(options).why(), options)


def _verb(name: str, description: str) -> Callable[[Any, Sequence[str]], Any]:
    def run(_shell: Any, words: Sequence[str]) -> Any:
        options = _parser(name, description).parse_args(words)
        job = _job(options)
        getattr(job, name)()
        say(f"job {job.name}: {name} asked for", options)
        return None

    return run


def _delete(_shell: Any, words: Sequence[str]) -> None:
    options = _parser("delete", "Delete a job with its pods; returns when they are gone.").parse_args(words)
    job = _job(options)
    job.delete(wait=True)
    say(f"job {job.name} deleted", options)


def _scale(_shell: Any, words: Sequence[str]) -> None:
    parser = _parser("scale", "Change the number of pods: %vcjob scale train worker=5")
    parser.add_argument("replicas", nargs="+", metavar="TASK=N", help="a task and its number of pods")
    parser.add_argument("--min-available", type=int, metavar="N", help="the job's gang size")
    options = parser.parse_args(words)
    counts: Mapping[str, str] = key_values(options.replicas, "TASK=N")
    wrong = [text for text in counts.values() if not text.isdigit()]
    if wrong:
        raise UsageError(f"%vcjob scale: {wrong[0]!r} is no number of pods")
    job = _job(options)
    job.scale({task: int(count) for task, count in counts.items()}, options.min_available)
    _show_warnings(job.warnings, options)
    say(f"job {job.name}: scale asked for", options)


VERBS: dict[str, Callable[[Any, Sequence[str]], Any]] = {
    "list": _list,
    "get": _get,
    "watch": _watch,
    "logs": _logs,
    "describe": _describe,
    "why": _why,
    "suspend": _verb("suspend", "Stop the job's pods and park it; resume starts it again."),
    "resume": _verb("resume", "Start a suspended job again."),
    "restart": _verb("restart", "Kill all pods and start them again."),
    "terminate": _verb("terminate", "End the job for good."),
    "complete": _verb("complete", "End the job as a success."),
    "delete": _delete,
    "scale": _scale,
}
