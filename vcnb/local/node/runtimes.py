"""The ways to run a container on this machine.

``process``: a process like any other, as the user, in the user's file system. It cannot mount anything, and pods have
addresses but no names. ``sandbox``: the same with mounts, host names, private ``/tmp`` and process ids, by bubblewrap.
"""

from __future__ import annotations

import contextlib
import functools
import os
import pwd
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Literal, Protocol, TypeAlias

from vcnb.errors import VcnbError
from vcnb.local.node.launch import launcher_command
from vcnb.local.node.rooms import Mount, room_command
from vcnb.store.protocol import Obj

__all__ = [
    "DEFAULT_TERMINATION_LOG",
    "ProcessRuntime",
    "Runtime",
    "RuntimeName",
    "SandboxRuntime",
    "choose_runtime",
    "detect",
]

RuntimeName: TypeAlias = Literal["process", "sandbox"]

DEFAULT_TERMINATION_LOG = "/dev/termination-log"
_TRIAL_SECONDS = 20


class Runtime(Protocol):
    """What differs between the ways to run a container."""

    name: RuntimeName
    mounts: bool
    """Whether containers have mounts, host names and an /etc/hosts of their own."""

    def for_pod(self, pod: Obj) -> Runtime:
        """How this pod runs."""
        ...

    def room(self, hostname: str, mounts: Iterable[Mount], cwd: str) -> list[str] | None:
        """The command that builds the container's surroundings; None when it needs none."""
        ...


class ProcessRuntime:
    """Containers are plain processes."""

    name: RuntimeName = "process"
    mounts = False

    def for_pod(self, pod: Obj) -> Runtime:
        return self

    def room(self, hostname: str, mounts: Iterable[Mount], cwd: str) -> list[str] | None:
        return None


class SandboxRuntime:
    """Containers live in bubblewrap sandboxes: those of every pod, or only of pods that need something of a sandbox.

    A sandbox takes some 5 ms to build, and a pod without mounts and names gains little by it.
    """

    name: RuntimeName = "sandbox"
    mounts = True

    def __init__(self, *, every_pod: bool = True) -> None:
        self._every_pod = every_pod
        self._bwrap = shutil.which("bwrap") or "bwrap"
        self._holder = shutil.which("cat") or "/bin/cat"

    def for_pod(self, pod: Obj) -> Runtime:
        return self if self._every_pod or needs_sandbox(pod) else ProcessRuntime()

    def room(self, hostname: str, mounts: Iterable[Mount], cwd: str) -> list[str] | None:
        return room_command(self._bwrap, self._holder, hostname, _for_this_user(mounts), cwd)


def needs_sandbox(pod: Obj) -> bool:
    """Whether a pod asks for what a plain process cannot have: a host name, mounts, a file at a path of its own."""
    spec = pod["spec"]
    every = [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]
    return bool(
        spec.get("hostname")
        or spec.get("subdomain")
        or any(entry.get("volumeMounts") for entry in every)
        or any(
            entry.get("terminationMessagePath", DEFAULT_TERMINATION_LOG) != DEFAULT_TERMINATION_LOG for entry in every
        )
    )


def _for_this_user(mounts: Iterable[Mount]) -> list[Mount]:
    """What is mounted below ``/root`` is below the user's home, too, for a user who is not root.

    The ssh plugin mounts its keys at ``/root/.ssh``, and ssh looks for them in the home that the account has.
    """
    homes = _homes() if os.getuid() != 0 else []
    placed = []
    for mount in mounts:
        placed.append(mount)
        if mount.path.startswith("/root/"):
            inner = mount.path.removeprefix("/root")
            placed += [Mount(home + inner, mount.source, mount.read_only) for home in homes]
    return placed


def _homes() -> list[str]:
    """The user's home by the environment and by the account, which ssh goes by."""
    homes = {str(Path.home())}
    with contextlib.suppress(KeyError):
        homes.add(pwd.getpwuid(os.getuid()).pw_dir.rstrip("/"))
    return sorted(homes - {"", "/", "/root"})


@functools.cache
def detect() -> tuple[bool, str]:
    """Whether the sandbox works here, and why not: builds one and runs a program in it. Tried once per process."""
    if not sys.platform.startswith("linux"):
        return False, "sandboxes need Linux"
    if shutil.which("bwrap") is None:
        return False, "bubblewrap is not installed (the program bwrap is not on the PATH)"
    trial = SandboxRuntime().room("vcnb-trial", (), "/") or []
    try:
        tried = subprocess.run(  # noqa: S603 - our own program
            launcher_command("--try", *trial),
            capture_output=True,
            timeout=_TRIAL_SECONDS,
            check=False,
            text=True,
            errors="replace",
        )
    except (OSError, subprocess.SubprocessError) as error:
        return False, f"a trial sandbox failed: {error}"
    if tried.returncode == 0:
        return True, "bubblewrap works here"
    return False, tried.stderr.strip() or f"a trial sandbox ended with exit code {tried.returncode}"


def choose_runtime(wanted: str | None) -> tuple[Runtime, str]:
    """The runtime and the reason for it. Raises VcnbError for one that does not work here.

    None: sandboxes where they work, for the pods that need one. ``sandbox``: for every pod.
    """
    if wanted == "process":
        return ProcessRuntime(), "asked for"
    if wanted not in {None, "", "sandbox"}:
        raise VcnbError(f"there is no runtime {wanted!r} on this machine; choose sandbox or process")
    works, reason = detect()
    if works and wanted:
        return SandboxRuntime(), "asked for"
    if works:
        return SandboxRuntime(every_pod=False), f"{reason}; pods without mounts and host names are plain processes"
    if wanted:
        raise VcnbError(f"the sandbox runtime does not work here: {reason}; use runtime=process")
    return ProcessRuntime(), f"the sandbox does not work here: {reason}"
