"""Where a cluster's cache is: read from the options of ``vcnb.connect``.

cache="etcd://host:port[,host:port...][/prefix]"   jobs in etcd, shared by coordinators
cache="alluxio://host:19999[/base][?api=...]"      a real Alluxio Enterprise does the work; alluxios:// is by HTTPS. In the query:
                                                   api=v1_load|master_v1|worker_v1 (found out), verify=off, timeout=20
(nothing)                                          jobs and pages of this cluster alone
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final
from urllib.parse import parse_qsl, urlsplit

from vcnb.errors import VcnbError

__all__ = ["CachePlace", "capacity_of", "parse_cache_url"]

_SCHEMES: Final = ("etcd", "etcds", "alluxio", "alluxios")
_APIS: Final = ("auto", "v1_load", "master_v1", "worker_v1")


@dataclass(frozen=True)
class CachePlace:
    """A parsed cache URL. ``kind``: ``embedded``, ``etcd`` or ``alluxio``; ``endpoints`` are URLs.

    ``api``, ``verify`` and ``timeout`` (seconds) are for a real Alluxio.
    """

    kind: str = "embedded"
    endpoints: tuple[str, ...] = ()
    prefix: str = ""
    api: str = "auto"
    verify: bool = True
    timeout: float = 20.0


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
    rest, _, query = rest.partition("?")
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
    place = CachePlace(kind, endpoints, f"/{path}" if slash and path else "")
    return _with_query(url, place, dict(parse_qsl(query, keep_blank_values=True)))


def _with_query(url: str, place: CachePlace, query: dict[str, str]) -> CachePlace:
    allowed = ("api", "verify", "timeout") if place.kind == "alluxio" else ()
    for name in query:
        if name not in allowed:
            known = f"there are {', '.join(allowed)}" if allowed else f"{place.kind}:// has no options"
            raise VcnbError(f"cannot use the cache {url!r}: unknown option {name!r}; {known}")
    api, verify = query.get("api", place.api), query.get("verify", "on")
    if api not in _APIS or verify not in {"on", "off"}:
        raise VcnbError(f"cannot use the cache {url!r}: api is one of {', '.join(_APIS)}; verify is on or off")
    try:
        timeout = float(query.get("timeout", place.timeout))
    except ValueError:
        timeout = 0.0
    if not timeout > 0:
        raise VcnbError(f"cannot use the cache {url!r}: timeout is in seconds, above 0")
    return replace(place, api=api, verify=verify == "on", timeout=timeout)


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
