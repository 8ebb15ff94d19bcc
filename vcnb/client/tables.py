"""Rows that jobs printed, and other tables that are handed out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

__all__ = ["Records"]


class Records(Sequence[dict[str, Any]]):
    """Rows in order; ``to_pandas()`` makes a DataFrame of them."""

    def __init__(self, rows: list[dict[str, Any]]) -> None:
        self._rows = rows

    def __getitem__(self, index: Any) -> Any:
        return self._rows[index]

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self._rows)

    def to_pandas(self) -> Any:
        """A pandas DataFrame, one row a record."""
        import pandas as pd

        return pd.DataFrame(self._rows)

    def __repr__(self) -> str:
        return f"<{len(self._rows)} records>" if self._rows else "<no records: the pods printed no JSON objects>"
