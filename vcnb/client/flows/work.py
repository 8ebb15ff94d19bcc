"""What a node of a flow runs: from a Job, a template, a function or a notebook to the JobTemplate (and more) behind it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from vcnb.client.flows.convert import template_from_job
from vcnb.client.handles import Handle
from vcnb.errors import VcnbError
from vcnb.resources import kinds
from vcnb.resources.builders import Job, Task
from vcnb.resources.manifest import load

if TYPE_CHECKING:
    from vcnb.client.flows.builder import Flow

__all__ = ["Made", "Template", "Work", "name_of_work", "work_of"]


@dataclass(frozen=True)
class Made:
    """What a node's work comes to.

    ``template`` is the JobTemplate (without a name when it is to be called after flow and node), None when there is one
    on the cluster; ``name`` is that one's. ``objects`` go with it (payloads). ``outputs`` are read unless others are
    asked for.
    """

    template: Mapping[str, Any] | None = None
    name: str = ""
    objects: Sequence[Mapping[str, Any]] = ()
    outputs: Mapping[str, Any] = field(default_factory=dict)


class Work(Protocol):
    """Anything a node can run."""

    def make(self, flow: Flow, node: str) -> Made:
        """The template and what belongs to it."""
        ...


@dataclass(frozen=True)
class Template:
    """A JobTemplate, made here or there already."""

    made: Made

    def make(self, flow: Flow, node: str) -> Made:
        return self.made


def name_of_work(work: Any) -> str:
    """The name that a node gets from what it runs; empty when that has none."""
    if isinstance(work, Handle):
        return work.name
    if isinstance(work, Path) or (isinstance(work, str) and work.endswith(".ipynb")):
        return _dashed(Path(work).stem)
    if isinstance(work, str):
        return work
    if isinstance(work, Mapping):
        metadata = work.get("metadata")
        return str(metadata.get("name") or "") if isinstance(metadata, Mapping) else ""
    if callable(work):
        return _dashed(str(getattr(work, "__name__", "")))
    return str(getattr(work, "name", None) or "")


def _dashed(name: str) -> str:
    return "".join(letter if letter.isalnum() else "-" for letter in name.lower()).strip("-")


def work_of(work: Any, node: str, args: Any = None, options: Mapping[str, Any] | None = None) -> Work:
    """What to run for a node. Raises VcnbError, naming the node, for what cannot be run."""
    if isinstance(work, (str, Path)) and str(work).endswith(".ipynb"):
        from vcnb.client.flows.calls import Notebook

        return Notebook(Path(work), _parameters(args, node), dict(options or {}))
    if callable(work) and not hasattr(work, "to_manifest"):
        from vcnb.client.flows.calls import Function

        return Function.of(work, args, dict(options or {}), node)
    if args is not None or options:
        raise VcnbError(f"node {node!r}: args and options are for functions and notebooks; a job has env= and patch=")
    return Template(_template(work, node))


def _parameters(args: Any, node: str) -> dict[str, Any]:
    if args is not None and not isinstance(args, Mapping):
        raise VcnbError(f"node {node!r}: args of a notebook are its parameters by name, not {args!r}")
    return dict(args or {})


def _template(work: Any, node: str) -> Made:
    if isinstance(work, str):
        return Made(name=work)
    if isinstance(work, Handle):
        if work.kind == kinds.JOBTEMPLATE.kind:
            return Made(name=work.name)
        return Made(_unnamed(template_from_job(work)))
    if isinstance(work, Task) or (isinstance(work, (list, tuple)) and work):
        tasks = [work] if isinstance(work, Task) else list(work)
        return Made(_unnamed(template_from_job(Job(name=node, tasks=tasks), node)))
    if not isinstance(work, Mapping) and not hasattr(work, "to_manifest"):
        raise VcnbError(
            f"node {node!r} cannot run a {type(work).__name__}; give a vcnb.Job, a Task, a manifest, a function, a "
            "notebook's path, or the name of a JobTemplate"
        )
    documents = load(work if isinstance(work, Mapping) else work.to_manifest())
    manifest = documents[0].object
    if len(documents) != 1:
        raise VcnbError(f"node {node!r} runs one job; this is {len(documents)} objects")
    if manifest.get("kind") == kinds.JOBTEMPLATE.kind:
        return Made(manifest, name=str((manifest.get("metadata") or {}).get("name") or ""))
    if manifest.get("kind") == kinds.JOB.kind:
        return Made(_unnamed(template_from_job(manifest, node)))
    if "kind" not in manifest and "tasks" in manifest:
        return Made(_bare(manifest))
    raise VcnbError(
        f"node {node!r} cannot run a {manifest.get('kind') or 'mapping without a kind'}; give a Job or a JobTemplate"
    )


def _unnamed(template: Mapping[str, Any]) -> dict[str, Any]:
    return {**template, "metadata": {key: value for key, value in template["metadata"].items() if key != "name"}}


def _bare(spec: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": kinds.JOBTEMPLATE.api_version,
        "kind": kinds.JOBTEMPLATE.kind,
        "metadata": {},
        "spec": dict(spec),
    }
