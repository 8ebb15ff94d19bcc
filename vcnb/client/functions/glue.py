"""Values that a notebook records for whoever runs it: ``vcnb.glue("accuracy", 0.93)``."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

__all__ = ["GLUE", "glue", "glued"]

GLUE = "application/vnd.vcnb.glue+json"
_SCRAP = "application/scrapbook.scrap.json+json"
_RECORD = "application/papermill.record+json"


def glue(name: str, value: Any) -> None:
    """Record a value under a name in the notebook; ``cluster.notebook(...).result().outputs[name]`` has it.

    ``value`` is anything that JSON can say. It is shown in the cell and saved with its output. Where a notebook runs as
    a job in an image without vcnb, ``import vcnb`` gives a module with just this function. Raises TypeError.
    """
    from IPython.display import display

    try:
        json.dumps(value)
    except (TypeError, ValueError) as error:
        raise TypeError(f"vcnb.glue({name!r}, ...): {error}; only what JSON can say is recorded") from None
    display({GLUE: {"name": name, "value": value}, "text/plain": f"{name} = {value!r}"}, raw=True)  # type: ignore[no-untyped-call]


def glued(cells: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """What the cells of an executed notebook recorded, the last value of a name; scrapbook's records are read, too."""
    found: dict[str, Any] = {}
    for cell in cells:
        for output in cell.get("outputs", ()):
            data = output.get("data", {})
            if GLUE in data:
                found[data[GLUE]["name"]] = data[GLUE]["value"]
            elif _SCRAP in data:
                found[data[_SCRAP]["name"]] = data[_SCRAP].get("data")
            elif _RECORD in data:
                found.update(data[_RECORD])
    return found
