"""Which recorded traces of Jobs vcnb does not follow by default, and because of which differences from Volcano.

``python tests/golden/differing.py`` (with ``tests`` on the path) finds the reasons anew, in some minutes, and writes
docs/differences-traces.md; a test holds that page to what the controllers do.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterable, Iterator
from dataclasses import fields, replace
from pathlib import Path

from golden.inprocess import InProcessCluster
from golden.replay import Trace, replay, traces
from vcnb.controllers.job import behaviour as behaviour_module
from vcnb.controllers.job.behaviour import Behaviour
from vcnb.controllers.runtime.context import Compat

PAGE = Path(__file__).parents[2] / "docs" / "differences-traces.md"

HEAD = """\
<!-- Made by tests/golden/differing.py. -->

# Recorded traces that vcnb does not follow by default

With `compat="strict"` each of the {all} recordings of Volcano's Job controller (`tests/golden/job-*.json`) plays equal. By
default {differing} of them come to something else at some step, on purpose: the table says because of which
[quirks](differences-quirks.md), where the test of each is named. A quirk is given where its fix alone, with everything else
as upstream, makes the trace another one; `coalesce` stands for the first point [beyond the list](differences-quirks.md):
several changes that cost one sync. The other {equal} are equal by default too.

| Because of | Traces |
| --- | --- |
"""


def job_traces() -> list[Trace]:
    """All recorded traces of Jobs."""
    return traces("job-*.json")


def differs(trace: Trace, compat: Compat = "default", behaviour: Behaviour | None = None) -> bool:
    """Whether a trace is another one than recorded, by default or with a behaviour of its own."""
    with InProcessCluster(compat=compat, behaviour=behaviour) as cluster:
        return replay(trace, cluster) is not None


def switches() -> dict[str, tuple[str, ...]]:
    """Each switch of ``Behaviour`` with its quirks, as its documentation names them; none for what is beyond the list."""
    (klass,) = (node for node in ast.parse(inspect.getsource(behaviour_module)).body if isinstance(node, ast.ClassDef))
    found: dict[str, tuple[str, ...]] = {}
    for node, text in zip(klass.body, klass.body[1:], strict=False):
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and isinstance(text, ast.Expr):
            words = ast.literal_eval(text.value)
            found[node.target.id] = tuple(re.findall(r"Q\d+", words.partition(":")[0]))
    assert set(found) == {field.name for field in fields(Behaviour)}, "every switch needs its documentation"
    return found


def reasons(trace: Trace) -> list[str]:
    """The switches that make the trace differ, each alone; where none does, a smallest set that does together."""
    strict = Behaviour.strict()
    alone = [name for name in switches() if differs(trace, "strict", replace(strict, **{name: True}))]
    if alone or not differs(trace, "strict", Behaviour.default()):
        return alone
    needed = list(switches())
    for name in switches():
        fewer = [other for other in needed if other != name]
        if differs(trace, "strict", replace(strict, **dict.fromkeys(fewer, True))):
            needed = fewer
    return needed


def label(names: Iterable[str]) -> str:
    """Switches in words: their quirks in order, then what is beyond the list."""
    known = switches()
    quirks = sorted({quirk for name in names for quirk in known[name]}, key=lambda quirk: int(quirk[1:]))
    beyond = sorted(name for name in names if not known[name])
    return ", ".join([*quirks, *(f"`{name}`" for name in beyond)])


def page() -> str:
    """The whole page."""
    everything = job_traces()
    grouped: dict[str, list[str]] = {}
    for trace in everything:
        if differs(trace):
            grouped.setdefault(label(reasons(trace)) or "plugins", []).append(trace["name"])
    differing = sum(map(len, grouped.values()))
    head = HEAD.format(all=len(everything), differing=differing, equal=len(everything) - differing)
    return head + "".join(_rows(grouped))


def _rows(grouped: dict[str, list[str]]) -> Iterator[str]:
    def order(why: str) -> list[int]:
        return [int(number) for number in re.findall(r"\d+", why)] or [1000]

    for why in sorted(grouped, key=order):
        yield f"| {why} | {', '.join(f'`{name}`' for name in grouped[why])} |\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
