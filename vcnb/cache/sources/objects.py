"""Paths of object stores: ``scheme://bucket/key``, the key literal."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["Place", "inside", "place_of"]


class Place(NamedTuple):
    """A path taken apart: ``s3://bucket/`` and the key after it."""

    root: str
    bucket: str
    key: str

    def path(self, key: str) -> str:
        """The path of another key of the bucket."""
        return self.root + key


def place_of(path: str) -> Place:
    """The bucket and key of a path; no bucket for the root of all buckets."""
    scheme, _, rest = path.partition("://")
    bucket, _, key = rest.partition("/")
    if not bucket:
        return Place(f"{scheme}://", "", "")
    return Place(f"{scheme}://{bucket}/", bucket, key)


def inside(key: str) -> str:
    """The prefix of all keys under a key; nothing for the whole bucket."""
    return key if not key or key.endswith("/") else f"{key}/"
