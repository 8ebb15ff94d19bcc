"""Path arguments: what a person names, as the full source URL that jobs, workers and the filesystem go by.

A path is literal: never percent-decoded, never globbed. A local path is made absolute, ``.`` and ``..`` resolved, a trailing
``/`` dropped, and named ``file:///...``.
"""

from __future__ import annotations

import os
import re
from typing import Any, Final

from vcnb.errors import InvalidObject, Problem

__all__ = ["source_url"]

_URL: Final = re.compile(r"^([A-Za-z][A-Za-z0-9+.-]*)://(.*)$", re.DOTALL)
_EXAMPLE: Final = "a URL such as s3://bucket/data or a local path such as /data/set"


def source_url(path: Any, name: str = "path") -> str:
    """The source URL of a path argument. Raises InvalidObject with ``name`` as the place of the mistake."""
    text = _text(path, name)
    found = _URL.match(text)
    if found is not None and found[1] == "vcache":
        text = _from_cached(found[2], name, text)
        found = _URL.match(text)
    if found is None or found[1] == "file":
        return _local(text if found is None else found[2], name)
    if not found[2].strip("/"):
        raise _refused(name, f"{text!r} names no bucket and no host; give {_EXAMPLE}")
    return text.rstrip("/")


def _text(path: Any, name: str) -> str:
    if path is None:
        raise _refused(name, f"is required: {_EXAMPLE}")
    try:
        text = os.fsdecode(path)
    except TypeError:
        raise _refused(name, f"must be a path, not {type(path).__name__}: {_EXAMPLE}") from None
    if not text.strip():
        raise _refused(name, f"is empty; give {_EXAMPLE}")
    if "\0" in text:
        raise _refused(name, "must not hold a zero byte")
    return text


def _from_cached(rest: str, name: str, text: str) -> str:
    """``vcache://s3/bucket/x`` names ``s3://bucket/x``."""
    scheme, slash, place = rest.partition("/")
    if not scheme or not slash:
        raise _refused(
            name, f"{text!r} is no cached path; those are vcache://<scheme>/<rest>, e.g. vcache://s3/bucket/x"
        )
    return f"{scheme}:///{place}" if scheme == "file" else f"{scheme}://{place}"


def _local(path: str, name: str) -> str:
    absolute = os.path.abspath(path)  # noqa: PTH100 - symbolic links stay as they are named
    whole = "/" + absolute.lstrip("/")
    if whole == "/":
        raise _refused(name, "'/' is everything on this machine; name a directory or a file below it")
    return f"file://{whole}"


def _refused(name: str, message: str) -> InvalidObject:
    return InvalidObject([Problem(name, None, message)], "the cache job")
