"""What the index says, one operation after the other; carried out in order they give the catalogue.

    p path size etag mtime loaded first container offset length sums    pages (length 0: only the metadata)
    g path                                                             a file is gone
    c path first end                                                   some pages of it are gone
    u path                                                             it was read
    n prefix on                                                        a pin
    l prefix seconds                                                   how long files live; None: for ever

Paths are bytes: names may hold what is no Unicode.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from vcnb.cache.pages.catalogue import CannotKeep, Catalogue, Extent
from vcnb.cache.protocol import Version

__all__ = ["cut", "gone", "life", "pinned", "put", "replay", "set_life", "snapshot", "touched"]

Operation = tuple[Any, ...]


def put(path: str, version: Version, loaded: float, extent: Extent | None) -> Operation:
    """Pages of a file are there."""
    place = extent or (0, 0, 0, 0, b"")
    return ("p", _bytes(path), version.size, version.etag, version.mtime, loaded, *place)


def gone(path: str) -> Operation:
    """A file is not cached any more."""
    return ("g", _bytes(path))


def cut(path: str, first: int, end: int) -> Operation:
    """Some pages of a file are not cached any more."""
    return ("c", _bytes(path), first, end)


def touched(path: str) -> Operation:
    """A file was read."""
    return ("u", _bytes(path))


def pinned(prefix: str, *, on: bool) -> Operation:
    """A pin is set, or taken off."""
    return ("n", _bytes(prefix), on)


def life(prefix: str, seconds: float | None) -> Operation:
    """How long files live."""
    return ("l", _bytes(prefix), seconds)


def set_life(catalogue: Catalogue, prefix: str, seconds: float | None) -> None:
    """Set or remove a time to live."""
    if seconds is None:
        catalogue.lives.pop(prefix, None)
    else:
        catalogue.lives[prefix] = seconds


def replay(catalogue: Catalogue, operation: Operation) -> None:
    """Carry an operation out."""
    kind, path = operation[0], operation[1].decode("utf-8", "surrogatepass")
    if kind == "p":
        _, _, size, etag, mtime, loaded, *place = operation
        extent = Extent(*place) if place[3] else None
        catalogue.put(path, Version(size, etag, mtime), loaded, extent)
    elif kind == "g":
        catalogue.drop(path)
    elif kind == "c":
        catalogue.cut(path, operation[2], operation[3])
    elif kind == "u":
        held = catalogue.files.get(path)
        if held is not None:
            catalogue.used(path, held)
    elif kind == "n":
        _pin(catalogue, path, on=operation[2])
    elif kind == "l":
        set_life(catalogue, path, operation[2])


def _pin(catalogue: Catalogue, prefix: str, *, on: bool) -> None:
    if not on:
        catalogue.unpin(prefix)
        return
    try:
        catalogue.pin(prefix)
    except CannotKeep:  # the capacity is smaller than it was
        catalogue.pins.discard(prefix)


def snapshot(catalogue: Catalogue) -> Iterator[Operation]:
    """The shortest operations that give a catalogue."""
    for prefix in catalogue.pins:
        yield pinned(prefix, on=True)
    for prefix, seconds in catalogue.lives.items():
        yield life(prefix, seconds)
    for path in catalogue.in_order():
        held = catalogue.files[path]
        if not held.extents:
            yield put(path, held.version, held.loaded, None)
        for extent in held.extents:
            yield put(path, held.version, held.loaded, extent)
        for _ in range(min(held.hits, 8)):
            yield touched(path)


def _bytes(path: str) -> bytes:
    return path.encode("utf-8", "surrogatepass")
