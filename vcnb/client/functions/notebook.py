"""Notebooks as jobs: ``cluster.notebook("train.ipynb", parameters={...})``.

Parameters are injected here, as papermill does it; the cells run in one pod, which needs nbclient and a kernel. Every
cell is told of as it ends, so that a notebook whose pod is lost still has its outputs up to there. Limits: the notebook
768 KiB, each cell's outputs 4 MiB, all outputs 6 MiB, after compression; outputs for which there is no room are left out,
the largest first, and say so.
"""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import AsyncIterator, Coroutine, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

from vcnb.client.bridge import twins
from vcnb.client.functions.function import submit_payload
from vcnb.client.functions.glue import glued
from vcnb.client.functions.items import Progress, end_of_pod
from vcnb.client.functions.options import RunOptions
from vcnb.client.functions.parameters import check_parameters
from vcnb.client.functions.payload import Packed, pack
from vcnb.client.functions.run import PayloadHandle
from vcnb.client.functions.transcript import Transcript
from vcnb.client.functions.wire import NONCE, NOTEBOOK_ROOM, OUTPUT, Reader
from vcnb.client.job import ENDED, JobHandle, phase_of, pods_of
from vcnb.errors import NotebookFailed, VcnbError

if TYPE_CHECKING:
    from vcnb.client.cluster import Cluster

__all__ = [
    "DEFAULT_IMAGE",
    "ExecutedNotebook",
    "NotebookHandle",
    "NotebookOptions",
    "Prepared",
    "packed_notebook",
    "prepare",
    "start",
    "submit_notebook",
]

DEFAULT_IMAGE = f"quay.io/jupyter/minimal-notebook:python-{sys.version_info.major}.{sys.version_info.minor}"
"""An image with nbclient and ipykernel; embedded pods use this machine's own Python anyway."""


@dataclasses.dataclass(frozen=True)
class NotebookOptions(RunOptions):
    """Options of ``cluster.notebook``, besides those of every run (``timeout`` is then that of the whole notebook).

    ``output``: where the executed notebook is saved (default: beside the notebook, named like the job). ``kernel``: the
    kernel's name (default: the notebook's own). ``cell_timeout`` and ``start_timeout``: seconds for each cell
    (default: none) and for the kernel to start. ``waive``: True, or names of jobs that the notebook may leave failed
    without having looked at them; ``on_exit``: what becomes of jobs that it leaves unfinished, ``keep`` or
    ``cancel``; ``linger``: how many seconds to wait for those to end.
    """

    output: str | Path | None = None
    kernel: str | None = None
    cell_timeout: float | None = None
    start_timeout: float = 60
    waive: Any = None
    on_exit: Literal["keep", "cancel"] = "keep"
    linger: float = 5.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.on_exit not in ("keep", "cancel"):
            raise VcnbError(f"on_exit is 'keep' or 'cancel', not {self.on_exit!r}")
        if self.replicas != 1:
            raise VcnbError("a notebook runs in one pod; replicas makes no sense for it")


@dataclasses.dataclass(frozen=True)
class Prepared:
    """A notebook that is ready to run: loaded, checked, with its parameters injected."""

    notebook: Any
    name: str
    output: str


def prepare(
    source: str | Path | Mapping[str, Any], parameters: Mapping[str, Any], options: NotebookOptions
) -> Prepared:
    """Load a notebook, check its parameters and inject them. Raises ParameterError, VcnbError for what is no notebook."""
    from papermill.iorw import load_notebook_node
    from papermill.parameterize import parameterize_notebook

    try:
        notebook = load_notebook_node(source if isinstance(source, Mapping) else str(source))
    except OSError as error:
        raise VcnbError(f"notebook {source} cannot be read: {error.strerror or error}") from None
    except Exception as error:
        raise VcnbError(f"{source} is no notebook: {error}") from error
    check_parameters(notebook, parameters)
    if parameters:
        kernel = options.kernel or kernel_of(notebook)
        notebook = parameterize_notebook(notebook, dict(parameters), kernel_name=kernel)
    path = None if isinstance(source, Mapping) else Path(str(source))
    notebook.metadata.papermill["input_path"] = "" if path is None else str(path)
    return Prepared(notebook, "notebook" if path is None else path.stem, _folder(path))


def _folder(path: Path | None) -> str:
    return str((path.parent if path is not None and path.exists() else Path()).absolute())


def kernel_of(notebook: Any) -> str:
    """The name of the notebook's kernel, ``python3`` when it names none."""
    return str(notebook["metadata"].get("kernelspec", {}).get("name") or "python3")


def packed_notebook(notebook: Any, options: NotebookOptions) -> Packed:
    """The payload of a notebook. Raises PayloadError when it is too large."""
    cells = [{**cell, "outputs": []} if cell["cell_type"] == "code" else cell for cell in notebook["cells"]]
    bare = {**notebook, "cells": cells}
    waive = options.waive
    for place in (notebook["metadata"].get("papermill", {}).get("parameters", {}), notebook["metadata"]):
        waive = place.get("vcnb_waive") if waive is None else waive
    return pack(
        "notebook",
        "the notebook",
        notebook=text_of(bare),
        kernel=options.kernel or kernel_of(notebook),
        cell_timeout=options.cell_timeout,
        whole_timeout=options.timeout,
        start_timeout=int(options.start_timeout),
        room=NOTEBOOK_ROOM,
        waive=waive,
        on_exit=options.on_exit,
        linger=options.linger,
        retries=options.retries,
        timeout=None,
    )


async def submit_notebook(
    cluster: Cluster, packed: Packed, options: NotebookOptions, name: str, output: str
) -> NotebookHandle:
    """Submit a packed notebook as a job. ``output``: a file or a folder; empty: nothing is saved."""
    image = options.image or DEFAULT_IMAGE
    chosen = dataclasses.replace(options, image=image)
    where = {OUTPUT: str(options.output or output)}
    return cast("NotebookHandle", await submit_payload(cluster, chosen, packed, "notebook", "notebook", name, 1, where))


def start(
    cluster: Cluster, source: str | Path | Mapping[str, Any], parameters: Mapping[str, Any], given: Mapping[str, Any]
) -> Coroutine[Any, Any, NotebookHandle]:
    """Prepare a notebook in the caller's thread; what is returned submits it."""
    options = NotebookOptions.of(given)
    ready = prepare(source, parameters, options)
    return submit_notebook(cluster, packed_notebook(ready.notebook, options), options, ready.name, ready.output)


@dataclasses.dataclass(frozen=True)
class ExecutedNotebook:
    """A notebook as it was run.

    ``path``: where it was saved; ``notebook``: its nbformat node; ``outputs``: what it recorded with
    ``vcnb.glue(name, value)`` (or scrapbook), by name.
    """

    path: str
    notebook: Any = dataclasses.field(repr=False)
    outputs: Mapping[str, Any] = dataclasses.field(default_factory=dict)


class NotebookHandle(PayloadHandle):
    """A notebook that runs as a job. ``result()`` waits for it and has ``path notebook outputs``."""

    _executed: Transcript | None = None
    _path: str = ""

    async def _wait(self, phase: str | None = None, timeout: float | None = None, check: bool = True) -> JobHandle:
        try:
            return await super()._wait(phase, timeout, check)
        finally:
            if phase_of(self._seen) in ENDED and not self._gone:
                await self._collect()

    async def _collect(self) -> Transcript:
        """The notebook as it was run, saved; when the job has ended it does not change any more."""
        if self._executed is not None:
            return self._executed
        transcript = await self._transcript()
        if phase_of(self._seen) in ENDED:
            transcript.close(await self._lost())
            self._executed = transcript
            self._path = self._save(transcript.notebook)
        return transcript

    async def _transcript(self) -> Transcript:
        transcript = Transcript(node_of((await self._payload())["notebook"]))
        reader = Reader(self._annotation(NONCE))
        text = await self._cluster._logs.of_job(self._seen, "notebook", 0)  # noqa: SLF001
        for message in reader.messages(text):
            transcript.take(message)
        return transcript

    async def _lost(self) -> dict[str, Any]:
        """What is known of a pod that told no end."""
        pods = await pods_of(self)
        if not pods or pods[0].get("status", {}).get("phase") not in ("Succeeded", "Failed"):
            reason = {"state": "failed", "reason": "cancelled", "kind": "Cancelled"}
            return {**reason, "message": f"the job ended {phase_of(self._seen)} before the notebook had run"}
        return {**end_of_pod(pods[0], damaged=False), "kind": "PodLost"}

    def _save(self, notebook: Any) -> str:
        target = self._annotation(OUTPUT)
        if not target:
            return ""
        path = Path(target)
        if path.is_dir():
            path /= f"{self.name}.ipynb"
        ours = {"job": self.name, "uid": self.uid}
        if path.exists() and _job_in(path) == ours:
            return str(path)
        notebook["metadata"]["vcnb"] = ours
        notebook["metadata"].setdefault("papermill", {})["output_path"] = str(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_name(f".{path.name}.part")
        temporary.write_text(text_of(notebook), encoding="utf-8")
        temporary.replace(path)
        return str(path)

    async def _failure(self, wanted: str | None) -> NotebookFailed:
        transcript = await self._collect()
        failure = transcript.failure or {}
        phase = phase_of(self._seen)
        saved = f"; what was run is in {self._path}" if self._path else ""
        return NotebookFailed(
            f"notebook {self.function!r} failed (job {self.name!r} ended {phase}): {transcript.in_words()}{saved}",
            name=self.name,
            phase=phase,
            cell=failure.get("index"),
            ename=failure.get("ename", ""),
            evalue=failure.get("evalue", ""),
            traceback=tuple(failure.get("traceback", ())),
            path=self._path,
        )

    async def _result(self, timeout: float | None = None) -> ExecutedNotebook:
        await self._wait(timeout=timeout)
        return self._as_run(await self._collect())

    def result(self, timeout: float | None = None) -> ExecutedNotebook:
        """Wait for the end; the executed notebook: ``path notebook outputs``. It is saved, also when it failed.

        ``timeout`` in seconds (default: none). Raises NotebookFailed with the failing cell's error, WaitTimeout.
        """
        return self._blocking(self._result(timeout))

    def _as_run(self, transcript: Transcript) -> ExecutedNotebook:
        notebook = node_of(text_of(transcript.notebook))
        return ExecutedNotebook(self._path, notebook, glued(notebook["cells"]))

    async def _so_far(self) -> ExecutedNotebook:
        """The notebook as far as it has been run by now. Waits for nothing, raises nothing for a failed one."""
        await self._refresh()
        return self._as_run(await self._collect())

    so_far, so_far_async = twins(_so_far)

    async def _progress(self) -> Progress:
        """How many cells are completed (``done``), failed, running and pending."""
        await self._refresh()
        return (await self._collect()).progress()

    progress, progress_async = twins(_progress)

    def messages(self) -> Iterator[dict[str, Any]]:
        """What the pod tells, as it comes, until the job has ended."""
        reader = Reader(self._annotation(NONCE))
        batches: AsyncIterator[list[str]] = self._cluster._logs.follow(self._current(), "notebook", 0)  # noqa: SLF001
        try:
            while (lines := self._bridge.run(_next(batches))) is not None:
                for line in lines:
                    message = reader.feed(line)
                    if message is not None:
                        yield message
        finally:
            if not self._bridge.closed:
                self._bridge.run(_close(batches))


async def _next(batches: AsyncIterator[list[str]]) -> list[str] | None:
    return await anext(batches, None)


async def _close(batches: AsyncIterator[list[str]]) -> None:
    close = getattr(batches, "aclose", None)
    if close is not None:
        await close()


def node_of(text: str) -> Any:
    """A notebook's text as an nbformat node."""
    import nbformat

    return nbformat.reads(text, as_version=4)  # type: ignore[no-untyped-call]


def text_of(notebook: Mapping[str, Any]) -> str:
    """A notebook as text."""
    import nbformat

    return str(nbformat.writes(nbformat.from_dict(notebook)))  # type: ignore[no-untyped-call]


def _job_in(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))["metadata"].get("vcnb")
    except (OSError, ValueError, KeyError):
        return None
