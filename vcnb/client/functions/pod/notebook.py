"""Runs a notebook, cell by cell, and says truthfully what became of every cell.

In a pod this is a program of ``supervise`` and needs nbclient and a kernel (ipykernel, or that of another language), both
of which are in every Jupyter image; the papermill engine uses :func:`execute_cells` where it runs the notebook itself.

A cell ends ``completed`` or ``failed``, and one that never ran stays ``pending``: also when its kernel dies, when it runs
too long, and when the run is interrupted. A failed cell always has an ``error`` output, so that whoever reads the notebook
knows why (a ``UsageError`` of a magic alone leaves none).
"""

from __future__ import annotations

import ast
import contextlib
import json
import os
import signal
import sys
import time
from pathlib import Path

TYPE_CHECKING = False  # no import: it takes time in every pod
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

ECHO = 1_000_000
"""So many characters of what cells print are repeated in the pod's log, for whoever follows it."""

PATIENCE = 15
"""Seconds that a kernel may take to answer after a cell has failed."""

GLUE = """
import importlib.util as _u
if _u.find_spec("vcnb") is None:
    import sys as _s, types as _t
    class _V(_t.ModuleType):
        def __getattr__(self, name):
            if name.startswith("__"):
                raise AttributeError(name)
            raise AttributeError("vcnb is not installed in this image; only vcnb.glue(name, value) is there")
    _m = _V("vcnb", "Only glue: this image has no vcnb.")
    def _glue(name, value):
        import json
        from IPython.display import display
        json.dumps(value)
        display({"application/vnd.vcnb.glue+json": {"name": name, "value": value},
                 "text/plain": "%s = %r" % (name, value)}, raw=True)
    _m.glue = _glue
    _s.modules["vcnb"] = _m
    del _s, _t, _m, _V, _glue
del _u
"""
"""Makes ``vcnb.glue`` work in a kernel that has no vcnb."""

CLOSING = (
    "__import__('vcnb.papermill.closing', fromlist=['close']).close(%r, %r) "
    "if 'vcnb.client.cluster' in __import__('sys').modules else '[]'"
)
"""Asks a kernel which jobs of its own have failed without anybody having looked."""


def execute_cells(client: Any, events: Any) -> dict[str, Any] | None:
    """Run all cells of ``client.nb`` until one fails; its failure, or None.

    ``client`` is a NotebookClient whose kernel runs. ``events`` has ``started(index)``, ``failed(index)`` and
    ``ended(index)``. An interrupt marks the cell and is raised again.
    """
    for index, cell in enumerate(client.nb.cells):
        events.started(index)
        seconds = client.timeout_func(cell) if client.timeout_func is not None else client.timeout
        try:
            client.execute_cell(cell, index)
        except BaseException as error:
            failure = failure_of(error, cell, index, seconds)
            _leave_error(cell, failure)
            events.failed(index)
            events.ended(index)
            if not isinstance(error, Exception):
                raise
            return failure
        events.ended(index)
    return None


def failure_of(error: BaseException, cell: Any, index: int, timeout: Any) -> dict[str, Any]:
    """A failed cell in words: ``index ename evalue traceback``."""
    from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError

    if isinstance(error, CellExecutionError):
        own = [output for output in cell.get("outputs", ()) if output["output_type"] == "error"]
        if own:
            last = own[-1]
            return _failure(index, last["ename"], last["evalue"], list(last["traceback"]))
        return _failure(index, error.ename, error.evalue or _last_words(cell))
    if isinstance(error, DeadKernelError):
        return _failure(
            index, "DeadKernelError", "the kernel died while this cell ran (a crash, os._exit, or memory that ran out)"
        )
    if isinstance(error, CellTimeoutError):
        return _failure(index, "CellTimeoutError", "the cell ran longer than its time-out of %g s" % (timeout or 0))
    return _failure(index, type(error).__name__, str(error) or "the run was stopped while this cell ran")


def _failure(index: int, ename: str, evalue: str, lines: list[str] | None = None) -> dict[str, Any]:
    text = f"{ename}: {evalue}"
    return {"index": index, "ename": ename, "evalue": evalue, "traceback": lines or [text]}


def _last_words(cell: Any) -> str:
    texts = [output["text"] for output in cell.get("outputs", ()) if output["output_type"] == "stream"]
    return texts[-1].strip() if texts else ""


def _leave_error(cell: Any, failure: dict[str, Any]) -> None:
    if cell.get("cell_type") != "code" or any(output["output_type"] == "error" for output in cell["outputs"]):
        return
    from nbformat.v4 import new_output

    fields = {name: failure[name] for name in ("ename", "evalue", "traceback")}
    cell["outputs"].append(new_output("error", **fields))  # type: ignore[no-untyped-call]


def ask(client: Any, code: str = "", expression: str = "") -> str:
    """Run code in the kernel without a trace; the text that an expression has there. Raises DeadKernelError."""
    wanted = {"asked": expression} if expression else {}
    message = client.kc.execute(code, silent=True, store_history=False, user_expressions=wanted)
    reply = client.wait_for_reply(message)
    answer = (((reply or {}).get("content") or {}).get("user_expressions") or {}).get("asked") or {}
    if answer.get("status") != "ok":
        return ""
    return str(ast.literal_eval(answer["data"]["text/plain"]))


def prepare_kernel(client: Any) -> None:
    """Make ``vcnb.glue`` work in a Python kernel that has no vcnb."""
    if is_python(client.nb):
        ask(client, GLUE)


def finish(client: Any, on_exit: str, linger: float) -> list[dict[str, str]]:
    """When all cells have run: jobs that the notebook submitted and that failed without anybody having looked.

    Each has ``name phase why``. Waits up to ``linger`` seconds for those that have not ended; with ``on_exit="cancel"``
    those are then terminated.
    """
    info = client.wait_for_reply(client.kc.kernel_info())
    client.nb.metadata["language_info"] = info["content"]["language_info"]
    return _close(client, on_exit, linger)


def _close(client: Any, on_exit: str, linger: float) -> list[dict[str, str]]:
    if not is_python(client.nb):
        return []
    found: list[dict[str, str]] = json.loads(ask(client, expression=CLOSING % (on_exit, linger)) or "[]")
    return found


def cancel_jobs(client: Any, on_exit: str) -> None:
    """After a failure: end what the notebook leaves unfinished, if that is asked for and its kernel still answers."""
    if on_exit != "cancel":
        return
    client.timeout_func, client.timeout = None, PATIENCE
    try:
        _interrupt(client.km)
        _close(client, on_exit, 0)
    except Exception as error:  # noqa: BLE001 - the first failure is the one to tell
        sys.stderr.write(f"the notebook's jobs could not be cancelled: {type(error).__name__}: {error}\n")


def _interrupt(manager: Any) -> None:
    from nbclient.util import ensure_async, run_sync

    async def interrupt() -> None:
        await ensure_async(manager.interrupt_kernel())

    run_sync(interrupt)()


def unwaived(unseen: list[dict[str, str]], waive: Any) -> list[dict[str, str]]:
    """Those that fail the run. ``waive``: True for all, or names of jobs."""
    if waive is True:
        return []
    names = [waive] if isinstance(waive, str) else list(waive or ())
    return [job for job in unseen if job["name"] not in names]


def say_unseen(unseen: list[dict[str, str]]) -> str:
    """Why a notebook whose cells all ran has failed nevertheless."""
    jobs = "; ".join(
        f"{job.get('what', 'job')} {job['name']!r} ({job['phase']}): {job['why'].rstrip('.')}" for job in unseen
    )
    return (
        f"every cell ran, but no cell looked at what became of {jobs}. Wait for it in a cell (job.wait()), or waive it: "
        "parameter or metadata vcnb_waive, true or a list of names"
    )


def is_python(notebook: Any) -> bool:
    """Whether the notebook's kernel is a Python one."""
    metadata = notebook.get("metadata", {})
    kernel = metadata.get("kernelspec", {})
    language = metadata.get("language_info", {}).get("name") or kernel.get("language") or kernel.get("name") or "python"
    return str(language).startswith("python")


def _plain(value: Any) -> Any:
    """Without classes: what travels is read by whoever has none of them."""
    return json.loads(json.dumps(value))


class Reporter:
    """Tells of every cell in the pod's log, as it ends."""

    def __init__(self, notebook: Any, frames: Any, room: int) -> None:
        self.notebook = notebook
        self.frames = frames
        self.room = room
        self.begun = 0.0
        self.sent: dict[int, str] = {}
        self.status: dict[int, str] = {}
        self.echoed = 0

    def started(self, index: int) -> None:
        self.begun = time.time()
        self.status[index] = "running"
        self.frames.send({"type": "cell", "index": index, "status": "running", "started": self.begun})

    def failed(self, index: int) -> None:
        self.status[index] = "failed"

    def ended(self, index: int) -> None:
        if self.status[index] == "running":
            self.status[index] = "completed"
        self.tell(index, self.begun, time.time())

    def tell(self, index: int, started: float | None = None, ended: float | None = None) -> None:
        """Send a cell with its outputs; those for which there is no room are left out, the largest first."""
        cell = self.notebook.cells[index]
        message: dict[str, Any] = {
            "type": "cell",
            "index": index,
            "status": self.status[index],
            "execution_count": cell.get("execution_count"),
            "outputs": _plain(cell.get("outputs", [])),
            "metadata": _plain({key: value for key, value in cell["metadata"].items() if key != "papermill"}),
        }
        if started is not None:
            message.update(started=started, ended=ended)
        self.sent[index] = json.dumps(cell.get("outputs", []))
        limit = min(self.room, self.frames.limit)
        while self.frames.size(message) > limit and _leave_one_out(message["outputs"]):
            pass
        self.room -= self.frames.size(message)
        self.frames.send(message)

    def tell_changed(self) -> None:
        """Send cells again whose outputs a later cell has changed (display ids, widgets)."""
        for index, before in sorted(self.sent.items()):
            if json.dumps(self.notebook.cells[index].get("outputs", [])) != before:
                self.tell(index)

    def echo(self, text: str) -> None:
        """Repeat what a cell prints."""
        if self.echoed < ECHO:
            self.echoed += len(text)
            sys.stdout.write(text)
            sys.stdout.flush()


def _leave_one_out(outputs: list[dict[str, Any]]) -> bool:
    sizes = [(len(json.dumps(output)), position) for position, output in enumerate(outputs)]
    size, position = max(sizes, default=(0, 0))
    if size < 1000:
        return False
    text = "[an output of {} bytes was left out: too large to come back from the pod]\n".format(format(size, ","))
    outputs[position] = {"output_type": "stream", "name": "stderr", "text": text}
    return True


def run(call: dict[str, Any], _index: int, frames: Any) -> dict[str, Any]:
    """The program: run the payload's notebook; the outcome, after all its cells were told of."""
    try:
        import nbclient
        import nbformat
    except ImportError as error:
        return _outcome(
            "import",
            "ModuleNotFoundError",
            f"this pod has no {error.name}, which runs notebooks; use an image that has nbclient and a kernel, for example "
            "quay.io/jupyter/minimal-notebook (image=...)",
            final=True,
        )
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    notebook = nbformat.reads(call["notebook"], as_version=4)  # type: ignore[no-untyped-call]
    reporter = Reporter(notebook, frames, call["room"])
    frames.send({"type": "start"})

    class Client(nbclient.NotebookClient):
        def process_message(self, message: Any, cell: Any, cell_index: int) -> Any:
            output = super().process_message(message, cell, cell_index)
            if message["msg_type"] == "stream":
                reporter.echo(message["content"]["text"])
            return output

    client = Client(
        notebook,
        kernel_name=call["kernel"],
        timeout_func=_deadline(call["cell_timeout"], call["whole_timeout"]),
        startup_timeout=call["start_timeout"],
        allow_errors=False,
    )
    try:
        return _run(client, reporter, call)
    except Exception as error:  # noqa: BLE001 - a kernel fails to start in many ways
        return _outcome("kernel", type(error).__name__, "the kernel {}: {}".format(call["kernel"], error))


def _run(client: Any, reporter: Reporter, call: dict[str, Any]) -> dict[str, Any]:
    client.reset_execution_trackers()
    unseen: list[dict[str, str]] = []
    with client.setup_kernel():
        prepare_kernel(client)
        failure = execute_cells(client, reporter)
        if failure is None:
            unseen = unwaived(finish(client, call["on_exit"], call["linger"]), call["waive"])
        else:
            cancel_jobs(client, call["on_exit"])
        client.set_widgets_metadata()
        reporter.tell_changed()
    if failure is not None and not (failure["ename"] == "SystemExit" and failure["evalue"] in ("", "0")):
        outcome = _outcome("cell", failure["ename"], failure["evalue"])
        outcome["failure"] = failure
    elif unseen:
        outcome = _outcome("unseen", "JobFailed", say_unseen(unseen))
    else:
        outcome = {"state": "done"}
        leave_outputs(client.nb.cells)
    outcome["metadata"] = _plain(_metadata(client.nb.metadata, reporter.room))
    return outcome


OUTPUT_LIMIT = 4096
"""Bytes of a termination message."""


def leave_outputs(cells: Any) -> None:
    """Leave what the notebook glued as the pod's last word: a flow takes its node's outputs from there.

    Values for which there is no room are left out, the last ones first.
    """
    values: dict[str, Any] = {}
    for cell in cells:
        for output in cell.get("outputs", ()):
            data = output.get("data", {})
            if "application/vnd.vcnb.glue+json" in data:
                record = data["application/vnd.vcnb.glue+json"]
                values[record["name"]] = record["value"]
    while values and len(json.dumps(values).encode()) > OUTPUT_LIMIT:
        values.popitem()
    place = os.environ.get("VC_OUTPUT_FILE") or os.environ.get("VCNB_TERMINATION_LOG", "/dev/termination-log")
    if values:
        with contextlib.suppress(OSError):
            Path(place).write_text(json.dumps(values), encoding="utf-8")


def _metadata(metadata: dict[str, Any], room: int) -> dict[str, Any]:
    kept: dict[str, Any] = {key: metadata[key] for key in ("language_info", "widgets") if key in metadata}
    if len(json.dumps(kept.get("widgets"))) > max(room, 0):
        kept.pop("widgets", None)
    return kept


def _deadline(cell_timeout: float | None, whole: float | None) -> Callable[[Any], float | None] | None:
    """The seconds that a cell may take: its own limit, or what is left of the whole notebook's."""
    if whole is None:
        return None if cell_timeout is None else lambda _: cell_timeout
    end = time.monotonic() + whole

    def left(_: Any) -> float | None:
        rest = max(end - time.monotonic(), 0.001)
        return rest if cell_timeout is None else min(rest, cell_timeout)

    return left


def _outcome(reason: str, kind: str, message: str, final: bool = False) -> dict[str, Any]:
    return {
        "state": "failed",
        "reason": reason,
        "kind": kind,
        "message": message,
        "traceback": "",
        "error": None,
        "final": final,
    }
