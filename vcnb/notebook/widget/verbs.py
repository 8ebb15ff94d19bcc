"""The buttons of a job: which make sense in which phase, and carrying one out."""

from __future__ import annotations

from collections.abc import Coroutine, Mapping
from typing import Any, Final

from vcnb.client.job import JobHandle

__all__ = ["VERBS", "carry_out", "verbs_of"]

_ACTIVE: Final = ("suspend", "restart", "terminate", "delete")
_BY_PHASE: Final[Mapping[str, tuple[str, ...]]] = {
    "": _ACTIVE,
    "Pending": _ACTIVE,
    "Running": _ACTIVE,
    "Restarting": ("suspend", "terminate", "delete"),
    "Aborting": ("resume", "delete"),
    "Aborted": ("resume", "delete"),
}
VERBS: Final = frozenset({"suspend", "resume", "restart", "terminate", "delete"})
_CONFIRM: Final = "Delete job {name} with its pods?"


def verbs_of(name: str, phase: str, *, exists: bool) -> list[dict[str, str]]:
    """The buttons of a job in a phase, as the front end draws them."""
    wanted = _BY_PHASE.get(phase, ("delete",)) if exists else ()
    return [
        {
            "do": verb,
            "label": verb.capitalize(),
            **({"confirm": _CONFIRM.format(name=name)} if verb == "delete" else {}),
        }
        for verb in wanted
    ]


def carry_out(job: JobHandle, verb: str) -> Coroutine[Any, Any, Any]:
    """What a button does, to be run on the cluster's loop. Only verbs of ``VERBS``."""
    if verb == "delete":
        return job._delete(wait=False)  # noqa: SLF001 - a view is a part of the client's inside
    work: Coroutine[Any, Any, Any] = getattr(job, f"_{verb}")()
    return work
