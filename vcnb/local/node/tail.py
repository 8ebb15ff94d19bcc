"""The last lines of a file, without reading the rest of it."""

from __future__ import annotations

import os

__all__ = ["tail_offset"]

_BLOCK = 1 << 16


def tail_offset(file: int, lines: int, stop: int = 0) -> int:
    """Where the last ``lines`` lines of an open file begin; reads only as much as it must, nothing before ``stop``."""
    end = os.fstat(file).st_size
    if lines <= 0:
        return end
    at, missing = end, lines
    while at > stop:
        size = min(_BLOCK, at - stop)
        block = os.pread(file, size, at - size)
        search = len(block) - 1 if at == end and block.endswith(b"\n") else len(block)
        while (found := block.rfind(b"\n", 0, search)) >= 0:
            missing -= 1
            if missing == 0:
                return at - size + found + 1
            search = found
        at -= size
    return min(stop, end)
