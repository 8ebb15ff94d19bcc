"""An answer in plain words: one sentence, a few facts, and what to do next."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

__all__ = ["MAX_FACTS", "Answer", "amount", "few", "listed", "ordinal", "plural", "sentence"]

MAX_FACTS = 8
_MAX_LENGTH = 300


@dataclass(frozen=True)
class Answer:
    """What is said about a job. ``next`` is empty where there is nothing to do."""

    sentence: str
    facts: tuple[str, ...] = field(default=())
    next: str = ""

    def with_facts(self, *more: str | Iterable[str]) -> Answer:
        """The answer with more facts at its end; empty ones and repetitions are left out."""
        facts = [*self.facts, *(fact for item in more for fact in ([item] if isinstance(item, str) else item))]
        return Answer(self.sentence, tuple(dict.fromkeys(fact for fact in facts if fact)), self.next)

    def cleaned(self, clean: Callable[[str], str]) -> Answer:
        """The answer with every part as ``clean`` leaves it."""
        return Answer(clean(self.sentence), tuple(map(clean, self.facts)), clean(self.next))

    def text(self) -> str:
        """The sentence, at most eight facts as bullets, then ``Next: ...``."""
        facts = self.facts[:MAX_FACTS]
        if len(self.facts) > MAX_FACTS:
            facts = (*self.facts[: MAX_FACTS - 1], f"and {len(self.facts) - MAX_FACTS + 1} more facts: job.events")
        lines = [_shorten(sentence(self.sentence)), *(f"- {_shorten(fact)}" for fact in facts)]
        return "\n".join([*lines, f"Next: {self.next}"] if self.next else lines)


def _shorten(text: str) -> str:
    one_line = " ".join(text.split())
    return one_line if len(one_line) <= _MAX_LENGTH else one_line[: _MAX_LENGTH - 1].rstrip() + "…"


def sentence(text: str) -> str:
    """The text with a full stop."""
    text = text.strip()
    return text if text.endswith((".", "!", "?", "…")) else f"{text}."


def plural(count: int, word: str) -> str:
    """``1 pod``, ``3 pods``."""
    return f"{count} {word}" if count == 1 else f"{count} {word}s"


def amount(count: int, total: int, word: str = "pod") -> str:
    """``2 of 3 pods``; ``all 3 pods``, ``the pod`` when it is all of them."""
    if count == total:
        return f"the {word}" if total == 1 else f"all {total} {word}s"
    return f"{count} of {plural(total, word)}"


def listed(names: Iterable[str], most: int = 3) -> str:
    """``a, b and c``; from the fourth on ``a, b, c and 5 more``."""
    items = list(names)
    if len(items) > most:
        return f"{', '.join(items[:most])} and {len(items) - most} more"
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} and {items[-1]}" if items else ""


def few(items: Iterable[str], most: int = 3, what: str = "more") -> list[str]:
    """The first items, and a line that counts the rest."""
    found = list(items)
    rest = len(found) - most
    return [*found[:most], f"and {rest} {what}"] if rest > 0 else found


def ordinal(number: int) -> str:
    """``1st``, ``2nd``, ``11th``."""
    suffix = "th" if number % 100 in {11, 12, 13} else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{suffix}"
