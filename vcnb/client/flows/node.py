"""The nodes of a ``vcnb.Flow``, and how ``>>`` ties them: ``a >> b``, ``[a, b] >> c``, ``a >> [b, c] >> d``, ``a.failed >> b``."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from vcnb.errors import VcnbError

if TYPE_CHECKING:
    from vcnb.client.flows.builder import Flow
    from vcnb.client.flows.work import Work

__all__ = ["After", "Group", "Node", "Target", "targets_of"]

Phases: TypeAlias = tuple[str, ...]
Target: TypeAlias = "Node | After | Group | str"
"""What a node may wait for: another node, its name, a node in certain phases, or several."""

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")


class _Arrows:
    """``>>`` and ``<<`` for whatever stands for nodes."""

    def _targets(self) -> list[tuple[str, Phases]]:
        raise NotImplementedError

    def __rshift__(self, other: Any) -> Node | Group:
        """``self >> other``: other waits for self. Returns other, so that arrows can be chained."""
        followers = _nodes(other)
        for node in followers:
            node.after(self)
        return followers[0] if isinstance(other, Node) else Group(followers)

    def __rrshift__(self, other: Any) -> Node | Group:
        """``[a, b] >> self``."""
        mine = _nodes(self)
        for node in mine:
            node.after(*_several(other))
        return mine[0] if isinstance(self, Node) else Group(mine)

    def __lshift__(self, other: Any) -> Any:
        """``self << other``: self waits for other. Returns other."""
        for node in _nodes(self):
            node.after(*_several(other))
        return other

    def __rlshift__(self, other: Any) -> Any:
        """``[a, b] << self``."""
        for node in _nodes(other):
            node.after(self)
        return self


class Group(_Arrows, Sequence["Node"]):
    """Several nodes side by side."""

    def __init__(self, nodes: Iterable[Node]) -> None:
        self._nodes = tuple(nodes)

    def __getitem__(self, index: Any) -> Any:
        return self._nodes[index]

    def __len__(self) -> int:
        return len(self._nodes)

    def _targets(self) -> list[tuple[str, Phases]]:
        return [target for node in self._nodes for target in node._targets()]  # noqa: SLF001 - of the same kind

    def __repr__(self) -> str:
        return f"[{', '.join(node.name for node in self._nodes)}]"


class After(_Arrows):
    """A node in certain phases, to be waited for: ``train.failed >> cleanup``."""

    def __init__(self, node: Node, phases: Phases) -> None:
        self._node = node
        self._phases = phases

    def _targets(self) -> list[tuple[str, Phases]]:
        return [(self._node.name, self._phases)]

    def __repr__(self) -> str:
        return f"{self._node.name}.{'|'.join(self._phases)}"


class Node(_Arrows):
    """One node of a flow; made by ``flow.add`` and ``flow.switch``.

    ``a >> b`` lets b start once a has succeeded or was skipped. ``a.failed``, ``a.succeeded``, ``a.skipped``, ``a.running``
    and ``a.finished`` (or ``a.on("Failed", "Skipped")``) wait for other phases; one that is waited for in failure is
    no failure of the flow.
    """

    def __init__(self, flow: Flow, name: str, fields: Mapping[str, Any], work: Work | None, line: int | None) -> None:
        self.flow = flow
        self.name = name
        self.fields = dict(fields)
        self.work = work
        self.line = line
        self.env: dict[str, Any] = {}
        self._waits: dict[str, Phases] = {}

    # -- edges -----------------------------------------------------------------------------------------------------

    def after(self, *targets: Any) -> Node:
        """Wait for these nodes (or their names, ``a.failed`` and the like); returns the node."""
        for target in targets:
            for name, phases in targets_of(target, self.flow):
                self._wait_for(name, phases)
        return self

    def _wait_for(self, name: str, phases: Phases) -> None:
        if name == self.name:
            raise VcnbError(f"node {name!r} cannot wait for itself")
        before = self._waits.get(name)
        if before is not None and before != phases:
            said = " and ".join(" or ".join(each) or "its success" for each in (before, phases))
            raise VcnbError(
                f"node {self.name!r} waits for {name!r} twice, for {said}; say once what it waits for: "
                f'{name}.on("Succeeded", "Failed")'
            )
        self._waits[name] = phases

    def on(self, *phases: str) -> After:
        """The node in one of these phases: Succeeded, Failed, Skipped, Omitted, Aborted, Running or Finished."""
        if not phases:
            raise VcnbError(f"node {self.name!r}: on() needs a phase, e.g. on('Failed')")
        return After(self, tuple(phases))

    @property
    def failed(self) -> After:
        """Failed, or timed out."""
        return self.on("Failed")

    @property
    def succeeded(self) -> After:
        """Succeeded; not when it was skipped."""
        return self.on("Succeeded")

    @property
    def skipped(self) -> After:
        """Skipped: its own condition said no."""
        return self.on("Skipped")

    @property
    def running(self) -> After:
        """Its job is running, or was."""
        return self.on("Running")

    @property
    def finished(self) -> After:
        """At its end, whatever that is."""
        return self.on("Finished")

    @property
    def waits_for(self) -> tuple[str, ...]:
        """Names of the nodes that it waits for."""
        return tuple(self._waits)

    def _targets(self) -> list[tuple[str, Phases]]:
        return [(self.name, ())]

    # -- what others may say of it -----------------------------------------------------------------------------------

    def output(self, key: str) -> str:
        """``${{ ... }}`` for an output of this node, for the env, args, patch or condition of a later one."""
        return f"${{{{ {self.path('outputs')}{_step(key)} }}}}"

    def path(self, *steps: str) -> str:
        """How conditions name it: ``flows.train.phase``, ``flows["train-a"].outputs.auc``."""
        return f"flows{_step(self.name)}" + "".join(map(_step, steps))

    # -- the manifest ------------------------------------------------------------------------------------------------

    def to_manifest(self) -> dict[str, Any]:
        """The entry of ``spec.flows``."""
        depends = dict(self.fields.get("dependsOn") or {})
        plain = [name for name, phases in self._waits.items() if not phases]
        with_status = [{"name": name, "phases": list(phases)} for name, phases in self._waits.items() if phases]
        if plain:
            depends = {"targets": plain, **depends}
        if with_status:
            depends["targetsWithStatus"] = with_status
        rest = {key: value for key, value in self.fields.items() if key != "dependsOn"}
        return {"name": self.name, **({"dependsOn": depends} if depends else {}), **rest}

    def __repr__(self) -> str:
        waits = f" after {', '.join(self._waits)}" if self._waits else ""
        return f"<node {self.name} of flow {self.flow.name}{waits}>"


def targets_of(target: Any, flow: Flow) -> Iterator[tuple[str, Phases]]:
    """Names and phases that a target stands for. Raises VcnbError for what is no target, or of another flow."""
    if isinstance(target, str):
        name, dot, phase = target.partition(".")
        yield name, (phase.capitalize(),) if dot else ()
    elif isinstance(target, (Node, After)):
        node = target if isinstance(target, Node) else target._node  # noqa: SLF001 - of the same kind
        if node.flow is not flow:
            raise VcnbError(
                f"node {node.name!r} is of flow {node.flow.name!r}, not of {flow.name!r}; flows share no nodes"
            )
        yield from target._targets()  # noqa: SLF001 - of the same kind
    elif isinstance(target, Iterable):
        for each in target:
            yield from targets_of(each, flow)
    else:
        raise VcnbError(f"a node waits for nodes or their names, not for a {type(target).__name__}")


def _several(other: Any) -> list[Any]:
    return [other] if isinstance(other, (str, _Arrows)) else list(other)


def _nodes(other: Any) -> list[Node]:
    if isinstance(other, Node):
        return [other]
    if isinstance(other, After):
        raise VcnbError(f"{other!r} can be waited for, but it cannot wait; write {other._node.name} alone")  # noqa: SLF001
    found = list(other) if isinstance(other, Iterable) and not isinstance(other, str) else [other]
    wrong = next((each for each in found if not isinstance(each, Node)), None)
    if wrong is not None:
        raise VcnbError(f"arrows tie nodes, not a {type(wrong).__name__}; make one with flow.add(...)")
    return found


def _step(key: str) -> str:
    return f".{key}" if _IDENTIFIER.match(key) else f"[{json.dumps(key)}]"
