"""``vcnb.connect``: one cluster object a URL and process."""

from __future__ import annotations

import os
import threading
from typing import Any

from vcnb.client.cluster import Cluster
from vcnb.client.url import DEFAULT_URL, Target, parse_url
from vcnb.errors import VcnbError

__all__ = ["connect"]

_clusters: dict[str, Cluster] = {}
_lock = threading.Lock()


def connect(url: str | None = None, **options: Any) -> Cluster:
    """Connect to a cluster; the same URL gives the same object until it is closed, every ``memory://`` is a fresh one.

    ``url``: default ``VCNB_CLUSTER``, else ``embedded://default``, durable under the user's data directory. Options by
    name or in the URL's query: ``runtime=sandbox|process|simulated``, ``controllers=on|off``, ``clock=real|virtual``,
    ``cpus=``, ``memory=``, ``pods=``, ``dir=``, ``compat=default|strict``; for ``kube://[context]`` also ``namespace=``,
    ``kubeconfig=`` and ``controllers=off|on|force`` (see ``vcnb.client.url.Options``). A call that names no options takes the cluster
    as it runs.

    Raises ClusterBusy (with ``.pid``) when another process owns the embedded cluster, StoreCorrupt when its journal cannot
    be trusted, Unreachable and Unauthorized for a Kubernetes cluster, VcnbError for a URL or option that is not known.
    """
    target = parse_url(url or os.environ.get("VCNB_CLUSTER") or DEFAULT_URL, **options)
    if target.scheme in ("http", "https"):
        raise VcnbError(
            f"{url}: this version of vcnb drives embedded clusters (embedded://, memory://) and Kubernetes clusters "
            "(kube://context); clusters that another process serves are not supported yet"
        )
    if target.scheme == "memory":
        return Cluster(target)
    with _lock:
        known = _clusters.get(target.key)
        if known is not None and not known.closed:
            other = target.differences(known._target.options)  # noqa: SLF001 - the same package
            if other:
                raise VcnbError(f"{target.key} is connected already, with {other}; close it first: cluster.close()")
            return known
        cluster = _opened(target)
        _clusters[target.key] = cluster
        return cluster


def _opened(target: Target) -> Cluster:
    """The cluster; a process that only works on jobs of its cache in the background leaves it to us."""
    if target.scheme != "embedded":
        return Cluster(target)
    from vcnb.client.cache.background import patiently

    return patiently(lambda: Cluster(target), target.directory)
