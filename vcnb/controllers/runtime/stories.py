"""Stories: what happened to an object, in order, kept in memory for people and for error messages."""

from __future__ import annotations

from collections import OrderedDict, deque
from typing import NamedTuple

from vcnb.clock import Clock, rfc3339

__all__ = ["Chapter", "Stories"]


class Chapter(NamedTuple):
    """One step of a story: at ``time`` (seconds since the epoch) ``stimulus`` moved the object on."""

    time: float
    stimulus: str
    before: str
    after: str
    reason: str

    def __str__(self) -> str:
        moved = (
            f"{self.before or '(new)'} -> {self.after}"
            if self.before != self.after
            else f"stays {self.after or '(new)'}"
        )
        because = f": {self.reason}" if self.reason else ""
        return f"{rfc3339(self.time)} {self.stimulus}: {moved}{because}"


class Stories:
    """The last ``length`` steps of each of the last ``objects`` objects; older ones are dropped."""

    def __init__(self, clock: Clock, *, length: int = 50, objects: int = 2000) -> None:
        self._clock = clock
        self._length = length
        self._objects = objects
        self._stories: OrderedDict[str, deque[Chapter]] = OrderedDict()

    def tell(self, key: str, stimulus: str, before: str, after: str, reason: str = "") -> None:
        """Add a step to the story of ``key``; what repeats the last step is not told again."""
        story = self._stories.get(key)
        if story is None:
            story = self._stories[key] = deque(maxlen=self._length)
            if len(self._stories) > self._objects:
                self._stories.popitem(last=False)
        else:
            self._stories.move_to_end(key)
        if not story or story[-1][1:] != (stimulus, before, after, reason):
            story.append(Chapter(self._clock.time(), stimulus, before, after, reason))

    def of(self, key: str) -> tuple[Chapter, ...]:
        """The story of ``key``, oldest first; empty when nothing is known."""
        return tuple(self._stories.get(key, ()))

    def text(self, key: str, last: int = 10) -> str:
        """The last steps, one a line, for a log or an error."""
        return "\n".join(f"  {chapter}" for chapter in self.of(key)[-last:])

    def forget(self, key: str) -> None:
        """Drop the story of an object that is gone."""
        self._stories.pop(key, None)
