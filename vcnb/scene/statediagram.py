"""The state machine of a Job, drawn from the controller's own table: where the job is, which way it came, how often.

Every transition that the table knows is drawn, faintly; those that the job took are drawn in full, with how often. A phase says
when it was entered last, since the job was created.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from functools import lru_cache
from itertools import pairwise
from typing import Final

from vcnb.controllers.job.states import ANY_ACTION, rows
from vcnb.resources.phases import JobPhase
from vcnb.scene.arrows import Box, bent
from vcnb.scene.phases import phases
from vcnb.scene.svg import Figure, element, shape, text, titled
from vcnb.scene.words import TIMES, mark, seconds_of, span
from vcnb.store.protocol import Obj

__all__ = ["state_diagram", "transitions"]

_WIDTH, _HEIGHT = 112.0, 40.0
_P = JobPhase
_PLACES: Final[Mapping[str, tuple[float, float]]] = {
    _P.PENDING: (66, 88),
    _P.RUNNING: (250, 88),
    _P.RESTARTING: (158, 152),
    _P.COMPLETING: (436, 28),
    _P.TERMINATING: (436, 148),
    _P.ABORTING: (436, 208),
    _P.COMPLETED: (620, 28),
    _P.FAILED: (620, 88),
    _P.TERMINATED: (620, 148),
    _P.ABORTED: (620, 208),
}
_BOXES: Final = {str(phase): Box(x, y, _WIDTH, _HEIGHT) for phase, (x, y) in _PLACES.items()}
_BENDS: Final[Mapping[tuple[str, str], float]] = {
    (_P.PENDING, _P.RUNNING): 7,
    (_P.RUNNING, _P.PENDING): 7,
    (_P.PENDING, _P.RESTARTING): 5,
    (_P.RESTARTING, _P.PENDING): 5,
    (_P.PENDING, _P.COMPLETING): 12,
    (_P.PENDING, _P.TERMINATING): 8,
    (_P.PENDING, _P.ABORTING): -36,
    (_P.RUNNING, _P.COMPLETED): -5,
    (_P.RESTARTING, _P.FAILED): 4,
    (_P.RESTARTING, _P.ABORTING): 6,
    (_P.ABORTING, _P.RESTARTING): 6,
    (_P.ABORTED, _P.RESTARTING): -64,
}


@lru_cache(maxsize=1)
def transitions() -> Mapping[tuple[str, str], tuple[str, ...]]:
    """Every (from, to) of the table in its default form, with what leads there: actions, or ``when`` in words."""
    found: dict[tuple[str, str], dict[str, None]] = {}
    for phase, action, row in rows():
        if row.rule is None:
            continue
        for target in row.rule.to:
            said = row.rule.when if action in (ANY_ACTION, "SyncJob") else action
            found.setdefault((phase or str(_P.PENDING), str(target)), {})[said] = None
    return {pair: tuple(said) for pair, said in found.items() if pair[0] in _PLACES}


def state_diagram(job: Obj) -> Figure:
    """The diagram of one job."""
    steps = [(phase, entered) for phase, entered in phases(job) if phase in _PLACES]
    current = str(job.get("status", {}).get("state", {}).get("phase", ""))
    taken = Counter((before, after) for (before, _), (after, _) in pairwise(steps))
    body = [_edge(pair, 0) for pair in transitions() if pair not in taken]
    body.extend(_edge(pair, count) for pair, count in taken.items())
    visits = Counter(phase for phase, _ in steps)
    entered = dict(steps)
    created = seconds_of(job["metadata"].get("creationTimestamp"))
    for phase in _PLACES:
        at = entered.get(phase)
        since = span(at - created) if at is not None and created is not None else ""
        body.append(_node(str(phase), phase == current, visits[phase], since))
    return Figure(686, 258, "".join(body), _words(job, current, steps))


def _words(job: Obj, current: str, steps: list[tuple[str, float | None]]) -> str:
    way = ", then ".join(phase for phase, _ in steps)
    name = job["metadata"]["name"]
    return f"state diagram of job {name}: it is {current or 'new'}" + (f"; it was {way}" if way else "")


def _edge(pair: tuple[str, str], count: int) -> str:
    before, after = pair
    tone = mark(after).tone if count else ""
    drawn, middle = bent(_BOXES[before], _BOXES[after], _BENDS.get(pair, 0), "vx vw" if count else "vx", tone)
    title = f"{before} → {after}: {' or '.join(transitions().get(pair, ('seen',)))}"
    label = text(middle[0], middle[1] - 6, f"{count}{TIMES}", "vs vb", "middle") if count > 1 else ""
    return titled(title, drawn + label, class_="" if count else "vf")


def _node(phase: str, here: bool, visits: int, since: str) -> str:
    box, shown = _BOXES[phase], mark(phase)
    left, top = box.x - box.width / 2, box.y - box.height / 2
    frame = f"vn vw vk-{shown.tone}" if here else f"vn vk-{shown.tone}" if visits else "vn vd"
    parts = [element("rect", x=left, y=top, width=box.width, height=box.height, rx=8, class_=frame)]
    if here:
        parts.append(
            element("rect", x=left, y=top, width=box.width, height=box.height, rx=8, class_=f"vf-{shown.tone} vh")
        )
    line = box.y - 3 if visits else box.y + 4
    parts.append(shape(left + 15, line, shown))
    parts.append(text(left + 28, line, phase, "vt vb" if here else "vt"))
    if visits:
        often = f" · {visits}{TIMES}" if visits > 1 else ""
        parts.append(text(left + 28, box.y + 13, f"+{since}{often}" if since else often.strip(" ·"), "vs"))
    return element("g", "".join(parts), class_="" if visits or here else "vq", data_key=phase)
