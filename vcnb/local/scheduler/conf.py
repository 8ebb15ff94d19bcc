"""What the scheduler does, as one value: which actions, which limits, which of upstream's habits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

__all__ = ["Action", "Conf"]

Action: TypeAlias = Literal["enqueue", "allocate", "backfill", "preempt", "reclaim"]

_DEFAULT: tuple[Action, ...] = ("enqueue", "allocate", "backfill")
_PREEMPT: tuple[Action, ...] = ("enqueue", "allocate", "preempt", "reclaim", "backfill")


@dataclass(frozen=True, slots=True)
class Conf:
    """The configuration of one scheduler.

    ``actions`` run in their order in every pass. ``overcommit`` is the factor of the overcommit plugin: groups are
    admitted on paper up to the machine times this factor; None leaves the plugin out. ``gang_preemptable`` keeps a
    victim's job at its minMember (Volcano's chart turns it off).

    The rest says where vcnb and upstream differ. ``every_group``: each pass tries every waiting group again, as
    upstream does each second, instead of leaving out those that cannot have become possible. ``announce_empty``:
    a Warning event ``0/0 tasks in gang unschedulable`` for a group whose pods are only about to be made.
    ``text_period``: seconds between two rewrites of the waiting pods' condition texts in a group with more than
    ``live_texts`` of them; the reason itself is always written at once.
    """

    actions: tuple[Action, ...] = _DEFAULT
    overcommit: float | None = 1.2
    gang_preemptable: bool = False
    every_group: bool = False
    announce_empty: bool = False
    text_period: float = 1.0
    live_texts: int = 16

    def __post_init__(self) -> None:
        if self.overcommit is not None and self.overcommit < 1:  # as the plugin does with such an argument
            object.__setattr__(self, "overcommit", 1.2)

    @classmethod
    def strict(cls, actions: tuple[Action, ...] = _DEFAULT, overcommit: float | None = 1.2) -> Conf:
        """Exactly as upstream, for comparing with recordings."""
        return cls(actions, overcommit, every_group=True, announce_empty=True, text_period=0.0)

    @classmethod
    def preempting(cls, *, strict: bool = False) -> Conf:
        """With preempt inside a queue and reclaim between queues, and without overcommit."""
        return cls.strict(_PREEMPT, None) if strict else cls(_PREEMPT, None)

    @property
    def tries_every_group(self) -> bool:
        """Taking victims needs the whole picture."""
        return self.every_group or "preempt" in self.actions or "reclaim" in self.actions
