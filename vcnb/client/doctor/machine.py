"""What this machine has: Python, the packages of the notebook, and what an embedded cluster needs."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final

from vcnb.client.doctor.report import Finding
from vcnb.client.url import Target, data_directory

__all__ = ["embedded", "packages"]

_NEEDED: Final = {
    "ipython": "magics",
    "ipykernel": "notebooks",
    "ipywidgets": "live views",
    "anywidget": "live views",
    "papermill": "notebooks as jobs",
    "cloudpickle": "functions as jobs",
    "pandas": "to_pandas()",
    "plotly": "timeline()",
    "kubernetes": "kube:// clusters",
    "aiohttp": "kube:// clusters, the cache",
    "rocksdict": "embedded clusters that last",
}
_BAD: Final = {("ipykernel", "7.0.0"): "this release loses messages of other threads; take a newer one"}


def packages() -> Iterator[Finding]:
    """Python and the packages."""
    supported = sys.version_info >= (3, 11)
    yield Finding(
        "python",
        "version",
        "ok" if supported else "problem",
        f"{platform.python_version()} at {sys.executable}",
        "" if supported else "vcnb needs Python 3.11 or newer",
    )
    found: list[str] = []
    for name, purpose in _NEEDED.items():
        try:
            have = version(name)
        except PackageNotFoundError:
            yield Finding("python", name, "problem", f"is not installed; it is for {purpose}", f"pip install {name}")
            continue
        if (name, have) in _BAD:
            yield Finding("python", name, "problem", have, _BAD[name, have])
        found.append(f"{name} {have}")
    yield Finding("python", "packages", "ok", ", ".join(found))


def embedded(target: Target | None) -> Iterator[Finding]:
    """What an embedded cluster needs here."""
    directory = target.directory if target is not None and target.scheme == "embedded" else data_directory()
    there = next(path for path in (directory, *directory.parents) if path.exists())
    writable = os.access(there, os.W_OK | os.X_OK) and there.is_dir()
    yield Finding(
        "embedded",
        "directory",
        "ok" if writable else "problem",
        f"{directory}{'' if there == directory else ' (not made yet)'}",
        ""
        if writable
        else f"{there} cannot be written to; choose another one: VCNB_HOME, or embedded://name?dir=/path",
    )
    yield _room(there)
    yield _sandbox()


def _room(path: Path) -> Finding:
    disk = os.statvfs(path)
    free = disk.f_bavail * disk.f_frsize / 2**30
    if free < 1:
        return Finding("embedded", "disk", "note", f"{free:.1f} GiB free", "logs and journals need room")
    return Finding("embedded", "disk", "ok", f"{free:.1f} GiB free")


def _sandbox() -> Finding:
    from vcnb.local.node.runtimes import detect

    works, reason = detect()
    if works:
        return Finding("embedded", "sandbox", "ok", reason)
    return Finding(
        "embedded",
        "sandbox",
        "note",
        f"bubblewrap does not work here: {reason}",
        "pods run as plain processes, without mounts and host names of their own; install bubblewrap for more",
    )
