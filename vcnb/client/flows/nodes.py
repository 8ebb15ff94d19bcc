"""``flow.nodes``: the nodes of a flow by name, which show themselves as a table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from vcnb.errors import NotFound
from vcnb.scene.flownodes import NodeRecord

__all__ = ["Nodes"]


class Nodes(Mapping[str, NodeRecord]):
    """The nodes as they were when asked for, in the order of the flow. A missing name is NotFound, naming a near one."""

    def __init__(self, flow: str, records: Mapping[str, NodeRecord], now: float) -> None:
        self._flow = flow
        self._records = records
        self._now = now

    def __getitem__(self, name: str) -> NodeRecord:
        try:
            return self._records[name]
        except KeyError:
            raise NoSuchNode(self._flow, name, self._records) from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._records)

    def __len__(self) -> int:
        return len(self._records)

    def __contains__(self, name: object) -> bool:
        return name in self._records

    def to_pandas(self) -> Any:
        """A pandas DataFrame, one row a node: its phase, reason, job, attempts, when it started and how long it took."""
        import pandas as pd

        rows = [
            {
                "node": record.name,
                "type": record.type,
                "phase": record.phase,
                "reason": record.reason,
                "job": record.job,
                "attempts": record.attempts,
                "started": record.started,
                "seconds": record.seconds,
                **{f"output.{key}": value for key, value in record.outputs.items()},
            }
            for record in self._records.values()
        ]
        return pd.DataFrame(rows)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        from vcnb.scene.flow import nodes_html

        return {"text/plain": repr(self), "text/html": nodes_html(self._records, self._now)}

    def __repr__(self) -> str:
        from vcnb.scene.flow import nodes_text

        return nodes_text(self._records, self._now)


class NoSuchNode(NotFound, KeyError):
    """The flow has no node of that name."""

    def __init__(self, flow: str, name: str, known: Mapping[str, Any]) -> None:
        import difflib

        near = difflib.get_close_matches(str(name), known, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"its nodes: {', '.join(known) or 'none'}"
        super().__init__(f"flow {flow!r} has no node {name!r}; {hint}")

    def __str__(self) -> str:
        return str(self.args[0])
