"""Writes docs/states.md from the state table of the Job controller: ``python docs/make_states.py``.

A test fails when the committed page is not what this makes.
"""  # noqa: INP001 - a script beside the page that it makes

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from vcnb.controllers.job.behaviour import Behaviour
from vcnb.controllers.job.states import ANY_ACTION, Pass, Retain, Row, row_for, rows
from vcnb.resources.phases import FINISHED, JobAction, JobPhase

PAGE = Path(__file__).parent / "states.md"

HEAD = """\
<!-- Made by docs/make_states.py from vcnb/controllers/job/states.py; change the table there and run it again. -->

# The phases of a Job

What the Job controller does is one table: for a phase and an action it says which pass runs over the job's pods, which
pods a kill pass keeps, and by which rule the next phase follows. An action comes from a [policy](differences.md), from a
Command, or is `SyncJob` when nothing special has happened.
"""

_WITH_OWN_ROWS = {phase for phase, action, _ in rows() if action != ANY_ACTION}

PHASES = {
    JobPhase.PENDING: "waits for its PodGroup to be admitted, or for enough pods to start",
    JobPhase.RUNNING: "`minAvailable` pods run or have finished",
    JobPhase.RESTARTING: "its pods were removed, and come again",
    JobPhase.COMPLETING: "asked to complete; pods are still going",
    JobPhase.TERMINATING: "asked to terminate; pods are still going",
    JobPhase.ABORTING: "asked to abort; pods are still going",
    JobPhase.ABORTED: "parked; only `ResumeJob` leaves it",
    JobPhase.COMPLETED: "ended well",
    JobPhase.FAILED: "ended badly, or out of retries",
    JobPhase.TERMINATED: "ended by somebody",
}

PASSES = """\
## Passes

| Pass | What it does |
| --- | --- |
| sync | makes the pods that are missing (once the PodGroup is admitted, and when `dependsOn` allows), removes those that are too many, counts |
| kill | removes the job's pods, all or all but the finished ones, and the PodGroup; pods of earlier versions become outdated |
| kill target | removes the pods of one task, one pod, or one partition; the PodGroup stays |

On the last retry a kill pass keeps finished pods whatever the table says, so that they can be looked at.
"""


def page() -> str:
    """The whole page."""
    return "\n".join([HEAD, *_phases(), PASSES, *_table(), *_rules(), *_diagram(), *_upstream()])


def _phases() -> Iterator[str]:
    yield "| Phase | The job |\n| --- | --- |"
    yield from (f"| {phase} | {text} |" for phase, text in PHASES.items())
    yield f"\n{_listed(sorted(FINISHED))} are final. A job that was never looked at has no phase and counts as Pending.\n"


def _table() -> Iterator[str]:
    yield "## The table\n\n| Phase | Action | Pass | Keeps | Next phase | When |\n| --- | --- | --- | --- | --- | --- |"
    for phases, actions, row in _merged():
        others = "any other" if phases[0] in _WITH_OWN_ROWS else "any"
        cells = [_listed(phases), _listed(_action(action, others) for action in actions)]
        cells += [row.pass_, _keeps(row), *_next(row)]
        yield f"| {' | '.join(cells)} |"
    yield "\n“Any other” is every action that the phase has no row of its own for.\n"


def _merged() -> list[tuple[list[str], list[str], Row]]:
    """Rows that say the same of several phases or actions, as one."""
    by_phase: dict[str, list[tuple[list[str], Row]]] = {}
    for phase, action, row in rows():
        if phase == JobPhase.UNSET:
            continue
        entries = by_phase.setdefault(phase, [])
        same = next((entry for entry in entries if _says(entry[1]) == _says(row)), None)
        if same is None:
            entries.append(([action], row))
        else:
            same[0].append(action)
    merged: list[tuple[list[str], list[str], Row]] = []
    for phase, entries in by_phase.items():
        for actions, row in sorted(entries, key=lambda entry: ANY_ACTION in entry[0]):
            shown = [ANY_ACTION] if ANY_ACTION in actions else actions
            like = (shown, _says(row), phase in _WITH_OWN_ROWS)
            same_row = next(
                (each for each in merged if (each[1], _says(each[2]), each[0][0] in _WITH_OWN_ROWS) == like), None
            )
            if same_row is None:
                merged.append(([phase], shown, row))
            else:
                same_row[0].append(phase)
    return merged


def _says(row: Row) -> tuple[object, ...]:
    return row.pass_, row.retain, row.rule


def _action(action: str, others: str = "any other") -> str:
    return others if action == ANY_ACTION else f"`{action}`"


def _keeps(row: Row) -> str:
    if row.pass_ is Pass.SYNC:
        return ""
    return "finished pods" if row.retain is Retain.SOFT else "none"


def _next(row: Row) -> tuple[str, str]:
    if row.rule is None:
        return "stays", ""
    return _listed(row.rule.to), row.rule.when


def _rules() -> Iterator[str]:
    yield "## The rules\n\n| Rule | May lead to | When |\n| --- | --- | --- |"
    seen: list[str] = []
    for _, _, row in rows():
        rule = row.rule
        if rule is not None and rule.name not in seen:
            seen.append(rule.name)
            yield f"| {rule.name} | {_listed(rule.to)} | {rule.when} |"
    yield ""


def _diagram() -> Iterator[str]:
    yield "## The diagram\n\n```mermaid\nstateDiagram-v2\n    [*] --> Pending"
    for (before, after), why in _moves().items():
        yield f"    {before} --> {after}: {', '.join(why)}"
    yield from (f"    {phase} --> [*]" for phase in JobPhase if phase in FINISHED)
    yield "```\n"


def _moves() -> dict[tuple[str, str], list[str]]:
    """From, to -> what makes the move: an action, or the rule where a sync or any action does."""
    moves: dict[tuple[str, str], list[str]] = {}
    for phase, action, row in rows():
        if phase == JobPhase.UNSET or row.rule is None:
            continue
        own = action not in (ANY_ACTION, JobAction.SYNC_JOB) and len(row.rule.to) == 1
        for to in row.rule.to:
            why = moves.setdefault((phase, to.value), [])
            label = action if own else row.rule.name
            if to.value != phase and label not in why:
                why.append(label)
    return {move: why for move, why in moves.items() if why}


def _upstream() -> Iterator[str]:
    yield "## Upstream\n"
    yield 'With `compat="strict"` these rows are Volcano\'s; see [differences.md](differences.md).\n'
    yield "| Phase | Action | Pass | Keeps | Next phase | When |\n| --- | --- | --- | --- | --- | --- |"
    strict = Behaviour.strict()
    for phase, action, row in rows():
        other = row_for(phase, action, strict)
        if phase != JobPhase.UNSET and _says(other) != _says(row):
            cells = [phase, _action(action), other.pass_, _keeps(other), *_next(other)]
            yield f"| {' | '.join(cells)} |"
    yield ""


def _listed(names: Iterable[object]) -> str:
    return ", ".join(map(str, names))


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
