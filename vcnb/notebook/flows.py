"""``%%jobflow``: submitting the flow of a cell, in YAML or in the short form."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from typing import Any, Final

from IPython.core.error import UsageError

from vcnb.client.flow import FlowHandle
from vcnb.client.flows.builder import Flow
from vcnb.client.flows.params import override, value_of
from vcnb.client.flows.submission import check_documents, submit_documents, submit_flows
from vcnb.errors import InvalidObject, VcnbError
from vcnb.notebook.arguments import Parser, expand_body
from vcnb.notebook.cells import language_of, manifest_of
from vcnb.notebook.current import current
from vcnb.notebook.flowform import build
from vcnb.notebook.flowoptions import node_parser
from vcnb.notebook.flowprogress import report_flow
from vcnb.notebook.flowview import show_flow
from vcnb.notebook.flowwords import CELLS, Words
from vcnb.notebook.following import add_cell_options, compared, delete_first, in_cell, is_live
from vcnb.notebook.following import follow as follow_handles
from vcnb.notebook.jobs import add_job_options
from vcnb.notebook.silence import silence
from vcnb.resources import kinds
from vcnb.resources.manifest import Document, dump, load

__all__ = ["flow_parser", "follow", "jobnode_parser", "keep_cell", "submit_cell"]

EPILOG: Final = """\
The cell is YAML (JobTemplates and a JobFlow), or the short form:

  prepare >> train >> report                     arrows; several: a, b >> c; after a failure: train.failed >> alarm
  train: fit(C=item) --for-each "[1, 10]" --retry 2
  report: report.ipynb --after train
  alarm: ! echo it failed                        a shell command
  clean: --cpu 500m |                            a script, indented below
      print("Python, or bash with #!/bin/bash")

A node runs a function or job of this notebook, a cell kept by %%jobnode, a notebook's file, or a JobTemplate. Arguments
and conditions may speak of params, item, index and flows.NODE.outputs. Options of a node:
"""


def flow_parser() -> Parser:
    """The options of ``%%jobflow``."""
    parser = Parser(
        "%%jobflow", "Run a graph of jobs: each starts when what it waits for has ended.", EPILOG + _node_help()
    )
    add = parser.add_argument
    add("name", nargs="?", help="the flow's name; YAML has it in metadata.name")
    add(
        "--param",
        "-p",
        action="append",
        default=[],
        metavar="K[=V]",
        help="a parameter; without =V the variable K's value",
    )
    add("--namespace", "-n", metavar="NS", help="the namespace (default: default)")
    add("--max-parallel", type=int, metavar="N", help="so many jobs at once (default: all)")
    add("--continue", dest="go_on", action="store_true", help="after a failure run whatever still can (default: stop)")
    add("--deadline", metavar="S", help="fail the flow after so many seconds")
    add("--queue", "-q", metavar="Q", help="the queue of jobs that name none")
    add_cell_options(parser, "flow")
    return parser


def _node_help() -> str:
    text = node_parser().format_help()
    return text[text.index("options:") :].partition("\n")[2]


def submit_cell(shell: Any, words: Sequence[str], body: str) -> Any:
    """Submit the flow of a cell; shows it as the front end can, waits where that is asked for or the default."""
    options = flow_parser().parse_args(words)
    if not body.strip():
        raise UsageError("%%jobflow: the cell's body is empty; write nodes and arrows, or YAML; %jobflow help explains")
    if options.template:
        body = expand_body(body, shell.user_ns)
    params = _params(options.param, shell.user_ns)
    yaml = language_of(body, None) == "yaml"
    documents = _documents(body, options, params) if yaml else _built(shell, body, options, params).parts()
    cluster = current()
    if options.dry_run:
        return _dry_run(cluster, documents, options, yaml=yaml)
    if options.diff:
        return _compared(shell, cluster, documents, options, yaml=yaml)
    if options.replace:
        delete_first(cluster.flows, kinds.JOBFLOW, documents, options.namespace)
    found = _submit(cluster, documents, options, yaml=yaml)
    flows = [handle for handle in found if isinstance(handle, FlowHandle)]
    value = flows[0] if len(flows) == 1 else flows
    if options.out:
        shell.user_ns[options.out] = value
    if not options.quiet:
        for warning in (warning for handle in found for warning in handle.warnings):
            print(f"warning: {warning}")  # noqa: T201 - a cell shows warnings
    follow(shell, flows, options)
    return silence(shell, value) if options.quiet or is_live(shell, options) else value


def _params(given: Sequence[str], names: Mapping[str, Any]) -> dict[str, Any]:
    """``K=V``, with V as JSON where it is JSON; or ``K``: the value of the notebook's variable."""
    found: dict[str, Any] = {}
    for text in given:
        key, equals, value = text.partition("=")
        if not key:
            raise UsageError(f"--param {text!r}: write --param NAME=VALUE, or --param NAME for a variable")
        if not equals and key not in names:
            raise UsageError(f"--param {key}: there is no variable {key!r} in this notebook; write --param {key}=VALUE")
        found[key] = value_of(value) if equals else names[key]
    return found


# -- YAML


def _documents(body: str, options: argparse.Namespace, params: Mapping[str, Any]) -> list[Document]:
    try:
        documents = load(body)
    except InvalidObject as error:
        raise in_cell(error) from None
    flows = [document for document in documents if document.object.get("kind") == kinds.JOBFLOW.kind]
    if not flows:
        raise VcnbError(
            "there is no JobFlow in the cell; its YAML has JobTemplates and one document with kind: JobFlow"
        )
    names = [str((flow.object.get("metadata") or {}).get("name")) for flow in flows]
    if options.name and names != [options.name]:
        raise UsageError(
            f"%%jobflow {options.name}: the YAML says metadata.name: {', '.join(names)}; say the name once"
        )
    wrong = next((name for name in ("max_parallel", "go_on", "deadline", "queue") if getattr(options, name)), None)
    if wrong is not None:
        option = {"go_on": "continue"}.get(wrong, wrong.replace("_", "-"))
        raise UsageError(f"%%jobflow: --{option} is for the short form; YAML says it in the JobFlow's spec")
    try:
        override(documents, params)
    except InvalidObject as error:
        raise in_cell(error) from None
    return documents


# -- the short form


def _built(shell: Any, body: str, options: argparse.Namespace, params: Mapping[str, Any]) -> Flow:
    if not options.name:
        raise UsageError("%%jobflow: the flow needs a name: %%jobflow NAME")
    flow = Flow(
        options.name,
        params=params,
        namespace=options.namespace,
        failure_policy="Continue" if options.go_on else None,
        max_parallel=options.max_parallel,
        deadline=_number(options.deadline),
        queue=options.queue,
    )
    cluster = current()

    def templates() -> list[str]:
        return [handle.name for handle in cluster.templates.list(options.namespace)]

    return build(body, flow, Words(shell.user_ns, templates))


def _number(text: str | None) -> Any:
    return float(text) if text is not None and text.replace(".", "", 1).isdigit() else text


# -- submitting


def _submit(cluster: Any, documents: Sequence[Document], options: argparse.Namespace, *, yaml: bool) -> list[Any]:
    work = submit_documents if yaml else submit_flows
    try:
        found = cluster._bridge.run(work(cluster, documents, options.namespace))  # noqa: SLF001 - as cluster.submit does
    except InvalidObject as error:
        raise (in_cell(error) if yaml else error) from None
    return found if isinstance(found, list) else [found]


def _dry_run(cluster: Any, documents: Sequence[Document], options: argparse.Namespace, *, yaml: bool) -> None:
    from vcnb.client.handles import exported

    try:
        checked = cluster._bridge.run(check_documents(cluster, documents, options.namespace))  # noqa: SLF001 - as above
    except InvalidObject as error:
        raise (in_cell(error) if yaml else error) from None
    shown = [exported(item.object) for item in checked if item.object.get("kind") != kinds.SECRET.kind]
    print("---\n".join(dump(each) for each in shown), end="")  # noqa: T201 - what was asked for


def _compared(
    shell: Any, cluster: Any, documents: Sequence[Document], options: argparse.Namespace, *, yaml: bool
) -> Any:
    try:
        return compared(shell, cluster, documents, options)
    except InvalidObject as error:
        raise (in_cell(error) if yaml else error) from None


def follow(shell: Any, flows: Sequence[FlowHandle], options: argparse.Namespace) -> None:
    """Show the flows, and wait for them unless told otherwise; raises FlowFailed when one fails."""
    follow_handles(shell, flows, options, show_flow, report_flow)


# -- cells that are nodes


def jobnode_parser() -> Parser:
    """The options of ``%%jobnode``."""
    parser = Parser("%%jobnode", "Keep this cell as the job of a node, for %%jobflow cells that name it.")
    parser.add_argument("name", help="the name by which %%jobflow finds it")
    add_job_options(parser)
    parser.add_argument("--quiet", action="store_true", help="say nothing")
    return parser


def keep_cell(words: Sequence[str], body: str) -> None:
    """``%%jobnode``: keep the cell as what a node of that name runs."""
    options = jobnode_parser().parse_args(words)
    if not body.strip():
        raise UsageError("%%jobnode: the cell's body is empty; it is the script that the node's pods run")
    language = language_of(body, options.lang)
    CELLS[options.name] = _only_job(body) if language == "yaml" else manifest_of(options, body, language)
    if not options.quiet:
        print(f"kept as node {options.name!r}; run it with %%jobflow")  # noqa: T201 - says that it was taken


def _only_job(body: str) -> dict[str, Any]:
    try:
        documents = load(body)
    except InvalidObject as error:
        raise in_cell(error) from None
    if len(documents) != 1 or documents[0].object.get("kind") not in (kinds.JOB.kind, kinds.JOBTEMPLATE.kind):
        raise UsageError("%%jobnode: the YAML of a node is one Job or JobTemplate")
    return documents[0].object
