"""Sources: what fsspec opens, listed in an order that can be gone on with; local directories, S3 and HTTP without a detour.

``Sources`` opens them. Each is an ``UnderStore`` (``vcnb.cache.protocol``), and can also say what lies directly in one
directory (``Source.children``), for a filesystem's ``ls``.
"""

from __future__ import annotations

import importlib
import importlib.util
import re
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, Protocol, runtime_checkable

import msgspec

from vcnb.cache.config import CacheConfig
from vcnb.cache.protocol import FileInfo, UnderStore
from vcnb.cache.sources.local import LocalStore

__all__ = ["LocalStore", "Source", "Sources"]

THREADS: Final = 32
"""How many requests of sources that are not asynchronous, and of local directories, run at once."""

_SCHEME: Final = re.compile(r"^([A-Za-z][A-Za-z0-9+.-]*)://")
_OWN: Final = {
    "s3": "vcnb.cache.sources.s3:S3Store",
    "s3a": "vcnb.cache.sources.s3:S3Store",
    "gs": "vcnb.cache.sources.gcs:GcsStore",
    "gcs": "vcnb.cache.sources.gcs:GcsStore",
    "http": "vcnb.cache.sources.http:HttpStore",
    "https": "vcnb.cache.sources.http:HttpStore",
}
_PROTOCOLS: Final = {"s3a": "s3", "gcs": "gs"}
_PACKAGES: Final = {"s3": "vcnb[s3]", "gs": "vcnb[gcs]"}


@runtime_checkable
class Source(UnderStore, Protocol):
    """An under-store that can also be browsed."""

    async def children(self, path: str) -> tuple[FileInfo, ...]:
        """What lies directly in a directory, ascending by path; nothing for an empty one."""
        ...


class Sources:
    """The open sources of one loop; the same scheme and options give the same one. ``close`` ends all of them."""

    def __init__(self, config: CacheConfig | None = None) -> None:
        self.config = config or CacheConfig()
        self._stores: dict[tuple[str, bytes], Source] = {}
        self._threads: ThreadPoolExecutor | None = None

    @property
    def schemes(self) -> tuple[str, ...]:
        """The schemes of the sources that are open."""
        return tuple(sorted({scheme or "file" for scheme, _ in self._stores}))

    def open(self, path: str, storage_options: Mapping[str, Any]) -> Source:
        """The source of a path. Raises ValueError for a scheme that nothing opens, or whose package is not installed."""
        match = _SCHEME.match(path)
        scheme = match[1].lower() if match is not None else ""
        options = {**_of_url(scheme, path), **storage_options}
        key = (scheme, _key(options))
        store = self._stores.get(key)
        if store is None:
            store = self._stores[key] = self._new(scheme, options)
        return store

    def _new(self, scheme: str, options: Mapping[str, Any]) -> Source:
        pool = self._pool()
        if scheme in {"", "file", "local"}:
            return LocalStore(f"{scheme}://" if scheme else "", pool)
        _check_known(scheme)
        module, _, name = _OWN.get(scheme, "vcnb.cache.sources.remote:FsspecStore").partition(":")
        store: Source = getattr(importlib.import_module(module), name)(scheme, options, pool)
        return store

    def _pool(self) -> ThreadPoolExecutor:
        if self._threads is None:
            self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="vcnb-source")
        return self._threads

    async def close(self) -> None:
        """Close every source, and end the threads as soon as what they wait for is over."""
        stores = list(self._stores.values())
        self._stores.clear()
        for store in stores:
            await store.close()
        threads, self._threads = self._threads, None
        if threads is not None:
            threads.shutdown(wait=False, cancel_futures=True)

    def __repr__(self) -> str:
        return f"<Sources {', '.join(self.schemes) or 'none open'}>"


def _check_known(scheme: str) -> None:
    """Raise ValueError for a scheme that fsspec cannot open here, without importing what opens it: that may take seconds."""
    from fsspec.registry import known_implementations, registry

    protocol = _PROTOCOLS.get(scheme, scheme)
    if protocol in registry:
        return
    known = known_implementations.get(protocol)
    if known is None:
        raise ValueError(
            f"{scheme}:// is no scheme that anything here can open; known are s3, http, gs, hdfs, file ..."
        )
    module = known["class"].replace(":", ".").partition(".")[0]
    if importlib.util.find_spec(module) is None:
        package = _PACKAGES.get(protocol, module)
        raise ValueError(f"{scheme}:// paths need a package that is not installed: pip install {package}")


def _of_url(scheme: str, path: str) -> dict[str, Any]:
    """What a URL itself says of how to connect: host and port of hdfs://namenode:8020/data."""
    if scheme in {"", "file", "local"} or scheme in _OWN:
        return {}
    _check_known(scheme)
    from fsspec import get_filesystem_class

    try:
        kind: Any = get_filesystem_class(scheme)
    except ImportError as error:
        raise ValueError(f"{scheme}:// paths need a package that is not installed: {error}") from error
    return dict(kind._get_kwargs_from_urls(path))  # noqa: SLF001 - fsspec's own word for it


def _key(options: Mapping[str, Any]) -> bytes:
    """Equal options, equal keys. Live objects (credentials, sessions) are told apart by identity."""
    return msgspec.msgpack.encode(
        dict(options), enc_hook=lambda value: f"{type(value).__name__}-{id(value)}", order="deterministic"
    )
