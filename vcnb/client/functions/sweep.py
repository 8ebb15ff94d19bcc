"""Sweeps: a function over a grid of parameters, as one job and one table."""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from vcnb.client.bridge import twins
from vcnb.client.functions.items import Item, ItemState
from vcnb.client.functions.payload import arguments_of
from vcnb.client.functions.run import Map
from vcnb.errors import VcnbError, WaitTimeout

__all__ = ["Grid", "Sweep", "combinations", "row_of"]

Grid: TypeAlias = Mapping[str, Any] | Sequence[Mapping[str, Any]]
"""Values by parameter name (every combination is run), or the rows themselves."""

_SCALARS = (str, bytes, Mapping)


def combinations(grid: Grid, function: Callable[..., Any]) -> list[dict[str, Any]]:
    """The rows of a sweep: every combination of a grid, its last parameter changing fastest, or the rows as given.

    In a grid a value that is no sequence (a number, a text, a mapping) is the same in every row. Raises VcnbError for
    parameters that the function does not take, and for a sweep of nothing.
    """
    if isinstance(grid, Mapping):
        values = [_values(name, value) for name, value in grid.items()]
        rows = [dict(zip(grid, combination, strict=True)) for combination in itertools.product(*values)]
    else:
        rows = [dict(row) for row in grid]
    if not rows or not any(rows):
        raise VcnbError('a sweep of nothing: give values, e.g. {"lr": [0.1, 0.01], "seed": [1, 2]}, or a list of rows')
    signature = inspect.signature(function)
    for row in rows:
        try:
            signature.bind(**row)
        except TypeError as error:
            name = getattr(function, "__name__", "the function")
            raise VcnbError(f"{name}{signature} cannot be called with {row}: {error}") from None
    return rows


def _values(name: str, value: Any) -> list[Any]:
    if isinstance(value, _SCALARS) or not hasattr(value, "__iter__"):
        return [value]
    found = list(value)
    if not found:
        raise VcnbError(f"parameter {name!r} of the sweep has no values")
    return found


class Sweep(Map):
    """A running or finished sweep. ``to_pandas()`` is its table, ``parameters`` its rows."""

    async def _parameters(self) -> list[dict[str, Any]]:
        if not hasattr(self, "_rows"):
            self._rows = [keywords for _, keywords in arguments_of(await self._payload())]
        return self._rows

    @property
    def parameters(self) -> list[dict[str, Any]]:
        """The parameters of every row."""
        return self._bridge.run(self._parameters())

    async def _table(self) -> list[dict[str, Any]]:
        """The rows as they stand now, waiting for nothing: parameters, results, ``state`` and ``error``."""
        parameters = await self._parameters()
        return [row_of(row, item) for row, item in zip(parameters, await self._items(), strict=True)]

    rows, rows_async = twins(_table)

    async def _waited_table(self, timeout: float | None) -> list[dict[str, Any]]:
        try:
            await self._wait(timeout=timeout, check=False)
        except WaitTimeout as error:
            progress = await self._progress()
            raise WaitTimeout(f"{error} ({progress}; the table so far: .to_pandas(wait=False))") from None
        return await self._table()

    def to_pandas(self, wait: bool = True, timeout: float | None = None) -> Any:
        """A DataFrame, one row an item: its parameters, what it returned, ``state`` and ``error``.

        A dict that the function returns becomes columns, anything else the column ``result``; where a name is taken
        already it is ``result.<name>`` (``item.state``, ``item.error``). A failed item is a row with its error, it raises
        nothing. ``wait=False`` gives the table as it stands; else ``timeout`` in seconds bounds the wait (WaitTimeout).
        """
        import pandas as pd

        rows = self._blocking(self._waited_table(timeout) if wait else self._table())
        columns = list(dict.fromkeys(name for row in rows for name in row if name not in _LAST))
        columns += [name for name in dict.fromkeys(name for row in rows for name in row) if name in _LAST]
        return pd.DataFrame(rows, columns=columns)


_LAST = ("state", "error", "item.state", "item.error")


def row_of(parameters: Mapping[str, Any], item: Item) -> dict[str, Any]:
    """One row of the table."""
    row = dict(parameters)
    error = item.error
    if item.state is ItemState.DONE:
        try:
            value = item.value
        except Exception as broken:  # noqa: BLE001 - what cannot be unpickled here is an error of this row
            value, error = {}, str(broken)
        for name, part in value.items() if isinstance(value, Mapping) else [("result", value)]:
            row[f"result.{name}" if str(name) in (*parameters, "state", "error") else str(name)] = part
    row["item.state" if "state" in parameters else "state"] = item.state.value
    row["item.error" if "error" in parameters else "error"] = error
    return row
