"""What a JobFlow says, read once: nodes, edges and who follows whom. Pure.

A flow's spec is read when the flow appears or changes; everything that happens afterwards looks things up here, so that
the cost of one event does not depend on the size of the flow.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import Any, Final

from vcnb.admission.graph import Ancestors, topological_order
from vcnb.resources.phases import NODE_FINISHED, NodePhase, RetainPolicy
from vcnb.store.protocol import Obj

__all__ = [
    "ABORTED",
    "RUNNING",
    "Backoff",
    "Edge",
    "FlowSpec",
    "Gang",
    "Node",
    "NodeType",
    "Probe",
    "Retry",
    "read_spec",
]

_EXTENSIONS: Final = (
    "templateRef",
    "when",
    "switch",
    "forEach",
    "loop",
    "cache",
    "retry",
    "allowFailure",
    "outputs",
    "patch",
)
_FLOW_EXTENSIONS: Final = (
    "params",
    "failurePolicy",
    "maxParallel",
    "activeDeadlineSeconds",
    "suspend",
    "plugins",
    "scheduling",
)
_WAITING_EXTENSIONS: Final = ("strategy", "targetsWithStatus", "timeoutSeconds", "onTimeout", "probe")

_FAILED: Final = frozenset({NodePhase.FAILED.value, NodePhase.TIMED_OUT.value})
_WANTED: Final[Mapping[str, frozenset[str]]] = {
    "Completed": frozenset({NodePhase.SUCCEEDED.value}),
    "Failed": _FAILED,
    "Finished": frozenset(phase.value for phase in NODE_FINISHED),
}
ABORTED: Final = "Aborted"
RUNNING: Final = "Running"


class NodeType(StrEnum):
    """What a node is, as in ``status.nodes[...].type``."""

    JOB = "Job"
    SWITCH = "Switch"
    FOR_EACH = "ForEach"
    LOOP = "Loop"
    CACHE = "Cache"


@dataclass(frozen=True, slots=True)
class Edge:
    """One node that another waits for. ``phases`` None: a plain target; else the node phases that satisfy it.

    ``Running`` among the phases means that its job has been running at least once, ``Aborted`` that it is paused.
    """

    target: str
    phases: frozenset[str] | None = None


@dataclass(frozen=True, slots=True)
class Backoff:
    """Delay before retry n, in seconds: ``seconds * factor ** (n - 1)``, at most ``longest``."""

    seconds: float = 10.0
    factor: float = 2.0
    longest: float = 300.0

    def delay(self, retry: int) -> float:
        """Seconds before the ``retry``-th retry, counted from 1."""
        # Beyond 64 doublings every delay is the longest one; a larger power could overflow.
        return min(self.seconds * self.factor ** min(retry - 1, 64), self.longest)


@dataclass(frozen=True, slots=True)
class Retry:
    """Up to ``limit`` further attempts, when the job ended in one of ``on`` and ``when`` (CEL) holds."""

    limit: int
    on: frozenset[str]
    backoff: Backoff
    when: str = ""
    keep_failed: bool = True


@dataclass(frozen=True, slots=True)
class Probe:
    """Entries that may satisfy a target before its job has completed. Periods and timeouts in seconds."""

    http: Sequence[Mapping[str, Any]]
    tcp: Sequence[Mapping[str, Any]]
    task_status: Sequence[Mapping[str, Any]]
    period: float
    timeout: float


@dataclass(frozen=True, slots=True)
class Gang:
    """Nodes that start together; ``timeout`` in seconds, None: they wait for ever."""

    name: str
    nodes: tuple[str, ...]
    timeout: float | None


@dataclass(frozen=True, slots=True)
class Node:
    """One entry of ``spec.flows``. ``problem`` says why it can never start, if that is so."""

    name: str
    position: int
    type: NodeType
    object: Mapping[str, Any]
    template: str
    edges: tuple[Edge, ...] = ()
    any_edge: bool = False
    timeout: float | None = None
    on_timeout: str = "Fail"
    probe: Probe | None = None
    when: str = ""
    retry: Retry | None = None
    allow_failure: bool = False
    gang: str = ""
    problem: str = ""

    @property
    def patch(self) -> Mapping[str, Any]:
        """The partial job spec laid over the template: ``patch.jobSpec``, or ``patch.spec``."""
        patch = self.object.get("patch") or {}
        return patch.get("jobSpec") or patch.get("spec") or {}

    @property
    def outputs(self) -> Mapping[str, Mapping[str, Any]]:
        """Where the node's outputs are read, by key."""
        return self.object.get("outputs") or {}


@dataclass(frozen=True)
class FlowSpec:
    """A flow's spec. ``followers``: by node, the nodes that wait for it with the number of the edge.

    ``chosen_by``: by node, the switches that name it; ``chooses`` the other way round. ``probed_by``: by node, who probes its job. ``handled``: nodes
    whose failure does not fail the flow. ``extended``: whether any field is used that Volcano does not know or read.
    """

    nodes: Mapping[str, Node]
    followers: Mapping[str, Sequence[tuple[str, int]]]
    chosen_by: Mapping[str, Sequence[str]]
    chooses: Mapping[str, Sequence[str]]
    probed_by: Mapping[str, Sequence[str]]
    handled: frozenset[str]
    gangs: Mapping[str, Gang]
    extended: bool
    params: Mapping[str, Any] = field(default_factory=dict)
    fail_fast: bool = True
    max_parallel: int | None = None
    deadline: float | None = None
    suspended: bool = False
    delete_jobs: bool = False
    plugins: Mapping[str, Any] = field(default_factory=dict)
    queue: str = ""
    priority_class: str = ""

    @cached_property
    def ancestors(self) -> Ancestors:
        """Who waits for whom, directly or not."""
        return Ancestors({name: [edge.target for edge in node.edges] for name, node in self.nodes.items()})


def read_spec(flow: Obj) -> FlowSpec:
    """Read a flow's spec. Of nodes with one name only the first counts; admission lets no second one in."""
    spec: Mapping[str, Any] = flow.get("spec") or {}
    scheduling: Mapping[str, Any] = spec.get("scheduling") or {}
    gangs = {
        gang["name"]: Gang(gang["name"], tuple(gang.get("nodes") or ()), gang.get("timeoutSeconds"))
        for gang in scheduling.get("gangs") or ()
    }
    member = {node: gang.name for gang in gangs.values() for node in gang.nodes}
    entries: dict[str, Mapping[str, Any]] = {}
    for entry in spec.get("flows") or ():
        entries.setdefault(entry["name"], entry)
    edges = {name: _edges(entry) for name, entry in entries.items()}
    problems = _problems(edges)
    nodes = {
        name: _node(position, entry, edges[name], member.get(name, ""), problems.get(name, ""))
        for position, (name, entry) in enumerate(entries.items())
    }
    chooses = _chooses(nodes.values())
    followers: dict[str, list[tuple[str, int]]] = {}
    probed_by: dict[str, list[str]] = {}
    for node in nodes.values():
        for number, edge in enumerate(node.edges):
            followers.setdefault(edge.target, []).append((node.name, number))
            if node.probe is not None:
                probed_by.setdefault(edge.target, []).append(node.name)
    return FlowSpec(
        nodes=nodes,
        followers=followers,
        chosen_by=_inverse(chooses),
        chooses=chooses,
        probed_by=probed_by,
        handled=_handled(nodes.values()),
        gangs=gangs,
        extended=_is_extended(spec),
        params=spec.get("params") or {},
        fail_fast=spec.get("failurePolicy") != "Continue",
        max_parallel=spec.get("maxParallel"),
        deadline=spec.get("activeDeadlineSeconds"),
        suspended=bool(spec.get("suspend")),
        delete_jobs=spec.get("jobRetainPolicy") == RetainPolicy.DELETE,
        plugins=spec.get("plugins") or {},
        queue=scheduling.get("queue") or "",
        priority_class=scheduling.get("priorityClassName") or "",
    )


def _is_extended(spec: Mapping[str, Any]) -> bool:
    if any(spec.get(key) for key in _FLOW_EXTENSIONS):
        return True
    for node in spec.get("flows") or ():
        depends = node.get("dependsOn") or {}
        if any(node.get(key) for key in _EXTENSIONS) or any(depends.get(key) for key in _WAITING_EXTENSIONS):
            return True
    return False


def _edges(entry: Mapping[str, Any]) -> tuple[Edge, ...]:
    depends: Mapping[str, Any] = entry.get("dependsOn") or {}
    plain = [Edge(target) for target in dict.fromkeys(depends.get("targets") or ())]
    with_status = [
        Edge(target["name"], frozenset().union(*(_WANTED.get(phase, frozenset({phase})) for phase in target["phases"])))
        for target in depends.get("targetsWithStatus") or ()
    ]
    return (*plain, *with_status)


def _problems(edges: Mapping[str, Sequence[Edge]]) -> dict[str, str]:
    """Nodes that can never start: they wait for a node that is not there, or in a circle."""
    problems = {
        name: f"waits for {edge.target!r}, which is no node of this flow"
        for name, found in edges.items()
        for edge in found
        if edge.target not in edges
    }
    targets = {name: [edge.target for edge in found] for name, found in edges.items()}
    in_order = set(topological_order(targets))
    for name in edges:
        if name not in in_order:
            problems.setdefault(name, "waits in a circle: it can never start")
    return problems


def _node(position: int, entry: Mapping[str, Any], edges: tuple[Edge, ...], gang: str, problem: str) -> Node:
    depends: Mapping[str, Any] = entry.get("dependsOn") or {}
    return Node(
        name=entry["name"],
        position=position,
        type=_type(entry),
        object=entry,
        template=entry.get("templateRef") or entry["name"],
        edges=edges,
        any_edge=depends.get("strategy") == "any",
        timeout=depends.get("timeoutSeconds"),
        on_timeout=depends.get("onTimeout") or "Fail",
        probe=_probe(depends.get("probe")),
        when=entry.get("when") or "",
        retry=_retry(entry.get("retry")),
        allow_failure=bool(entry.get("allowFailure")),
        gang=gang,
        problem=problem,
    )


def _type(entry: Mapping[str, Any]) -> NodeType:
    for key, type_ in (
        ("switch", NodeType.SWITCH),
        ("forEach", NodeType.FOR_EACH),
        ("loop", NodeType.LOOP),
        ("cache", NodeType.CACHE),
    ):
        if entry.get(key) is not None:
            return type_
    return NodeType.JOB


def _probe(probe: Mapping[str, Any] | None) -> Probe | None:
    if not probe:
        return None
    http, tcp, status = (probe.get(key) or () for key in ("httpGetList", "tcpSocketList", "taskStatusList"))
    if not (http or tcp or status):
        return None
    return Probe(http, tcp, status, float(probe.get("periodSeconds") or 5), float(probe.get("timeoutSeconds") or 1))


def _retry(retry: Mapping[str, Any] | None) -> Retry | None:
    if retry is None:
        return None
    given: Mapping[str, Any] = retry.get("backoff") or {}
    default = Backoff()
    backoff = Backoff(
        float(given.get("seconds", default.seconds)),
        float(given.get("factor", default.factor)),
        float(given.get("maxSeconds", default.longest)),
    )
    return Retry(
        int(retry.get("limit") or 0),
        frozenset(retry.get("on") or ("Failed", "Terminated")),
        backoff,
        retry.get("when") or "",
        retry.get("keepFailed") is not False,
    )


def _chooses(nodes: Iterable[Node]) -> dict[str, list[str]]:
    """By switch, all nodes that it names."""
    chooses = {}
    for node in nodes:
        if node.type is NodeType.SWITCH:
            switch = node.object["switch"]
            lists = [*(case.get("next") or () for case in switch.get("cases") or ()), switch.get("default") or ()]
            chooses[node.name] = list(dict.fromkeys(name for names in lists for name in names))
    return chooses


def _inverse(chooses: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    chosen: dict[str, list[str]] = {}
    for switch, nodes in chooses.items():
        for node in nodes:
            chosen.setdefault(node, []).append(switch)
    return chosen


def _handled(nodes: Iterable[Node]) -> frozenset[str]:
    """Nodes that may fail: ``allowFailure``, or some node waits for their failure."""
    return frozenset(
        name
        for node in nodes
        for name in [
            *([node.name] if node.allow_failure else ()),
            *(edge.target for edge in node.edges if edge.phases is not None and edge.phases & _FAILED),
        ]
    )
