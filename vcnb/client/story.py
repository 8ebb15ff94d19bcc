"""``job.story()``: what has happened to a job, step by step, as a table of records."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Protocol, overload

from vcnb.client.records import PhaseRecord

__all__ = ["Step", "Story", "steps_of"]


@dataclass(frozen=True)
class Step:
    """One step: at ``time`` (UTC) ``stimulus`` was seen, and the job moved from phase ``before`` to ``after``.

    The two are equal when it stayed, for example while an action waits for its time. ``reason`` tells what decided: the pods
    by phase, the retry that was used, the target of a restart, or what went wrong.
    """

    time: datetime | None
    stimulus: str
    before: str
    after: str
    reason: str = ""

    @property
    def moved(self) -> str:
        """``Running -> Restarting``, or ``stays Running``."""
        return (
            f"{self.before or '(new)'} -> {self.after}"
            if self.before != self.after
            else f"stays {self.after or '(new)'}"
        )

    def __str__(self) -> str:
        because = f"  ({self.reason})" if self.reason else ""
        return f"{_clock(self.time)}  {self.moved}  {self.stimulus}{because}"

    def __repr__(self) -> str:
        return f"<{self}>"


class Story(Sequence[Step]):
    """The steps of a job, oldest first. Shows itself as a table; ``to_pandas()`` makes a DataFrame."""

    def __init__(self, steps: Iterable[Step]) -> None:
        self._steps = tuple(steps)

    @overload
    def __getitem__(self, index: int) -> Step: ...

    @overload
    def __getitem__(self, index: slice) -> Story: ...

    def __getitem__(self, index: int | slice) -> Step | Story:
        return Story(self._steps[index]) if isinstance(index, slice) else self._steps[index]

    def __len__(self) -> int:
        return len(self._steps)

    def to_pandas(self) -> Any:
        """A pandas DataFrame with the columns ``time stimulus before after reason``."""
        import pandas as pd

        columns = ["time", "stimulus", "before", "after", "reason"]
        return pd.DataFrame([[getattr(step, name) for name in columns] for step in self._steps], columns=columns)

    def __repr__(self) -> str:
        if not self._steps:
            return "nothing has happened yet"
        moves, stimuli = (max(len(text) for text in texts) for texts in zip(*self._texts(), strict=True))
        rows = [
            f"{_clock(step.time)}  {step.moved:<{moves}}  {step.stimulus:<{stimuli}}  {step.reason}".rstrip()
            for step in self._steps
        ]
        return "\n".join(rows)

    def _texts(self) -> list[tuple[str, str]]:
        return [(step.moved, step.stimulus) for step in self._steps]


class _Chapter(Protocol):
    """A step as a controller notes it; the time in seconds since the epoch."""

    time: float
    stimulus: str
    before: str
    after: str
    reason: str


def steps_of(chapters: Iterable[_Chapter], history: Sequence[PhaseRecord]) -> Story:
    """The controller's own notes, and before them the phases that the job itself remembers from earlier controllers."""
    noted = [
        Step(datetime.fromtimestamp(each.time, UTC), each.stimulus, each.before, each.after, each.reason)
        for each in chapters
    ]
    start = next((step.time for step in noted), None)
    before = ""
    earlier = []
    for record in history:
        if start is not None and (record.time is None or record.time >= start):
            break
        numbers = ", ".join(f"{count} {counter}" for counter, count in record.counters.items())
        earlier.append(Step(record.time, record.message or record.reason, before, record.phase, numbers))
        before = record.phase
    return Story([*earlier, *noted])


def _clock(time: datetime | None) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S") if time is not None else " " * 19
