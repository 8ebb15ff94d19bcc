"""The cluster that a notebook's magics talk to: the one of ``%vcnb connect``, else ``vcnb.connect()``'s default."""

from __future__ import annotations

from vcnb.client.attaching import look_in
from vcnb.client.cluster import Cluster
from vcnb.client.connect import connect

__all__ = ["current", "set_current"]

_current: Cluster | None = None


def current() -> Cluster:
    """The notebook's cluster; connects to the default one when there is none yet, or it was closed."""
    if _current is None or _current.closed:
        set_current(connect())
    assert _current is not None
    return _current


def set_current(cluster: Cluster) -> None:
    """Make ``cluster`` the one that magics talk to; the one before stays as it is."""
    global _current  # noqa: PLW0603 - a notebook talks to one cluster at a time
    _current = cluster
    look_in(cluster)
