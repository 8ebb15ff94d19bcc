"""``cluster.cache.config``: every property of the Job Service, under Alluxio's names."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, MutableMapping
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from vcnb.client.cache.cache import Cache

__all__ = ["Config"]


class Config(MutableMapping[str, Any]):
    """Properties and their values: times in seconds, sizes in bytes. Setting one takes Alluxio's spelling, too (``15s``).

    ``config["vcnb.quota.s3://bucket/data"] = "10Gi"``: so much of a path may be cached.

    A change is kept with a durable cluster (``alluxio-site.properties`` in its cache directory) and holds at once; jobs
    that run go on at their checkpoints.
    """

    def __init__(self, cache: Cache) -> None:
        self._cache = cache

    def _values(self) -> Mapping[str, Any]:
        host = self._cache._host  # noqa: SLF001 - a part of the cache
        values: Mapping[str, Any] = host.config.properties()
        return values

    def __getitem__(self, name: str) -> Any:
        from vcnb.client.cache.host import property_name

        values, name = self._values(), property_name(name)
        if name not in values:
            self._unknown(name, values)
        return values[name]

    def __setitem__(self, name: str, value: Any) -> None:
        self.set({name: value})

    def set(self, properties: Mapping[str, Any]) -> None:
        """Change several at once. Raises InvalidObject that names every unknown or unreadable one; then none is changed."""
        from vcnb.cache.config import NO_EFFECT

        told = {name: _spelled(value) for name, value in properties.items()}
        for name in told:
            if name in NO_EFFECT:
                warnings.warn(f"{name} changes nothing here: {NO_EFFECT[name][1]}", stacklevel=2)
        self._cache._bridge.run(self._cache._host.configure(told))  # noqa: SLF001

    def __delitem__(self, name: str) -> None:
        """Back to the default; a quota (``vcnb.quota.<path>``) goes."""
        _ = self[name]
        self._cache._bridge.run(self._cache._host.configure({name: None}))  # noqa: SLF001

    def __iter__(self) -> Iterator[str]:
        return iter(self._values())

    def __len__(self) -> int:
        return len(self._values())

    @staticmethod
    def _unknown(name: str, values: Mapping[str, Any]) -> NoReturn:
        import difflib

        near = difflib.get_close_matches(name, values, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise KeyError(f"{name} is not a property of the Job Service{hint}")

    def __repr__(self) -> str:
        return "\n".join(f"{name}={value}" for name, value in self.items())


def _spelled(value: Any) -> str:
    """A number for a duration is in seconds, as it is read; Alluxio's bare numbers would be milliseconds."""
    return f"{value!r}s" if isinstance(value, float) else str(value)
