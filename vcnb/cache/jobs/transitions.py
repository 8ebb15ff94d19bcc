"""The transitions of a job as a table (reference 1.3), and the functions that make them.

Each function takes the record as it was read and gives a ``Move``: what it was, what it is to be, and whose lease the store
must check. ``JobStore.apply`` carries a move out in one conditional write, at most once, or not at all. A move that is not
in the table is refused before anything is written.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from msgspec.structs import replace

from vcnb.cache.jobs.record import ACTIVE, LIVE, TERMINAL, JobRecord, JobState
from vcnb.errors import InvalidState

__all__ = [
    "RESETS",
    "TABLE",
    "Duplicate",
    "Move",
    "Rule",
    "check",
    "claim",
    "fail",
    "reclaim",
    "remove",
    "rerun",
    "restart",
    "stop",
    "submit",
    "succeed",
    "verify",
]

W, R, V = JobState.WAITING, JobState.RUNNING, JobState.VERIFYING
S, F, X = JobState.SUCCEEDED, JobState.FAILED, JobState.STOPPED


class Rule(NamedTuple):
    """A row of the table. None as a state is "no record"."""

    sources: frozenset[JobState | None]
    target: JobState | None
    trigger: str


TABLE: Final[Mapping[str, Rule]] = {
    "T1": Rule(frozenset({None, S, F}), W, "submit"),
    "T2": Rule(frozenset({X}), W, "submit of a stopped job"),
    "T3": Rule(frozenset({W}), R, "claim"),
    "T4": Rule(frozenset({R}), V, "all tasks done, verification asked for"),
    "T5": Rule(frozenset({R}), S, "all tasks done"),
    "T6": Rule(frozenset({R}), F, "unhealthy, failed files, or an error"),
    "T7": Rule(frozenset({V}), S, "a pass finds nothing missing"),
    "T8": Rule(frozenset({V}), F, "passes exhausted, or unhealthy"),
    "T9": Rule(frozenset({W, R, V}), X, "stop"),
    "T10": Rule(frozenset({R, V}), W, "the owner's lease has ended"),
    "T11": Rule(frozenset({R, V}), W, "the only coordinator has started anew"),
    "T12": Rule(frozenset({R, V, F, X}), W, "rerun"),
    "T13": Rule(frozenset({S, F, X}), None, "retention has passed"),
}

OWNERS: Final = frozenset({"T3", "T4", "T5", "T6", "T7", "T8"})
"""Moves that only the owner makes, and only while its lease lives."""

RESETS: Final = ("file_filter", "replicas", "metadata_only", "index_file")
"""Options that make the checkpoint of a stopped job worthless when they change (reference T2)."""


@dataclass(frozen=True)
class Move:
    """One transition to carry out.

    ``owner``: its lease must be alive. ``dead``: its lease must have ended. ``forget``: counters and checkpoint go.
    """

    rule: str
    before: JobRecord | None
    after: JobRecord | None
    owner: str = ""
    dead: str = ""
    forget: bool = False


@dataclass(frozen=True)
class Duplicate:
    """The submission changes nothing: the job is there. ``differing`` names the options that were not applied."""

    record: JobRecord
    differing: tuple[str, ...]


def submit(existing: JobRecord | None, asked: JobRecord, now_ms: int) -> Move | Duplicate:
    """T1, T2, or nothing. ``asked`` is a new record with a uuid of its own (reference 1.5)."""
    if existing is not None and existing.state in LIVE:
        return Duplicate(existing, existing.options.differing(asked.options))
    if existing is not None and existing.state == X:
        changed = existing.options.differing(asked.options)
        forget = any(name in changed for name in RESETS)
        after = replace(
            _next(existing, W),
            owner="",
            options=asked.options,
            submit_ms=now_ms,
            start_ms=0,
            end_ms=0,
            reason="",
            message="",
            warnings=(),
            token=existing.token or asked.token,
            reclaims=0,
        )
        return Move("T2", existing, after, forget=forget)
    return Move("T1", existing, replace(asked, state=W, epoch=0, version=0, submit_ms=now_ms))


def claim(record: JobRecord, owner: str, now_ms: int) -> Move:
    """T3: the coordinator ``owner`` takes a waiting job."""
    after = replace(_next(record, R), owner=owner, epoch=record.epoch + 1, start_ms=record.start_ms or now_ms, end_ms=0)
    return Move("T3", record, after, owner=owner)


def verify(record: JobRecord) -> Move:
    """T4: everything is done; what was done is looked at."""
    return Move("T4", record, _next(record, V), owner=record.owner)


def succeed(record: JobRecord, now_ms: int, message: str = "") -> Move:
    """T5 or T7."""
    after = replace(_next(record, S), end_ms=now_ms, message=message)
    return Move("T5" if record.state == R else "T7", record, after, owner=record.owner)


def fail(record: JobRecord, now_ms: int, reason: str, message: str) -> Move:
    """T6 or T8."""
    after = replace(_next(record, F), end_ms=now_ms, reason=reason, message=message)
    return Move("T6" if record.state == R else "T8", record, after, owner=record.owner)


def stop(record: JobRecord, now_ms: int) -> Move | None:
    """T9; None when the job has ended."""
    if record.state not in LIVE:
        return None
    return Move("T9", record, replace(_next(record, X), end_ms=now_ms))


def reclaim(record: JobRecord, mark: str) -> Move:
    """T10: the owner is gone. ``mark`` is the checkpoint's; without progress since the last time ``reclaims`` grows."""
    return Move("T10", record, _requeued(record, mark), dead=record.owner)


def restart(record: JobRecord, mark: str) -> Move:
    """T11: the process that owns the store has started anew."""
    return Move("T11", record, _requeued(record, mark))


def rerun(record: JobRecord) -> Move | None:
    """T12; None for a job that waits or has succeeded. One that failed begins anew, any other at its checkpoint."""
    if record.state not in TABLE["T12"].sources:
        return None
    after = replace(_next(record, W), owner="", end_ms=0, reason="", message="", reclaims=0, reclaim_mark="")
    return Move("T12", record, after, forget=record.state == F)


def remove(record: JobRecord, now_ms: int, retention_ms: int) -> Move | None:
    """T13; None while the job lives or is younger than the retention time (inclusive)."""
    if record.state not in TERMINAL or record.end_ms > now_ms - retention_ms:
        return None
    return Move("T13", record, None)


def check(move: Move) -> None:
    """Raises InvalidState for a move that is not in the table, or that changes what it must not."""
    rule = TABLE[move.rule]
    before, after = move.before, move.after
    state = before.state if before is not None else None
    target = after.state if after is not None else None
    if state not in rule.sources or target != rule.target:
        raise InvalidState(f"{move.rule} does not lead from {state} to {target}")
    if before is None or after is None:
        return
    if (before.type, before.path) != (after.type, after.path):
        raise InvalidState(f"{move.rule} makes {before.type} {before.path} another job")
    if move.rule == "T1":
        if after.uuid == before.uuid or after.epoch != 0:
            raise InvalidState("T1 makes a new job, with a uuid of its own and epoch 0")
        return
    if after.uuid != before.uuid or after.version != before.version + 1:
        raise InvalidState(f"{move.rule} keeps the uuid and counts the version up by one")
    if after.epoch != before.epoch + (move.rule == "T3"):
        raise InvalidState("the epoch counts claims")
    if move.rule in OWNERS and (not move.owner or after.owner != move.owner):
        raise InvalidState(f"{move.rule} is a move of the owner")
    if before.state in ACTIVE and move.rule in OWNERS and before.owner != move.owner:
        raise InvalidState(f"{move.owner} does not own {before.type} {before.path}; {before.owner} does")


def _next(record: JobRecord, state: JobState) -> JobRecord:
    return replace(record, state=state, version=record.version + 1)


def _requeued(record: JobRecord, mark: str) -> JobRecord:
    reclaims = record.reclaims + 1 if mark == record.reclaim_mark or not record.reclaims else 1
    return replace(_next(record, W), owner="", reclaims=reclaims, reclaim_mark=mark)
