"""Making a node's job: is there room, is the name free, is the template there, does the patch fit."""

from __future__ import annotations

from typing import Final, NamedTuple

from vcnb.admission.jobpatch import PatchError
from vcnb.controllers.flow.agenda import NEAR
from vcnb.controllers.flow.build import Place, build_job
from vcnb.controllers.flow.expressions import ConditionError
from vcnb.controllers.flow.naming import flow_uid, job_name
from vcnb.controllers.flow.progress import Progress
from vcnb.controllers.flow.variables import variables_of
from vcnb.controllers.flow.world import Creation, Told
from vcnb.resources.phases import NodePhase

__all__ = ["Made", "NotMade", "make_job", "refuse", "say_why"]

NAME_TAKEN: Final = "NameTaken"
TEMPLATE_NOT_FOUND: Final = "TemplateNotFound"


class NotMade(Exception):
    """The job cannot be made now (``final``: never); reason and message are for the node."""

    def __init__(self, reason: str, message: str = "", *, final: bool = False) -> None:
        self.reason = reason
        self.message = message
        self.final = final
        super().__init__(message or reason)


class Made(NamedTuple):
    """The job exists, or is being made.

    ``tentative``: the store has refused it before, so the node stays where it is until the job is really there.
    """

    name: str
    tentative: bool = False


def make_job(p: Progress, node_name: str, place: Place) -> Made:
    """Have a job made for a node. Raises NotMade; the node is looked at again when that may have changed.

    A job of this name that the flow owns is the one that was meant; any other is refused, and the node waits.
    """
    node = p.spec.nodes[node_name]
    name = job_name(p.name, node_name, item=place.index, iteration=place.iteration, attempt=place.attempt)
    there = p.world.job(name)
    if there is not None and flow_uid(there) == p.uid:
        p.blocked.pop(name, None)
        if there["metadata"].get("deletionTimestamp"):
            p.agenda.wait_for(f"job/{name}", node_name)
            raise NotMade("JobTerminating", f"job {name} is being removed")
        return Made(name)
    if there is not None:
        p.agenda.wait_for(f"job/{name}", node_name)
        raise NotMade(NAME_TAKEN, f"there is a job {name} that this flow did not make; delete it, and the node starts")
    if p.blocked.get(name, 0.0) > p.now + NEAR:
        p.agenda.wait_for(f"template/{node.template}", node_name)
        p.wake(p.blocked[name], node_name)
        entry = p.entries[node_name]
        raise NotMade(str(entry.get("reason") or "JobRefused"), str(entry.get("message") or ""))
    tentative = name in p.blocked
    if name in p.making:
        return Made(name, tentative)
    template = p.world.template(node.template)
    if template is None or tentative:
        p.agenda.wait_for(f"template/{node.template}", node_name)
    if template is None:
        raise NotMade(TEMPLATE_NOT_FOUND, f"there is no JobTemplate {node.template!r} in this namespace")
    variables = variables_of(p.flow, p.spec, p.entries, node_name, **place.variables)
    try:
        job = build_job(
            p.flow,
            p.spec,
            node,
            template,
            name,
            place,
            variables,
            server_defaults=p.server_defaults,
            owned=p.owned,
        )
    except PatchError as error:
        raise NotMade("PatchError", f"patch.{error.path}: {error}", final=True) from None
    except ConditionError as error:
        raise NotMade("ConditionError", str(error), final=True) from None
    p.making.add(name)
    p.decision.create.append(Creation(node_name, job))
    return Made(name, tentative)


def say_why(p: Progress, node: str, problem: NotMade) -> None:
    """Put into a waiting node's entry why its job is not made; a Warning Event when that is news."""
    if p.entries[node].get("reason") != problem.reason and problem.message:
        p.decision.told.append(Told("Warning", problem.reason, f"node {node}: {problem.message}"))
    p.change(node, reason=problem.reason, message=problem.message or None)


def refuse(p: Progress, node: str, job: str, reason: str, message: str, again_at: float, *, final: bool) -> None:
    """The store has refused a job of a node: the node (or the item) waits and tries again then, or has failed."""
    entry = p.entries[node]
    p.blocked[job] = again_at
    if entry.get("children") is not None:
        _refuse_item(p, node, job, reason, message, final=final)
    elif final:
        p.finish(node, NodePhase.FAILED, reason, message)
    elif entry["phase"] == NodePhase.RUNNING:
        p.change(node, phase=NodePhase.WAITING.value, reason=reason, message=message, retryAt=None)
    else:
        p.change(node, reason=reason, message=message)
    if entry.get("reason") != reason:
        p.decision.told.append(Told("Warning", reason, f"node {node}: {message}"))
    p.touch(node)


def _refuse_item(p: Progress, node: str, job: str, reason: str, message: str, *, final: bool) -> None:
    phase = NodePhase.FAILED.value if final else NodePhase.WAITING.value
    children = [
        {**child, "phase": phase, "reason": reason, "message": message}
        if child.get("jobName") == job and child["phase"] == NodePhase.RUNNING
        else child
        for child in p.entries[node]["children"]
    ]
    p.change(node, children=children, reason=reason, message=message)
