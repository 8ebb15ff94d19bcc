"""Runs the notebook as a job of a cluster, and shows its cells as they end."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import nbformat
from papermill.log import logger

from vcnb.client.cluster import Cluster
from vcnb.client.connect import connect
from vcnb.client.functions.notebook import NotebookHandle, NotebookOptions, packed_notebook, submit_notebook
from vcnb.client.functions.transcript import Transcript
from vcnb.errors import NotebookFailed
from vcnb.papermill.interrupts import interrupts
from vcnb.papermill.settings import Settings
from vcnb.papermill.statuses import keep_pending

__all__ = ["run_as_job"]


def run_as_job(nb_man: Any, kernel_name: str, settings: Settings, options: dict[str, Any]) -> None:
    """Run all cells in a pod. Raises NotebookFailed when it failed in no cell; papermill raises for a failed cell."""
    chosen = _options(kernel_name, settings, options)
    packed = packed_notebook(nb_man.nb, chosen)
    with _cluster(settings) as cluster, interrupts():
        name = (
            str(nb_man.nb.metadata.papermill.get("input_path") or "notebook").rpartition("/")[2].removesuffix(".ipynb")
        )
        job = cluster._bridge.run(submit_notebook(cluster, packed, chosen, name, ""))  # noqa: SLF001 - the same package
        logger.info(f"Job: {job.namespace}/{job.name} on {cluster.url}")
        try:
            _follow(nb_man, job, options)
        except NotebookFailed:
            raise
        except BaseException:
            keep_pending(nb_man)
            _leave(nb_man, job, settings)
            raise


def _options(kernel_name: str, settings: Settings, options: dict[str, Any]) -> NotebookOptions:
    given = {name: getattr(settings, name) for name in ("image", "queue", "namespace", "name", "resources", "env")}
    return NotebookOptions.of(
        {
            **{name: value for name, value in given.items() if value is not None},
            "retries": settings.retries,
            "kernel": kernel_name,
            "cell_timeout": options.get("execution_timeout"),
            "start_timeout": options.get("start_timeout") or 60,
            "waive": settings.waive,
            "on_exit": settings.on_exit,
            "linger": settings.linger,
        }
    )


@contextlib.contextmanager
def _cluster(settings: Settings) -> Iterator[Cluster]:
    """The cluster; one in memory is this run's own and ends with it."""
    if isinstance(settings.cluster, Cluster):
        yield settings.cluster
        return
    cluster = connect(settings.cluster)
    try:
        yield cluster
    finally:
        if cluster.url.startswith("memory:"):
            cluster.close()


def _follow(nb_man: Any, job: NotebookHandle, options: dict[str, Any]) -> None:
    view = _View(nb_man, options)
    for message in job.messages():
        view.take(message)
    job.wait(check=False)
    view.close(job.so_far().notebook, job)


class _View:
    """Applies what the pod tells to papermill's manager: statuses, outputs, progress, saved as it goes."""

    def __init__(self, nb_man: Any, options: dict[str, Any]) -> None:
        self._nb_man = nb_man
        self._options = options
        self._transcript = Transcript(nbformat.from_dict({**nb_man.nb}))  # type: ignore[no-untyped-call]
        self._told: dict[int, str] = {}

    def take(self, message: dict[str, Any]) -> None:
        """Take the next message."""
        if message.get("type") == "start":
            self._told.clear()
        index = self._transcript.take(message)
        if index is not None:
            self._show(index, message["status"])

    def _show(self, index: int, status: str) -> None:
        cell = self._nb_man.nb.cells[index]
        if self._told.get(index) == status == "running":
            return
        if self._told.get(index) is None:
            self._nb_man.cell_start(cell, index)
        if status != "running":
            self._fill(index)
            if status == "failed":
                self._nb_man.cell_exception(cell, cell_index=index)
            if self._told.get(index) in (None, "running"):
                self._log(cell)
                self._nb_man.cell_complete(cell, cell_index=index)
        self._told[index] = status

    def _fill(self, index: int) -> None:
        """Outputs and times as the pod has them."""
        cell, ran = self._nb_man.nb.cells[index], self._transcript.notebook["cells"][index]
        if cell.cell_type == "code":
            cell.outputs = [nbformat.from_dict(output) for output in ran["outputs"]]  # type: ignore[no-untyped-call]
            cell.execution_count = ran["execution_count"]
        for key, value in ran["metadata"].items():
            if key != "papermill":
                cell.metadata[key] = value

    def _log(self, cell: Any) -> None:
        for output in cell.get("outputs", ()):
            if output.output_type != "stream":
                continue
            if self._options.get("log_output"):
                logger.log(20 if output.name == "stdout" else 30, output.text)
            file = self._options.get(f"{output.name}_file")
            if file is not None:
                file.write(output.text)
                file.flush()

    def close(self, ran: Any, job: NotebookHandle) -> None:
        """The end: whatever the stream did not bring is taken from the job's log. Raises NotebookFailed."""
        notebook = self._nb_man.nb
        for index, (cell, final) in enumerate(zip(notebook.cells, ran["cells"], strict=True)):
            self._transcript.notebook["cells"][index] = final
            status = final["metadata"]["papermill"]["status"]
            if status != "pending" and (self._told.get(index) != status or cell.get("outputs") != final.get("outputs")):
                self._show(index, status)
        for key in ("language_info", "widgets"):
            if key in ran["metadata"]:
                notebook.metadata[key] = nbformat.from_dict(ran["metadata"][key])  # type: ignore[no-untyped-call]
        if not ran["metadata"]["papermill"].get("exception"):
            return
        notebook.metadata.papermill["exception"] = True
        if any(cell.metadata.papermill["status"] == "failed" for cell in notebook.cells):
            return  # papermill raises, with the cell's error
        keep_pending(self._nb_man)
        try:
            job.wait()
        except NotebookFailed as error:
            raise error from None


def _leave(nb_man: Any, job: NotebookHandle, settings: Settings) -> None:
    """The run was stopped: the job goes on, or ends with it."""
    nb_man.nb.metadata.papermill["exception"] = True
    if settings.on_exit == "cancel":
        job.cancel()
        for cell in nb_man.nb.cells:
            if cell.metadata.papermill["status"] == "running":
                nb_man.cell_exception(cell)
        logger.warning(f"cancelled job {job.name!r}")
    else:
        logger.warning(
            f"job {job.name!r} goes on; its notebook will be in vcnb.connect().jobs[{job.name!r}].result().notebook "
            "(on_exit=cancel ends it instead)"
        )
