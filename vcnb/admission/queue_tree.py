"""The tree of queues by ``spec.parent``: rules Q8-Q16.

Here the whole tree as it would be after the change is looked at, so a loop is found however it comes about, and moving
a queue with others below it cannot exceed the depth. (Upstream walks the stored parents upward only.)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from vcnb.admission.findings import Findings, near
from vcnb.admission.reading import amount, at_key, mapping, text
from vcnb.admission.usable import name_of
from vcnb.resources.names import ROOT_QUEUE
from vcnb.resources.quantity import ZERO, Quantity, sum_resources

__all__ = ["QueueTree", "check_tree"]

_PLAIN = frozenset({"cpu", "memory", "pods", "ephemeral-storage"})


class QueueTree:
    """The queues by name, and who is below whom. ``with_queue`` gives the tree after a change."""

    def __init__(self, queues: Iterable[Mapping[str, Any]]) -> None:
        self.queues = {name_of(queue): queue for queue in queues}
        self._children: dict[str, list[str]] = {}
        for name, queue in sorted(self.queues.items()):
            if parent := parent_of(queue):
                self._children.setdefault(parent, []).append(name)

    def with_queue(self, queue: Mapping[str, Any]) -> QueueTree:
        """The tree with this queue added or replaced."""
        return QueueTree({**self.queues, name_of(queue): queue}.values())

    def children(self, name: str) -> list[str]:
        """The queues whose parent this is, by name."""
        return self._children.get(name, [])

    def above(self, name: str) -> Iterator[str]:
        """The ancestors below root, nearest first; ends where a name repeats."""
        seen = {name}
        current = parent_of(self.queues.get(name, {}))
        while current and current not in seen:
            yield current
            seen.add(current)
            current = parent_of(self.queues.get(current, {}))

    def height(self, name: str) -> int:
        """How many levels stand below this queue."""
        height, level, seen = 0, self.children(name), {name}
        while level := [child for child in level if child not in seen]:
            height += 1
            seen.update(level)
            level = [grandchild for child in level for grandchild in self.children(child)]
        return height


def parent_of(queue: Mapping[str, Any]) -> str:
    """``spec.parent``, empty when that is root or none."""
    parent = text(mapping(queue.get("spec")).get("parent"))
    return "" if parent == ROOT_QUEUE else parent


def numbers(queue: Mapping[str, Any], section: str) -> dict[str, Quantity]:
    """The quantities of a section, by resource; names that Volcano's scheduler does not count are left out."""
    value = mapping(mapping(queue.get("spec")).get(section))
    if section == "guarantee":
        value = mapping(value.get("resource"))
    read = {name: amount(given) for name, given in value.items()}
    return {name: given for name, given in read.items() if given is not None and _counted(name)}


def _counted(resource: str) -> bool:
    return (
        resource in _PLAIN
        or resource.startswith("hugepages-")
        or ("/" in resource and not resource.startswith("count/"))
    )


def check_tree(queue: Mapping[str, Any], old: Mapping[str, Any] | None, stored: QueueTree, findings: Findings) -> None:
    """Q8-Q11 when the queue is new or moves; Q13-Q16 when it is new, moves or changes its numbers."""
    name = name_of(queue)
    if name == ROOT_QUEUE:
        return
    tree = stored.with_queue(queue)
    moved = old is None or parent_of(queue) != parent_of(old)
    if moved and parent_of(queue) and not _check_place(name, queue, stored, tree, findings):
        return
    sections = ("capability", "deserved", "guarantee")
    if moved or old is None or any(numbers(queue, part) != numbers(old, part) for part in sections):
        if parent_of(queue):
            _check_under_parent(queue, tree, findings)
        if tree.children(name):
            _check_over_children(queue, tree, findings)


def _check_place(name: str, queue: Mapping[str, Any], stored: QueueTree, tree: QueueTree, findings: Findings) -> bool:
    """Q8-Q11; whether the place is one at all."""
    path, parent = "spec.parent", parent_of(queue)
    if parent == name:
        findings.refuse(path, f"queue {name!r} cannot be its own parent")  # Q8
        return False
    above = list(tree.above(name))
    missing = next((other for other in above if other not in tree.queues), None)
    if missing is not None:
        whose = "" if missing == parent else f", above {parent!r},"
        findings.refuse(
            path,
            f"there is no queue {missing!r}{whose}{near(missing, sorted(stored.queues), 'queues')}",  # Q10
        )
        return False
    if parent_of(tree.queues[above[-1]]) == name:
        circle = " -> ".join([name, *above, name])
        findings.refuse(path, f"{parent!r} lies below {name!r}, which would make a loop: {circle}")  # Q8
        return False
    depth, limit = 1 + len(above) + tree.height(name), findings.rules.max_queue_depth
    if depth > limit:
        below = ", with what is below it" if tree.height(name) else ""
        findings.refuse(path, f"puts queue {name!r}{below} at depth {depth}; at most {limit} are allowed")  # Q9
    pods = amount(mapping(mapping(stored.queues[parent].get("status")).get("allocated")).get("pods", 0))
    if pods and not stored.children(parent):
        findings.refuse(
            path,
            f"queue {parent!r} holds {pods} pods and has no queue below it, so it cannot become a parent",  # Q11
        )
    return True


def _check_under_parent(queue: Mapping[str, Any], tree: QueueTree, findings: Findings) -> None:
    """Q13 and Q14."""
    parent = parent_of(queue)
    for resource, own in numbers(queue, "capability").items():
        limits = (
            (other, numbers(tree.queues.get(other, {}), "capability").get(resource))
            for other in tree.above(name_of(queue))
        )
        nearest = next(((other, cap) for other, cap in limits if cap), None)
        if nearest is not None and own > nearest[1]:
            findings.refuse(
                at_key("spec.capability", resource),
                f"{own} is more than the {nearest[1]} of queue {nearest[0]!r} above",  # Q13
            )
    for section, path in (("guarantee", "spec.guarantee.resource"), ("deserved", "spec.deserved")):
        total = sum_resources(numbers(tree.queues[child], section) for child in tree.children(parent))
        limit = numbers(tree.queues[parent], section)
        for resource in numbers(queue, section):
            if _exceeds(resource, total[resource], limit):
                findings.refuse(
                    at_key(path, resource),
                    f"all queues below {parent!r} together have {section} {total[resource]}, more than its own "
                    f"{limit.get(resource, ZERO)}",  # Q14
                )


def _check_over_children(queue: Mapping[str, Any], tree: QueueTree, findings: Findings) -> None:
    """Q15 and Q16."""
    name = name_of(queue)
    for resource, own in numbers(queue, "capability").items():
        largest = _largest_below(name, resource, tree, {name})
        if largest is not None and own < largest[1]:
            findings.refuse(
                at_key("spec.capability", resource),
                f"{own} is less than the {largest[1]} of queue {largest[0]!r} below",  # Q15
            )
    for section, path in (("guarantee", "spec.guarantee.resource"), ("deserved", "spec.deserved")):
        total = sum_resources(numbers(tree.queues[child], section) for child in tree.children(name))
        limit = numbers(queue, section)
        for resource, amount_below in total.items():
            if _exceeds(resource, amount_below, limit):
                findings.refuse(
                    at_key(path, resource),
                    f"{limit.get(resource, ZERO)} is less than the {amount_below} that the queues below {name!r} have "
                    f"together",  # Q16
                )


def _exceeds(resource: str, total: Quantity, limit: Mapping[str, Quantity]) -> bool:
    """What is not set counts as 0; a scalar resource that is only named below is refused even at 0."""
    if resource not in limit and resource not in _PLAIN:
        return True
    return total > limit.get(resource, ZERO)


def _largest_below(name: str, resource: str, tree: QueueTree, seen: set[str]) -> tuple[str, Quantity] | None:
    """The largest capability below: a child's own if it has one, else what is found below it."""
    found: list[tuple[str, Quantity]] = []
    for child in tree.children(name):
        if child in seen:
            continue
        seen.add(child)
        own = numbers(tree.queues[child], "capability").get(resource)
        below = (child, own) if own else _largest_below(child, resource, tree, seen)
        if below is not None:
            found.append(below)
    return max(found, key=lambda entry: entry[1], default=None)
