"""Flows in Python: nodes from jobs, functions, notebooks, templates and cache loads, tied by ``>>``.

    flow = vcnb.Flow("digits", params={"folds": 5})
    data = flow.add("data", vcnb.Task("w", command=["python", "prepare.py"]))
    fit = flow.add("fit", train, args={"C": "${{ item }}", "folds": "${{ params.folds }}"}, for_each=[0.1, 1, 10], retry=2)
    report = flow.add("report.ipynb")
    data >> fit >> report
    fit.failed >> flow.add("alarm", vcnb.Task("w", command=["echo", "it failed"]))
    handle = cluster.submit(flow)

What runs in a node becomes a JobTemplate called ``<flow>-<node>`` that belongs to the flow and goes with it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from vcnb.client.flows.expressions import has_expressions, lifted, with_environment
from vcnb.client.flows.fields import (
    camelled,
    for_each_field,
    loop_field,
    outputs_field,
    retry_field,
    seconds_field,
    switch_cases,
)
from vcnb.client.flows.node import Node, targets_of
from vcnb.client.flows.parts import FLOW_LABEL, Part, part_of
from vcnb.client.flows.work import Made, name_of_work, work_of
from vcnb.errors import VcnbError
from vcnb.resources import kinds

__all__ = ["Flow"]


class Flow:
    """A JobFlow in the making.

    ``params``: values that conditions and ``${{ params.x }}`` speak of. ``failure_policy``: ``FailFast`` (default: an
    unhandled failure ends the flow, what runs goes on) or ``Continue`` (whatever can still run does). ``max_parallel``: how
    many jobs run at once. ``deadline``: seconds for the whole flow. ``retain``: whether the jobs of a flow that has
    succeeded stay (default) or are deleted. ``queue``, ``priority_class_name`` and ``plugins``: for jobs that name none
    themselves. ``suspend``: start nothing until ``handle.resume()``.

    ``portable=True`` calls templates after their nodes alone, as Volcano's own controller wants it; flows then must not use
    one node name for two things.
    """

    def __init__(
        self,
        name: str,
        *,
        params: Mapping[str, Any] | None = None,
        namespace: str | None = None,
        failure_policy: str | None = None,
        max_parallel: int | None = None,
        deadline: Any = None,
        retain: bool | None = None,
        suspend: bool = False,
        queue: str | None = None,
        priority_class_name: str | None = None,
        plugins: Mapping[str, Sequence[str]] | Sequence[str] = (),
        labels: Mapping[str, str] | None = None,
        annotations: Mapping[str, str] | None = None,
        portable: bool = False,
    ) -> None:
        self.name = name
        self.namespace = namespace
        #: Parameters; may be changed until the flow is submitted.
        self.params: dict[str, Any] = dict(params or {})
        self.portable = portable
        self._spec: dict[str, Any] = {
            key: value
            for key, value in {
                "failurePolicy": failure_policy,
                "maxParallel": max_parallel,
                "activeDeadlineSeconds": None if deadline is None else seconds_field(deadline, "deadline", name),
                "jobRetainPolicy": None if retain is None else ("retain" if retain else "delete"),
                "suspend": suspend or None,
                "plugins": _plugins(plugins) or None,
            }.items()
            if value is not None
        }
        self._scheduling: dict[str, Any] = {
            key: value for key, value in (("queue", queue), ("priorityClassName", priority_class_name)) if value
        }
        self._metadata = {
            key: dict(value) for key, value in (("labels", labels), ("annotations", annotations)) if value
        }
        self._nodes: dict[str, Node] = {}
        self._switches: dict[str, list[Any]] = {}

    # -- nodes -------------------------------------------------------------------------------------------------------

    def add(
        self,
        name: Any,
        work: Any = None,
        /,
        *,
        after: Any = (),
        when: str | None = None,
        retry: int | Mapping[str, Any] | None = None,
        allow_failure: bool = False,
        for_each: Any = None,
        loop: Mapping[str, Any] | None = None,
        outputs: Any = None,
        env: Mapping[str, Any] | None = None,
        args: Any = None,
        options: Mapping[str, Any] | None = None,
        patch: Mapping[str, Any] | None = None,
        cache: Mapping[str, Any] | None = None,
        strategy: str | None = None,
        timeout: Any = None,
        on_timeout: str | None = None,
        probe: Mapping[str, Any] | None = None,
        line: int | None = None,
    ) -> Node:
        """Add a node; returns it.

        ``name`` and ``work``: what it runs is a ``vcnb.Job``, a ``Task`` (or several), a manifest, a handle of a job or
        template, a function, a path that ends in ``.ipynb``, or the name of a JobTemplate; without it the JobTemplate of
        the node's name. The name may be left out where the work has one.
        ``after``: nodes to wait for, as ``>>`` does. ``when``: a condition in CEL, e.g. ``"params.lr > 0.01"``; false
        skips the node. ``retry``: further attempts, or ``{"limit": 2, "backoff": {"seconds": 10}, "when": ...}``.
        ``allow_failure``: its failure counts as success. ``for_each``: a list, a range, or an expression for a list: one
        job per item, which is ``${{ item }}`` and ``$VC_FLOW_ITEM``. ``loop``: ``{"until": ..., "max_iterations": n}``.
        ``outputs``: names of values that the job leaves in its termination message as JSON; a function's are what it
        returned, a notebook's what it glued. ``env``: variables of
        all its containers. ``args`` and ``options``: of a function (parameters, ``RunOptions``) or notebook.
        ``patch``: a partial job spec over the template's. ``cache``: ``{"load": {"path": ...}}`` (or free, copy, move)
        instead of a job. ``strategy``: ``any`` starts when one of the nodes it waits for has succeeded; ``timeout``:
        seconds to wait for them, ``on_timeout``: Fail, Skip or Run; ``probe``: tests that let it start before they end.

        Texts in jobs, env, args and patch may hold ``${{ expression }}`` over ``params``, ``item``, ``index``,
        ``iteration`` and ``flows.<node>.outputs``. Raises VcnbError, naming the node.
        """
        if work is None and not (isinstance(name, str) and not name.endswith(".ipynb")):
            name, work = name_of_work(name), name
        own = self._new_name(name)
        if cache is not None and work is not None:
            raise VcnbError(f"node {own!r} has a job and a cache load; make two nodes of it")
        done = None if work is None else work_of(work, own, args, options)
        if work is None and (args is not None or options):
            raise VcnbError(f"node {own!r}: args and options are for functions and notebooks; it has none")
        depends = {
            "strategy": strategy,
            "timeoutSeconds": None if timeout is None else seconds_field(timeout, "timeout", own),
            "onTimeout": on_timeout,
            "probe": None if probe is None else camelled(probe),
        }
        fields = {
            "dependsOn": {key: value for key, value in depends.items() if value is not None} or None,
            "when": when,
            "cache": None if cache is None else camelled(cache),
            "forEach": None if for_each is None else for_each_field(for_each, own),
            "loop": None if loop is None else loop_field(loop, own),
            "retry": None if retry is None else retry_field(retry, own),
            "allowFailure": allow_failure or None,
            "outputs": None if outputs is None else outputs_field(outputs),
            "patch": None if patch is None else {"jobSpec": dict(patch)},
        }
        node = Node(self, own, {key: value for key, value in fields.items() if value is not None}, done, line)
        node.env = dict(env or {})
        return self._put(node, after)

    def switch(
        self,
        name: str,
        on: str | None = None,
        cases: Any = (),
        default: Any = None,
        *,
        no_match: str | None = None,
        after: Any = (),
        when: str | None = None,
        line: int | None = None,
    ) -> Node:
        """Add a node that chooses which of several nodes go on; the others are skipped. It has no job.

        ``cases``: values of the expression ``on`` with the nodes to go on, ``{"full": [big], "quick": small}``, or
        a list of ``{"when": condition, "next": nodes}``. ``default``: when no case fits; without it the node fails,
        or with ``no_match="Skip"`` all are skipped. The chosen nodes wait for the switch without an arrow.
        """
        own = self._new_name(name)
        found = switch_cases(cases, own)
        if not found:
            raise VcnbError(f'switch {own!r} has no cases; give e.g. cases={{"full": big, "quick": small}}')
        chosen = [*(case.pop("next") for case in found), *([default] if default is not None else [])]
        branches = [[target for target, _ in targets_of(each, self)] for each in chosen]
        for case, following in zip(found, branches, strict=False):
            case["next"] = following
        switch: dict[str, Any] = {"on": on, "cases": found, "noMatch": no_match}
        if default is not None:
            switch["default"] = branches[-1]
        fields = {"when": when, "switch": {key: value for key, value in switch.items() if value is not None}}
        node = Node(self, own, {key: value for key, value in fields.items() if value is not None}, None, line)
        self._switches[own] = [following for branch in branches for following in branch]
        return self._put(node, after)

    def gang(self, name: str, nodes: Any, timeout: Any = None) -> None:
        """Let these nodes start together or not at all; ``timeout`` in seconds (default: they wait for ever)."""
        names = [target for target, _ in targets_of(nodes, self)]
        gang: dict[str, Any] = {"name": name, "nodes": names}
        if timeout is not None:
            gang["timeoutSeconds"] = seconds_field(timeout, "timeout", name)
        self._scheduling.setdefault("gangs", []).append(gang)

    def param(self, name: str, default: Any = None) -> str:
        """``${{ params.name }}``, declaring the parameter with this default when it is not there yet."""
        self.params.setdefault(name, default)
        return f"${{{{ params.{name} }}}}"

    def _new_name(self, name: Any) -> str:
        if not name:
            raise VcnbError(f"flow {self.name!r}: the node needs a name: flow.add(name, work)")
        if name in self._nodes:
            raise VcnbError(f"flow {self.name!r} has a node {name!r} already; give each node its own name")
        return str(name)

    def _put(self, node: Node, after: Any) -> Node:
        node.after(*([after] if isinstance(after, str) or not isinstance(after, (list, tuple)) else after))
        self._nodes[node.name] = node
        return node

    def arrange(self, names: Iterable[str]) -> None:
        """Put these nodes first, in this order, for whoever reads the flow."""
        first = {name: self._nodes[name] for name in names if name in self._nodes}
        self._nodes = {**first, **self._nodes}

    @property
    def nodes(self) -> tuple[Node, ...]:
        """The nodes in the order in which they were added."""
        return tuple(self._nodes.values())

    def __getitem__(self, name: str) -> Node:
        try:
            return self._nodes[name]
        except KeyError:
            import difflib

            near = difflib.get_close_matches(name, self._nodes, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"its nodes: {', '.join(self._nodes) or 'none'}"
            raise VcnbError(f"flow {self.name!r} has no node {name!r}; {hint}") from None

    def __contains__(self, name: object) -> bool:
        return name in self._nodes

    def __iter__(self) -> Iterator[Node]:
        return iter(self.nodes)

    def __len__(self) -> int:
        return len(self._nodes)

    def graph(self) -> dict[str, list[str]]:
        """Each node with the nodes that follow it."""
        waits = self._all_waits()
        return {name: [other for other, targets in waits.items() if name in targets] for name in self._nodes}

    def _all_waits(self) -> dict[str, list[str]]:
        chosen = {(node, switch) for switch, nodes in self._switches.items() for node in nodes}
        return {
            name: [*node.waits_for, *(s for n, s in chosen if n == name and s not in node.waits_for)]
            for name, node in self._nodes.items()
        }

    # -- the manifest ------------------------------------------------------------------------------------------------

    def parts(self) -> list[Part]:
        """The objects that make up the flow, the flow last, each with the nodes that its problems are about."""
        found: list[Part] = []
        entries: list[dict[str, Any]] = []
        templates: dict[str, str] = {}
        for node in self._nodes.values():
            for switch, nodes in self._switches.items():
                if node.name in nodes and switch not in node.waits_for:
                    node.after(switch)
            entry, objects = self._entry_at(node)
            for obj in objects:
                name = obj["metadata"]["name"]
                other = templates.setdefault(f"{obj['kind']}/{name}", node.name)
                if other != node.name:
                    if not any(part.object == obj for part in found):
                        raise VcnbError(
                            f"nodes {other!r} and {node.name!r} both bring a {obj['kind']} {name!r}, and not the same one; "
                            "give the templates different names"
                        )
                    continue
                found.append(part_of(obj, [node]))
            entries.append(entry)
        found.append(part_of(self._flow(entries), list(self._nodes.values())))
        return found

    def _entry_at(self, node: Node) -> tuple[dict[str, Any], list[Mapping[str, Any]]]:
        try:
            return self._entry(node)
        except VcnbError as error:
            if node.line is None:
                raise
            about = "" if repr(node.name) in str(error) else f"node {node.name!r}: "
            raise VcnbError(f"line {node.line} of the cell: {about}{error}") from error

    def _entry(self, node: Node) -> tuple[dict[str, Any], list[Mapping[str, Any]]]:
        made = node.work.make(self, node.name) if node.work is not None else Made()
        entry = node.to_manifest()
        patch: dict[str, Any] = dict((entry.get("patch") or {}).get("jobSpec") or {})
        objects: list[Mapping[str, Any]] = [self._labelled(obj) for obj in made.objects]
        template = made.name
        if made.template is not None:
            spec = made.template["spec"]
            if node.env:
                spec = with_environment(spec, node.env)
            template = made.name or (node.name if self.portable else f"{self.name}-{node.name}")
            objects.append(self._template(made.template, template, spec))
            patch = _merged(lifted(spec), patch)
        elif node.env:
            raise VcnbError(
                f"node {node.name!r}: env needs the job itself, this is a template on the cluster; "
                "write the variables into patch={'tasks': [...]}"
            )
        if template and template != node.name:
            entry["templateRef"] = template
        if patch:
            entry["patch"] = {"jobSpec": patch}
        if made.outputs and "outputs" not in entry:
            entry["outputs"] = dict(made.outputs)
        return entry, objects

    def _template(self, template: Mapping[str, Any], name: str, spec: Mapping[str, Any]) -> Mapping[str, Any]:
        metadata = {**template["metadata"], "name": name}
        return self._labelled({**template, "metadata": metadata, "spec": spec})

    def _labelled(self, obj: Mapping[str, Any]) -> dict[str, Any]:
        """An object of this flow, in its namespace, and marked as belonging to it."""
        metadata = {**obj["metadata"], "labels": {**(obj["metadata"].get("labels") or {}), FLOW_LABEL: self.name}}
        if self.namespace:
            metadata["namespace"] = self.namespace
        return {**obj, "metadata": metadata}

    def _flow(self, entries: list[dict[str, Any]]) -> dict[str, Any]:
        metadata: dict[str, Any] = {"name": self.name, **self._metadata}
        if self.namespace:
            metadata["namespace"] = self.namespace
        spec: dict[str, Any] = {"flows": entries, **self._spec}
        if self.params:
            spec["params"] = dict(self.params)
        if self._scheduling:
            spec["scheduling"] = self._scheduling
        return {"apiVersion": kinds.JOBFLOW.api_version, "kind": kinds.JOBFLOW.kind, "metadata": metadata, "spec": spec}

    def to_manifest(self) -> dict[str, Any]:
        """A ``List`` of the JobTemplates and the JobFlow (and of the payloads of functions and notebooks)."""
        return {"apiVersion": "v1", "kind": "List", "items": [dict(part.object) for part in self.parts()]}

    def to_yaml(self) -> str:
        """The objects as YAML documents, the flow last."""
        from vcnb.resources.manifest import dump

        return "---\n".join(dump(part.object) for part in self.parts())

    def __repr__(self) -> str:
        shown = [f"{name} < {', '.join(targets)}" if targets else name for name, targets in self._all_waits().items()]
        params = f" params {self.params}" if self.params else ""
        return f"<Flow {self.name}{params}: {'; '.join(shown) or 'no nodes yet'}>"


def _plugins(plugins: Mapping[str, Sequence[str]] | Sequence[str]) -> dict[str, list[str]]:
    asked = plugins if isinstance(plugins, Mapping) else dict.fromkeys(plugins, ())
    return {name: list(args or ()) for name, args in asked.items()}


def _merged(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """A patch over the one that expressions need."""
    if not below or not above:
        return dict(above or below)
    from vcnb.admission.jobpatch import apply_patch

    assert has_expressions(below)
    return apply_patch(below, above)
