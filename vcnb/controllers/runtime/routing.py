"""Which worker looks after an object: always the same one, so that no object is worked on twice at once."""

from __future__ import annotations

from functools import lru_cache

__all__ = ["fnv1_32", "worker_of"]

_OFFSET = 2166136261
_PRIME = 16777619


def fnv1_32(data: bytes) -> int:
    """The 32-bit FNV-1 hash (multiply, then xor; not FNV-1a)."""
    value = _OFFSET
    for byte in data:
        value = (value * _PRIME & 0xFFFFFFFF) ^ byte
    return value


@lru_cache(maxsize=65536)
def worker_of(key: str, workers: int) -> int:
    """The worker for ``<namespace>/<name>``, from 0. Source: Volcano job controller, routing of requests."""
    return fnv1_32(key.encode()) % workers if workers > 1 else 0
