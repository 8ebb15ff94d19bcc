"""Where a cluster's cache is: read from the options of ``vcnb.connect``.

cache="etcd://host:port[,host:port...][/prefix]"   jobs in etcd, shared by coordinators
cache="alluxio://host:19999"                       a real Alluxio Enterprise does the work; alluxios:// is by HTTPS
(nothing)                                          jobs and pages of this cluster alone
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from vcnb.errors import VcnbError

__all__ = ["CachePlace", "capacity_of", "parse_cache_url"]

_SCHEMES: Final = ("etcd", "etcds", "alluxio", "alluxios")


@dataclass(frozen=True)
class CachePlace:
    """A parsed cache URL. ``kind``: ``embedded``, ``etcd`` or ``alluxio``; ``endpoints`` are URLs."""

    kind: str = "embedded"
    endpoints: tuple[str, ...] = ()
    prefix: str = ""


def parse_cache_url(url: str | None) -> CachePlace:
    """Read a cache URL. Raises VcnbError that says what is possible."""
    if not url:
        return CachePlace()
    scheme, separator, rest = url.partition("://")
    if not separator or scheme not in _SCHEMES:
        raise VcnbError(
            f"cannot use the cache {url!r}: write etcd://host:port[,host:port] for a shared job store, "
            "or alluxio://host:19999 for a real Alluxio"
        )
    hosts, slash, path = rest.partition("/")
    names = [host.strip() for host in hosts.split(",") if host.strip()]
    kind = scheme.removesuffix("s")
    protocol = "https" if scheme.endswith("s") else "http"
    endpoints = tuple(f"{protocol}://{host}" for host in names)
    for endpoint in endpoints:
        _check(url, endpoint)
    if not endpoints:
        raise VcnbError(f"cannot use the cache {url!r}: it names no host; write {kind}://host:port")
    if kind == "alluxio" and len(endpoints) > 1:
        raise VcnbError(f"cannot use the cache {url!r}: name one coordinator of the Alluxio cluster")
    return CachePlace(kind, endpoints, f"/{path}" if slash and path else "")


def _check(url: str, endpoint: str) -> None:
    try:
        host, port = urlsplit(endpoint).hostname, urlsplit(endpoint).port
    except ValueError:
        host, port = None, None
    if not host or (port is not None and not 0 < port < 65536):
        raise VcnbError(f"cannot use the cache {url!r}: {endpoint.partition('://')[2]!r} is no host:port")


def capacity_of(text: str | int) -> int:
    """Bytes of ``10Gi`` or a number. Raises ValueError."""
    from vcnb.cache.config import parse_size

    size = parse_size(str(text))
    if size < 1 << 20:
        raise ValueError("the cache needs at least one page of 1Mi")
    return size
