"""``cluster.cache.filesystem()``: the fsspec filesystem over one cluster's cache."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from vcnb.cache.filesystem import CacheFileSystem
    from vcnb.client.cluster import Cluster

__all__ = ["filesystem"]


def filesystem(cluster: Cluster, options: Mapping[str, Any]) -> CacheFileSystem:
    """A filesystem that reads through ``cluster``'s cache. ``options``: the filesystem's own and those of the sources."""
    from vcnb.cache.filesystem import CacheFileSystem

    return CacheFileSystem(cluster=cluster, **options)
