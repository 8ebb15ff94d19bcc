"""The expressions of a JobFlow: well formed, and about params and ancestors that exist."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final, NamedTuple

from vcnb.admission.expressions import References, embedded, references, syntax_error
from vcnb.admission.findings import Findings, near
from vcnb.admission.flow_nodes import Nodes
from vcnb.admission.graph import Ancestors
from vcnb.admission.reading import each, mapping

__all__ = ["check_expressions"]

_ALWAYS: Final = ("params", "flow", "flows")


class _Expression(NamedTuple):
    node: str
    path: str
    text: str
    variables: tuple[str, ...]


def check_expressions(
    spec: Mapping[str, Any], nodes: Nodes, edges: Mapping[str, Collection[str]], findings: Findings
) -> None:
    """Every expression of every node. The graph must have no cycle."""
    found = [expression for name, (where, node) in nodes.items() for expression in _expressions(name, node, where)]
    if not found:
        return
    params = mapping(spec.get("params"))
    above = Ancestors(edges)
    for expression in found:
        wrong = syntax_error(expression.text)
        if wrong is not None:
            findings.refuse(expression.path, f"{expression.text!r} {wrong}")
        else:
            _check_references(expression, nodes, above, params, findings)


def _expressions(name: str, node: Mapping[str, Any], where: str) -> Iterator[_Expression]:
    item = ("item", "index") if node.get("forEach") is not None else ()
    iteration = ("iteration",) if node.get("loop") is not None else ()
    switch, loop = mapping(node.get("switch")), mapping(node.get("loop"))
    places = [
        (f"{where}.when", node.get("when"), ()),
        (f"{where}.switch.on", switch.get("on"), ()),
        *((f"{at}.when", case.get("when"), ()) for at, case in each(switch.get("cases"), f"{where}.switch.cases")),
        (f"{where}.forEach.itemsFrom", mapping(node.get("forEach")).get("itemsFrom"), ()),
        (f"{where}.loop.until", loop.get("until"), ("iteration", "self")),
        (f"{where}.retry.when", mapping(node.get("retry")).get("when"), (*item, *iteration, "self")),
    ]
    for path, text, variables in places:
        if isinstance(text, str):
            yield _Expression(name, path, text, variables)
    for path, text in embedded(mapping(node.get("patch")), f"{where}.patch"):
        yield _Expression(name, path, text, (*item, *iteration))
    for path, text in embedded(mapping(node.get("cache")), f"{where}.cache"):
        yield _Expression(name, path, text, ())


def _check_references(
    expression: _Expression, nodes: Nodes, above: Ancestors, params: Mapping[str, Any], findings: Findings
) -> None:
    spoken = references(expression.text)
    known = (*_ALWAYS, *expression.variables)
    unknown = set() if _slip(spoken, nodes) else spoken.variables - set(known)
    for variable in sorted(unknown):
        findings.refuse(
            expression.path, f"{expression.text!r}: {variable!r} is not known here{near(variable, known, 'known')}"
        )
    for name in dict.fromkeys(spoken.params):
        if name not in params:
            findings.refuse(
                expression.path,
                f"{expression.text!r}: there is no {name!r} in spec.params{near(name, params, 'params')}",
            )
    for name in dict.fromkeys(spoken.nodes):
        if above.has(expression.node, name):
            continue
        meant = _slip(spoken, nodes)
        if meant.startswith(f"{name}-"):
            hint = f"; a name with '-' is written flows[\"{meant}\"]"
        elif name in nodes:
            hint = f"; node {expression.node!r} does not wait for it: add it to dependsOn.targets"
        else:
            hint = near(name, above.of(expression.node), "it waits for")
        what = "is not an ancestor of" if name in nodes else "is no node above"
        findings.refuse(expression.path, f"{expression.text!r}: {name!r} {what} {expression.node!r}{hint}")


def _slip(spoken: References, nodes: Nodes) -> str:
    """The node that ``flows.train-a`` means: to CEL that is a subtraction."""
    beginnings = [f"{left}-{right}" for left, right in spoken.minus]
    return next((node for node in nodes if any(f"{node}-".startswith(f"{begin}-") for begin in beginnings)), "")
