"""Collecting what is wrong: problems and warnings with their field paths, and the knobs that rules read."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from vcnb.errors import Problem
from vcnb.resources.names import DEFAULT_SCHEDULER

__all__ = ["DEFAULT_RULES", "Findings", "Rules", "listing", "near", "quoted"]


@dataclass(frozen=True)
class Rules:
    """What an administrator may set. The defaults are those of vcnb; upstream's, where they differ, are named.

    ``scheduler_names``: schedulers that Jobs may name without a warning; the first is the default.
    ``max_queue_depth``: how many queues may stand below each other under ``root``.
    ``root_queue_protection``: the numbers of queue ``root`` cannot be changed.
    ``queue_pods_check``: a queue that holds pods cannot be deleted (upstream: off).
    ``empty_state_is_open``: a queue that its controller has not seen yet takes jobs (upstream: it does not).
    """

    scheduler_names: tuple[str, ...] = (DEFAULT_SCHEDULER,)
    max_queue_depth: int = 5
    root_queue_protection: bool = True
    queue_pods_check: bool = True
    empty_state_is_open: bool = True

    @classmethod
    def upstream(cls) -> Rules:
        """As Volcano's webhooks are set by default."""
        return cls(queue_pods_check=False, empty_state_is_open=False)


DEFAULT_RULES: Final = Rules()


@dataclass
class Findings:
    """The problems and warnings of one object, in the order in which they were found.

    ``strict`` tells whether the object was written by a person, who is also told of what Volcano would accept.
    """

    strict: bool = True
    rules: Rules = DEFAULT_RULES
    problems: list[Problem] = field(default_factory=list)
    warnings: list[Problem] = field(default_factory=list)

    def refuse(self, path: str, message: str) -> None:
        """A rule that upstream, too, refuses (or whose breach would harm the cluster, whoever wrote it)."""
        self.problems.append(Problem(path, None, message))

    def mistake(self, path: str, message: str) -> None:
        """Upstream accepts it although it is surely a mistake: refused when a person wrote it."""
        if self.strict:
            self.refuse(path, message)

    def warn(self, path: str, message: str) -> None:
        """Accepted, but surely not what is meant; told only to a person."""
        if self.strict:
            self.warnings.append(Problem(path, None, message))

    def refused_at(self, path: str) -> bool:
        """Whether a problem is already known at exactly this path."""
        return any(problem.path == path for problem in self.problems)


def quoted(names: Iterable[object]) -> str:
    """``'a', 'b' and 'c'``."""
    texts = [repr(str(name)) for name in names]
    return texts[0] if len(texts) == 1 else ", ".join(texts[:-1]) + f" and {texts[-1]}" if texts else "none"


def listing(names: Iterable[object], limit: int = 12) -> str:
    """``a, b, c``, cut after ``limit`` names."""
    texts = [str(name) for name in names]
    return ", ".join(texts[:limit]) + (f" and {len(texts) - limit} more" if len(texts) > limit else "")


def near(name: object, known: Iterable[object], what: str = "known") -> str:
    """The end of a message: ``; did you mean 'x'?``, else what is known, else nothing."""
    names = [str(candidate) for candidate in known]
    if not names:
        return ""
    by_lower = {candidate.lower(): candidate for candidate in reversed(names)}
    found = difflib.get_close_matches(str(name).lower(), list(by_lower), n=1)
    if found:
        return f"; did you mean {by_lower[found[0]]!r}?"
    return f"; {what}: {listing(names)}"
