"""How a run is set up.

A setting is looked for in this order:

1. an argument of ``papermill.execute_notebook(..., where="here")``;
2. a parameter ``vcnb_where`` (``papermill ... -p vcnb_where here``), which the notebook need not know;
3. the notebook's metadata, ``{"vcnb": {"where": "here"}}`` or ``{"vcnb_where": "here"}``;
4. the environment, ``VCNB_PAPERMILL_WHERE=here`` (not for ``waive``);
5. the default.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from vcnb.errors import VcnbError

__all__ = ["Settings"]


@dataclass(frozen=True)
class Settings:
    """Settings of the engine, each with its default.

    ``where``: ``job`` or ``here``. ``on_exit``: what becomes of the notebook's job when papermill is interrupted or
    terminated, and of jobs that the notebook leaves unfinished: ``keep`` or ``cancel``. ``waive``: True, or names of jobs
    that may fail without the notebook looking. ``linger``: seconds to wait, at the end, for the notebook's jobs.
    ``image``, ``queue``, ``resources``, ``env``, ``retries``, ``namespace``, ``name``: of the job. ``cluster``: a Cluster or
    a URL.
    """

    where: Literal["job", "here"] = "job"
    on_exit: Literal["keep", "cancel"] = "keep"
    waive: Any = None
    linger: float = 5.0
    cluster: Any = None
    image: str | None = None
    queue: str | None = None
    namespace: str | None = None
    name: str | None = None
    retries: int = 0
    resources: Any = None
    env: Any = None

    @classmethod
    def find(cls, given: dict[str, Any], metadata: Mapping[str, Any]) -> Settings:
        """The settings of a run; what is theirs is taken out of ``given``. Raises VcnbError for an impossible value."""
        parameters = metadata.get("papermill", {}).get("parameters", {})
        own = metadata.get("vcnb", {})
        found: dict[str, Any] = {}
        for name in cls.__dataclass_fields__:
            prefixed = f"vcnb_{name}"
            places = (
                {name: given.pop(name, given.pop(prefixed, None))},
                {name: parameters.get(prefixed)},
                {name: own.get(name, metadata.get(prefixed))},
                {} if name == "waive" else {name: os.environ.get(f"VCNB_PAPERMILL_{name.upper()}")},
            )
            value = next((place[name] for place in places if place.get(name) is not None), None)
            if value is not None:
                found[name] = value
        return cls(**_checked(found))


def _checked(found: dict[str, Any]) -> dict[str, Any]:
    for name, possible in (("where", ("job", "here")), ("on_exit", ("keep", "cancel"))):
        if name in found and found[name] not in possible:
            raise VcnbError(f"papermill engine vcnb: {name} is {' or '.join(possible)}, not {found[name]!r}")
    for name, kind in (("linger", float), ("retries", int)):
        if name in found:
            try:
                found[name] = kind(found[name])
            except (TypeError, ValueError):
                raise VcnbError(f"papermill engine vcnb: {name} is a number, not {found[name]!r}") from None
    return found
