"""Names in the cached namespace, and the source URLs they stand for.

``s3://bucket/x`` is ``s3/bucket/x`` (``vcache://s3/bucket/x`` as a URL), ``file:///data/x`` is ``file/data/x``. Names are
literal: nothing is percent-decoded, and a key may hold ``//`` or a blank. Only local paths are made plain (``.`` and ``..``
resolved), as jobs do, so that both mean the same file.
"""

from __future__ import annotations

import os
import re
from typing import Final

__all__ = ["PROTOCOL", "name_of", "source_of", "stripped"]

PROTOCOL: Final = "vcache"
_URL: Final = re.compile(r"^([A-Za-z][A-Za-z0-9+.-]*)://(.*)$", re.DOTALL)
_LOCAL: Final = frozenset({"file", "local"})


def stripped(path: str) -> str:
    """The name that a URL of the cache, a source URL, an absolute local path, or a name means."""
    found = _URL.match(path)
    if found is not None and found[1] == PROTOCOL:
        return _tidy(found[2].lstrip("/"))
    if found is not None:
        return name_of(path)
    return name_of(f"file://{path}") if path.startswith("/") else _tidy(path)


def _tidy(name: str) -> str:
    scheme, slash, rest = name.partition("/")
    if scheme in _LOCAL and slash:
        return _local(rest)
    return name.rstrip("/")


def _local(rest: str) -> str:
    """A local path as a name; normpath would keep two leading slashes."""
    plain = os.path.normpath(f"/{rest}").lstrip("/")
    return f"file/{plain}" if plain else "file"


def name_of(url: str) -> str:
    """The name of a source URL; that of a directory has no ``/`` at its end."""
    scheme, _, rest = url.partition("://")
    if scheme in _LOCAL:
        return _local(rest)
    return f"{scheme}/{rest.rstrip('/')}".rstrip("/")


def source_of(name: str) -> str:
    """The source URL of a name. Raises FileNotFoundError for the root, which is no source."""
    scheme, slash, rest = name.partition("/")
    if not scheme:
        raise FileNotFoundError("the root of the cached namespace is no file; names begin with a scheme: s3/bucket/x")
    if scheme in _LOCAL:
        return f"file:///{rest}"
    return f"{scheme}://{rest}" if slash else f"{scheme}://"
