"""Runs the notebook in a kernel of this process, as papermill does, with the truth about what ran."""

from __future__ import annotations

from typing import Any

from papermill.clientwrap import PapermillNotebookClient
from papermill.log import logger
from papermill.utils import merge_kwargs, remove_args

from vcnb.client.functions.pod.notebook import cancel_jobs, execute_cells, finish, prepare_kernel, say_unseen, unwaived
from vcnb.errors import JobFailed
from vcnb.papermill.interrupts import interrupts
from vcnb.papermill.settings import Settings

__all__ = ["run_here"]


class _Client(PapermillNotebookClient):  # type: ignore[misc] # papermill has no types
    """papermill's client; one cell after the other is our own."""

    failure: dict[str, Any] | None = None

    def papermill_execute_cells(self) -> None:
        prepare_kernel(self)
        self.failure = execute_cells(self, _Statuses(self.nb_man))


class _Statuses:
    """Tells papermill's manager what happens to the cells."""

    def __init__(self, nb_man: Any) -> None:
        self._nb_man = nb_man

    def started(self, index: int) -> None:
        self._nb_man.cell_start(self._nb_man.nb.cells[index], index)

    def failed(self, index: int) -> None:
        self._nb_man.cell_exception(self._nb_man.nb.cells[index], cell_index=index)

    def ended(self, index: int) -> None:
        self._nb_man.cell_complete(self._nb_man.nb.cells[index], cell_index=index)


def run_here(nb_man: Any, kernel_name: str, settings: Settings, options: dict[str, Any]) -> None:
    """Run all cells. Raises JobFailed for a failed background job; papermill raises for a failed cell."""
    client = _client(nb_man, kernel_name, options)
    unseen: list[dict[str, str]] = []
    client.reset_execution_trackers()
    with interrupts(), client.setup_kernel():
        try:
            client.papermill_execute_cells()
        except BaseException:
            cancel_jobs(client, settings.on_exit)
            raise
        if client.failure is None:
            unseen = unwaived(finish(client, settings.on_exit, settings.linger), settings.waive)
        else:
            cancel_jobs(client, settings.on_exit)
        client.set_widgets_metadata()
    if unseen:
        nb_man.nb.metadata.papermill["exception"] = True
        raise JobFailed(say_unseen(unseen), name=unseen[0]["name"], phase=unseen[0]["phase"], why=unseen[0]["why"])


def _client(nb_man: Any, kernel_name: str, options: dict[str, Any]) -> _Client:
    """As papermill's own engine makes it."""
    options = dict(options)
    timeout = options.pop("execution_timeout", None)
    start_timeout = options.pop("start_timeout", 60)
    log_output = options.pop("log_output", False)
    files = {name: options.pop(name, None) for name in ("stdout_file", "stderr_file")}
    rest = remove_args(["input_path"], **options)
    final = merge_kwargs(
        rest,
        timeout=timeout or rest.get("timeout"),
        startup_timeout=start_timeout,
        kernel_name=kernel_name,
        log=logger,
        log_output=log_output,
        **files,
    )
    return _Client(nb_man, **final)
