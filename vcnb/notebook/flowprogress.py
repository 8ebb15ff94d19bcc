"""Progress of a flow without a live front end: a printed line for every change of the flow and of its nodes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from vcnb.client.flow import ENDED, FlowHandle
from vcnb.resources.phases import NODE_FINISHED, NodePhase
from vcnb.scene.words import mark, span

__all__ = ["report_flow"]

MANY = 40
"""Of a flow with more nodes only counts are printed."""


def report_flow(flow: FlowHandle, timeout: float | None = None) -> None:
    """Print until the flow has ended. Raises WaitTimeout."""
    said, before = "", dict[str, str]()
    for state in flow.watch(timeout=timeout):
        many = len(state.nodes) > MANY
        line = f"{mark(state.phase).shape} {flow.name}: {state.phase or 'new'}" + (_counts(state.nodes) if many else "")
        moved = {} if many else {name: phase for name, phase in state.nodes.items() if before.get(name, _NEW) != phase}
        when = span(state.seconds)
        if line != said and state.phase not in ENDED:
            print(f"{line}  +{when}", flush=True)  # noqa: T201 - the front end shows nothing else
        for name, phase in moved.items():
            print(f"  {mark(phase).shape} {name}: {phase}  +{when}", flush=True)  # noqa: T201 - as above
        if line != said and state.phase in ENDED:
            print(f"{line}  +{when}", flush=True)  # noqa: T201 - as above
        said, before = line, dict(state.nodes)


_NEW = NodePhase.WAITING.value


def _counts(nodes: Mapping[str, str]) -> str:
    done = sum(phase in NODE_FINISHED for phase in nodes.values())
    other = Counter(phase for phase in nodes.values() if phase not in NODE_FINISHED and phase != _NEW)
    more = "".join(f", {number} {phase}" for phase, number in other.items())
    return f" ({done} of {len(nodes)} nodes done{more})"
