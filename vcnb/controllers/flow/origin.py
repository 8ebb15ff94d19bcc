"""Which node a job was made for: read from its labels, or from its name. Pure."""

from __future__ import annotations

import re
from collections.abc import Container
from typing import Final, NamedTuple

from vcnb.resources import names
from vcnb.store.protocol import Obj

__all__ = ["Origin", "origin_of"]

_RETRIED: Final = re.compile(r"-r([1-9][0-9]*)$")


class Origin(NamedTuple):
    """The place of a job in its flow."""

    node: str
    item: int | None = None
    iteration: int | None = None
    attempt: int = 0


def origin_of(job: Obj, flow: str, nodes: Container[str]) -> Origin | None:
    """Where a job of the flow comes from; None when it is of none of these nodes.

    Jobs of plain flows have no labels that say it, as upstream; their names do.
    """
    labels = job["metadata"].get("labels") or {}
    node = labels.get(names.FLOW_NODE)
    if node is not None:
        if node not in nodes:
            return None
        return Origin(
            node,
            _number(labels.get(names.FLOW_INDEX)),
            _number(labels.get(names.FLOW_ITERATION)),
            _number(labels.get(names.FLOW_ATTEMPT)) or 0,
        )
    name = str(job["metadata"]["name"])
    if not name.startswith(f"{flow}-"):
        return None
    node = name[len(flow) + 1 :]
    if node in nodes:
        return Origin(node)
    retried = _RETRIED.search(node)
    if retried is not None and node[: retried.start()] in nodes:
        return Origin(node[: retried.start()], attempt=int(retried[1]))
    return None


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and text.isdecimal() else None
