"""The bubblewrap command line of one container's sandbox, as a function of its mounts and of what is on this machine.

A sandbox is the machine's own file system, readable and writable as for the user, with some places replaced: jobs are
the user's own programs and read and write the user's own files wherever they are, just as in the process runtime. It is
no security boundary. Replaced are

- ``/proc`` (own process ids), ``/dev`` (a small one, with the machine's accelerators) and ``/dev/shm``;
- ``/tmp``: what the pod makes there is its own and goes with it; what is there already is shared with the machine;
- every ``mountPath``, and ``/etc/hosts``.

A mount point that the machine does not have must not be made on the machine. So its nearest existing directory is
*shadowed*: a tmpfs with the same entries, in which the mount point can be made. Entries are bind mounts or, where that
would be slow (bwrap takes longer for each mount than for the one before) or nobody would notice, symbolic links into a
bind mount of the real directory under ``/dev/.host``.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Mount", "room_command"]

_REAL = "/dev/.host"
_FRESH = ("/dev", "/tmp", "/proc")  # noqa: S108 - places inside the sandbox
_LINKED = ("/etc", "/tmp")  # noqa: S108
_BINDS = 24
"""More directories than this in one place are links."""
_DEVICES = ("nvidia*", "dri", "kfd", "infiniband", "fuse", "kvm", "net", "dxg", "accel*")
_DIRECTORY_MODE = 0o755


@dataclass(frozen=True)
class Mount:
    """``source`` on the machine appears at ``path`` in the container."""

    path: str
    source: Path
    read_only: bool = False


def room_command(bwrap: str, holder: str, hostname: str, mounts: Iterable[Mount], cwd: str) -> list[str]:
    """The command line, ``holder`` (a ``cat``) included. See launcher/ for how it is used."""
    placed = _placed(mounts)
    shadows = _shadows(placed)
    familiar = [os.path.realpath(place) for place in (cwd, sys.prefix)]
    return [
        bwrap,
        *("--die-with-parent", "--unshare-pid", "--unshare-uts", "--unshare-ipc"),
        *("--hostname", hostname[:64]),
        *_root(placed, shadowed="/" in shadows),
        *("--dev", "/dev", "--perms", "1777", "--tmpfs", "/dev/shm", "--proc", "/proc"),  # noqa: S108
        *_devices(),
        *_shadow("/tmp", placed, [*shadows, *familiar], mode=0o1777),  # noqa: S108
        *(word for place in sorted(shadows - {"/"}) for word in _shadow(place, placed, [*shadows, *familiar])),
        *(word for mount in placed for word in _bind(mount)),
        *("--", holder),
    ]


def _placed(mounts: Iterable[Mount]) -> list[Mount]:
    """Outer mounts first, each at the place that its path leads to (``/var/run`` is ``/run``); the last of a path wins."""
    by_path = {}
    for mount in mounts:
        path = os.path.realpath(mount.path)
        if path != "/":
            by_path[path] = Mount(path, mount.source, mount.read_only)
    return [by_path[path] for path in sorted(by_path, key=lambda path: (path.count("/"), path))]


def _shadows(placed: Sequence[Mount]) -> set[str]:
    """Directories that must be rebuilt because a mount point in them is not on the machine."""
    places = set()
    for mount in placed:
        if _inside(mount.path, _FRESH) or _inside(mount.path, [other.path for other in placed if other != mount]):
            continue
        if os.path.lexists(mount.path) and mount.source.is_dir() == Path(mount.path).is_dir():
            continue
        place = Path(mount.path).parent
        while not place.is_dir():
            place = place.parent
        places.add(str(place))
    return places


def _inside(path: str, places: Iterable[str]) -> bool:
    return any(path.startswith(f"{place}/") for place in places)


def _root(placed: Sequence[Mount], *, shadowed: bool) -> Iterator[str]:
    if not shadowed:
        yield from ("--dev-bind", "/", "/")
        return
    at = {mount.path for mount in placed}
    for entry in _entries("/"):
        if entry.path in _FRESH or entry.path in at:
            continue
        if entry.is_symlink():
            yield from ("--symlink", str(Path(entry.path).readlink()), entry.path)
        else:
            yield from ("--dev-bind-try", entry.path, entry.path)


def _devices() -> Iterator[str]:
    for pattern in _DEVICES:
        for path in sorted(Path("/dev").glob(pattern)):
            yield from ("--dev-bind-try", str(path), str(path))


def _shadow(place: str, placed: Sequence[Mount], kept: Sequence[str], mode: int | None = None) -> Iterator[str]:
    """A tmpfs with the entries of ``place``, except for those that something else is mounted at.

    What leads to another mount or to a ``kept`` place is a directory, never a link.
    """
    at = {mount.path for mount in placed}
    deeper = [*at, *kept]
    real = f"{_REAL}{place}"
    entries = [entry for entry in _entries(place) if entry.path not in at]
    visible = {entry.name for entry in entries if entry.name[0] != "." and entry.is_dir(follow_symlinks=False)}
    bound = visible if place not in _LINKED and len(visible) <= _BINDS else set()
    yield from ("--dev-bind-try", place, real)
    yield from ("--perms", f"{_mode(place) if mode is None else mode:o}", "--tmpfs", place)
    for entry in entries:
        if entry.is_symlink():
            yield from ("--symlink", str(Path(entry.path).readlink()), entry.path)
        elif entry.name in bound or any(_inside(path, [entry.path]) or path == entry.path for path in deeper):
            yield from ("--dev-bind-try", entry.path, entry.path)
        else:
            yield from ("--symlink", f"{real}/{entry.name}", entry.path)


def _bind(mount: Mount) -> tuple[str, str, str]:
    return ("--ro-bind" if mount.read_only else "--dev-bind", str(mount.source), mount.path)


def _mode(place: str) -> int:
    try:
        return stat.S_IMODE(Path(place).stat().st_mode)
    except OSError:
        return _DIRECTORY_MODE


def _entries(place: str) -> list[os.DirEntry[str]]:
    """The entries of a directory, by name; none where it must not be read (``/root`` for somebody else)."""
    try:
        with os.scandir(place) as entries:
            return sorted(entries, key=lambda entry: entry.name)
    except OSError:
        return []
