"""Whether what a node waits for has happened. Pure.

The state of one edge is a function of its target's entry in ``status.nodes``; a node keeps counts of its edges' states,
so that a change of one target costs the same however many others there are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any, Final, TypeAlias

from vcnb.controllers.flow.spec import ABORTED, RUNNING, Edge, Node
from vcnb.resources.phases import NODE_FINISHED, NodePhase

__all__ = ["EdgeState", "Edges", "Entry", "Verdict", "edge_state"]

Entry: TypeAlias = Mapping[str, Any]
"""One entry of ``status.nodes``."""

_FAILED: Final = frozenset({NodePhase.FAILED.value, NodePhase.TIMED_OUT.value})
_FINISHED: Final = frozenset(phase.value for phase in NODE_FINISHED)


class EdgeState(Enum):
    """What is known of one edge."""

    OPEN = "open"
    MET = "met"
    DEAD = "dead"
    """It can no longer be met."""


class Verdict(Enum):
    """What is known of all of a node's edges together."""

    OPEN = "open"
    MET = "met"
    IMPOSSIBLE = "impossible"


def edge_state(edge: Edge, follower: Node, target: Entry, target_may_fail: bool, latched: bool) -> EdgeState:
    """The state of an edge. ``latched``: a probe of the follower has passed on this target.

    A plain target is met by success, by failure where that is allowed, and (``all`` only) by being skipped.
    """
    if latched:
        return EdgeState.MET
    phase = target["phase"]
    if edge.phases is not None:
        return _with_phases(edge.phases, phase, target)
    if phase not in _FINISHED:
        return EdgeState.OPEN
    if phase == NodePhase.SUCCEEDED or (phase in _FAILED and target_may_fail):
        return EdgeState.MET
    return EdgeState.MET if phase == NodePhase.SKIPPED and not follower.any_edge else EdgeState.DEAD


def _with_phases(phases: frozenset[str], phase: str, target: Entry) -> EdgeState:
    if RUNNING in phases and target.get("ran"):
        return EdgeState.MET
    if ABORTED in phases and target.get("paused"):
        return EdgeState.MET
    if phase in _FINISHED:
        return EdgeState.MET if phase in phases else EdgeState.DEAD
    return EdgeState.OPEN


class Edges:
    """The states of one node's edges, counted."""

    __slots__ = ("_dead", "_met", "_node", "states")

    def __init__(self, node: Node, state_of: Callable[[Edge], EdgeState]) -> None:
        self._node = node
        self.states = [state_of(edge) for edge in node.edges]
        self._met = self.states.count(EdgeState.MET)
        self._dead = self.states.count(EdgeState.DEAD)

    def update(self, number: int, state: EdgeState) -> bool:
        """One edge has this state now; returns whether that is news."""
        before = self.states[number]
        if state is before:
            return False
        self.states[number] = state
        self._met += (state is EdgeState.MET) - (before is EdgeState.MET)
        self._dead += (state is EdgeState.DEAD) - (before is EdgeState.DEAD)
        return True

    @property
    def verdict(self) -> Verdict:
        """``all``: every edge met, impossible with one dead; ``any``: one met, impossible when all are dead."""
        total = len(self.states)
        if not total or self._met == total or (self._node.any_edge and self._met):
            return Verdict.MET
        lost = self._dead == total if self._node.any_edge else self._dead > 0
        return Verdict.IMPOSSIBLE if lost else Verdict.OPEN

    @property
    def dead(self) -> list[str]:
        """The targets that can no longer be met."""
        pairs = zip(self._node.edges, self.states, strict=True)
        return [edge.target for edge, state in pairs if state is EdgeState.DEAD]
