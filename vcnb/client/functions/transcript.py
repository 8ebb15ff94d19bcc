"""What a running notebook has told so far, applied to the notebook: statuses, outputs, and why it failed.

Statuses are papermill's (``metadata.papermill`` of every cell): ``pending``, ``running``, ``completed``, ``failed``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from vcnb.client.functions.items import Progress

__all__ = ["Transcript"]


class Transcript:
    """A notebook as far as it was run. ``notebook`` is changed as messages are taken."""

    def __init__(self, notebook: Any) -> None:
        self.notebook = notebook
        self.ended: dict[str, Any] | None = None
        """The last message, when there was one."""
        self.begun: float | None = None
        self.last: float | None = None
        self._reset()

    def _reset(self) -> None:
        for cell in self.notebook["cells"]:
            _papermill(cell).update(exception=None, start_time=None, end_time=None, duration=None, status="pending")
            if cell["cell_type"] == "code":
                cell["outputs"], cell["execution_count"] = [], None

    def take(self, message: Mapping[str, Any]) -> int | None:
        """Take the next message; the position of the cell that it is about."""
        kind = message.get("type")
        if kind == "start":
            self.begun = None
            self._reset()
        elif kind == "end":
            self.ended = dict(message)
        elif kind == "cell":
            self._cell(message)
            return int(message["index"])
        return None

    def _cell(self, message: Mapping[str, Any]) -> None:
        cell = self.notebook["cells"][message["index"]]
        told = _papermill(cell)
        told["status"] = message["status"]
        if "started" in message:
            told["start_time"] = _time(message["started"])
            told["exception"] = False
            self.begun = message["started"] if self.begun is None else self.begun
        if "ended" in message:
            told["end_time"] = _time(message["ended"])
            told["duration"] = message["ended"] - message["started"]
            self.last = message["ended"]
        if message["status"] == "failed":
            told["exception"] = True
        cell["metadata"].update(message.get("metadata", {}))
        if cell["cell_type"] == "code" and "outputs" in message:
            cell["outputs"] = list(message["outputs"])
            cell["execution_count"] = message["execution_count"]

    def close(self, outcome: Mapping[str, Any]) -> None:
        """Nothing more will come: a cell that was running when the pod was lost has failed with it."""
        self.ended = dict(outcome) if self.ended is None else self.ended
        for index, cell in enumerate(self.notebook["cells"]):
            if _papermill(cell)["status"] == "running":
                failure = {
                    "ename": self.ended.get("kind") or "PodLost",
                    "evalue": str(self.ended.get("message", "")),
                }
                failure["traceback"] = [f"{failure['ename']}: {failure['evalue']}"]
                _papermill(cell).update(status="failed", exception=True)
                if cell["cell_type"] == "code":
                    cell["outputs"] = [*cell["outputs"], {"output_type": "error", **failure}]
                self.ended.setdefault("failure", {"index": index, **failure})
        whole = self.notebook["metadata"].setdefault("papermill", {})
        whole["exception"] = True if self.failed else None
        whole["start_time"] = None if self.begun is None else _time(self.begun)
        whole["end_time"] = None if self.last is None else _time(self.last)
        whole["duration"] = None if self.begun is None or self.last is None else self.last - self.begun
        self.notebook["metadata"].update(self.ended.get("metadata", {}))

    @property
    def failed(self) -> bool:
        """Whether the run has ended and not well."""
        return self.ended is not None and self.ended.get("state") != "done"

    @property
    def failure(self) -> dict[str, Any] | None:
        """The failed cell: ``index ename evalue traceback``; None when no cell failed."""
        return None if self.ended is None else self.ended.get("failure")

    def in_words(self) -> str:
        """Why it failed, in a sentence."""
        failure = self.failure
        if failure is None:
            ended = self.ended or {}
            return str(ended.get("message") or "nothing is known of its end")
        count = self.notebook["cells"][failure["index"]].get("execution_count")
        return f"cell {failure['index'] + 1} (In [{count or ' '}]): {failure['ename']}: {failure['evalue']}"

    def progress(self) -> Progress:
        """How many cells are in which state."""
        counts = Counter(str(_papermill(cell)["status"]) for cell in self.notebook["cells"])
        return Progress(counts.total(), counts["completed"], counts["failed"], counts["running"], counts["pending"])


def _papermill(cell: Any) -> dict[str, Any]:
    found: dict[str, Any] = cell["metadata"].setdefault("papermill", {})
    return found


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat()
