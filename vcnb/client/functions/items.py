"""What became of one item of a call or a map: its state, its value, its error."""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from vcnb.errors import CallFailed
from vcnb.store.protocol import Obj

__all__ = ["OVER", "Item", "ItemState", "Progress", "RemoteTraceback", "end_of_pod"]


class ItemState(StrEnum):
    """Where an item stands."""

    PENDING = "pending"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"


OVER = frozenset({ItemState.DONE, ItemState.FAILED, ItemState.CANCELLED})
"""States that an item does not leave any more."""


class RemoteTraceback(Exception):
    """The cause of an exception that came back from a pod: its traceback there, as text."""

    def __init__(self, text: str) -> None:
        self.text = text
        super().__init__(text)

    def __str__(self) -> str:
        return f'\n"""\n{self.text}"""'


@dataclass(frozen=True)
class Item:
    """One item.

    ``pod`` is the name of its pod (empty before there is one), ``attempts`` how often it was tried in that pod,
    ``seconds`` how long its last attempt took, ``error`` why it failed, in one line.
    """

    index: int
    state: ItemState
    pod: str = ""
    job: str = ""
    error: str = ""
    attempts: int = 0
    seconds: float = 0.0
    outcome: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @property
    def value(self) -> Any:
        """What the call returned. Raises what it raised, or CallFailed."""
        if self.state is not ItemState.DONE:
            raise self.exception()
        try:
            return pickle.loads(self.outcome["value"])  # noqa: S301 - what our own job returned
        except Exception as error:
            raise CallFailed(
                f"what {self._who} returned cannot be unpickled here: {type(error).__name__}: {error}",
                name=self.job,
                index=self.index,
                reason="unreadable",
            ) from error

    @property
    def _who(self) -> str:
        return f"item {self.index} of job {self.job!r}"

    def exception(self) -> Exception:
        """Why it failed: the exception itself when it can be unpickled here, else CallFailed. Its cause has the traceback."""
        error = self._original() or self._call_failed()
        text = self.outcome.get("traceback")
        if text:
            error.__cause__ = RemoteTraceback(text)
        if not isinstance(error, CallFailed):
            error.add_note(f"({self._who}, in pod {self.pod})")
        return error

    def _original(self) -> Exception | None:
        pickled = self.outcome.get("error")
        if pickled is None:
            return None
        try:
            found = pickle.loads(pickled)  # noqa: S301 - what our own job raised
        except Exception:  # noqa: BLE001 - a class that is not here, or that cannot be built from its arguments
            return None
        # One of these would end a coroutine instead of being raised by it.
        return found if isinstance(found, Exception) and not isinstance(found, _STOPS) else None

    def _call_failed(self) -> CallFailed:
        return CallFailed(
            f"{self._who} {_VERBS.get(self.state, 'failed')}: {self.error or 'nothing is known of it'}",
            name=self.job,
            index=self.index,
            reason=str(self.outcome.get("reason", self.state)),
            kind=str(self.outcome.get("kind", "")),
            traceback=str(self.outcome.get("traceback", "")),
        )


_STOPS = (StopIteration, StopAsyncIteration)
_VERBS = {
    ItemState.CANCELLED: "was cancelled",
    ItemState.PENDING: "has not run yet",
    ItemState.RUNNING: "is running",
}


@dataclass(frozen=True)
class Progress:
    """How many items are in which state."""

    total: int
    done: int = 0
    failed: int = 0
    running: int = 0
    pending: int = 0
    cancelled: int = 0

    @classmethod
    def of(cls, items: Iterable[Item]) -> Progress:
        """The counts of some items."""
        counts = Counter(item.state.value for item in items)
        return cls(total=counts.total(), **counts)

    @property
    def over(self) -> bool:
        """Whether nothing is left to run."""
        return self.running == self.pending == 0

    def __str__(self) -> str:
        others = ((name, getattr(self, name)) for name in ("failed", "running", "pending", "cancelled"))
        return ", ".join(
            [f"{self.done} of {self.total} done", *(f"{number} {name}" for name, number in others if number)]
        )


def end_of_pod(pod: Obj, *, damaged: bool) -> dict[str, Any]:
    """The outcome of a pod that ended without telling one, from its status."""
    status = pod.get("status", {})
    ends = [
        state["terminated"]
        for container in status.get("containerStatuses", ())
        if "terminated" in (state := container.get("state", {}))
    ]
    end = ends[0] if ends else {}
    code = end.get("exitCode", 0)
    told = str(end.get("message") or status.get("message") or "").strip().splitlines()
    said = f": {told[-1]}" if told and not told[-1].startswith("@vcnb ") else ""
    reason = str(end.get("reason") or status.get("reason") or "")
    if damaged or code == 0:
        message = (
            "its result was lost on the way: the pod's log was rotated, cut or removed; return less, or print less"
        )
        return _lost(message)
    if reason == "OOMKilled":
        return _lost("its pod ran out of memory (OOMKilled); ask for more: resources={'memory': ...}")
    hint = " (killed from outside, or out of memory)" if code == 137 else ""
    named = f", {reason}" if reason and reason != "Error" else ""
    return _lost(f"its pod ended with exit code {code}{hint}{named}{said}")


def _lost(message: str) -> dict[str, Any]:
    return {"state": "failed", "reason": "lost", "kind": "", "message": message, "traceback": "", "error": None}
