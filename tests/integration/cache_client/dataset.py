"""Datasets of real files, and waiting for what a real cache does."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

MIB = 1 << 20


def make(directory: Path, files: int = 10, size: int = 3 * MIB) -> Path:
    """A directory of ``files`` files, no two alike."""
    directory.mkdir(parents=True, exist_ok=True)
    for number in range(files):
        seed = number.to_bytes(2, "big")
        (directory / f"f{number:03}").write_bytes((seed * (size // 2 + 1))[:size])
    return directory


def until(condition: Callable[[], bool], seconds: float = 30.0) -> None:
    """Look every few milliseconds whether something holds; an assertion when it does not within ``seconds``."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"not within {seconds} s"
        time.sleep(0.02)
