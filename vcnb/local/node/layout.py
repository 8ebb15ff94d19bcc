"""Where the node keeps what it knows of pods on disk, so that a restarted kernel finds it again.

    <root>/
      jobs/<job uid, or pod-<pod uid> for a pod of no job>/
        told/<reason>                           this was said once, and is not said again for this job
        pods/<pod uid>/
          pod.json                              name, namespace, job, task, index, address
          volumes/<volume>/                     emptyDir, configMap, secret ... (gone with the pod)
          containers/<container>/<attempt>/     0, 1, 2 ...: one directory per start of the container
            log                                 stdout and stderr, bytes as they came
            termination-log
            started.json, exit.json             see launcher/
      claims/<namespace>_<name>_<uid>/          one directory per PersistentVolumeClaim
      hosts/<namespace>                         the /etc/hosts of the namespace's pods (sandbox runtime)

Logs stay until their job is deleted, so the logs of pods that a job restart replaced can still be read.
"""

from __future__ import annotations

import contextlib
import json
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vcnb.local.node.processes import Process, boot_id, find_process
from vcnb.resources import names
from vcnb.store.protocol import Obj

LOST_STAGE = "lost"

__all__ = ["LOST_STAGE", "Attempt", "Exit", "Layout", "PodDirectory", "Started", "job_owner"]


@dataclass(frozen=True)
class Started:
    """``started.json``: who runs an attempt. ``shim`` 0 means that it was abandoned before anything ran."""

    boot: str
    shim: int
    shim_start: int
    main: int
    main_start: int
    room: int
    room_start: int
    started: float

    def process(self) -> Process | None:
        """The shim, if it still runs."""
        return find_process(self.shim, self.shim_start, self.boot) if self.shim else None


@dataclass(frozen=True)
class Exit:
    """``exit.json``: how an attempt ended.

    ``code`` is 0-255, 128+n for signal n; ``signal`` is 0 when the program exited by itself; ``stage`` and ``error``
    tell why a program could not be started at all, or (``lost``) why nobody knows how it ended.
    """

    code: int
    signal: int
    finished: float
    oom: bool = False
    stage: str = ""
    error: str = ""

    @property
    def lost(self) -> bool:
        """The shim was killed before it could tell the end."""
        return self.stage == LOST_STAGE


@dataclass(frozen=True)
class Attempt:
    """One start of one container, on disk."""

    path: Path
    number: int

    @property
    def log(self) -> Path:
        """What the container wrote to stdout and stderr."""
        return self.path / "log"

    @property
    def termination_log(self) -> Path:
        """The file at ``terminationMessagePath``."""
        return self.path / "termination-log"

    def create(self) -> None:
        """Make the directory and an empty termination log."""
        self.path.mkdir(parents=True, exist_ok=True)
        self.termination_log.touch()

    def started(self) -> Started | None:
        """None when nothing was started (yet)."""
        record = _read(self.path / "started.json")
        return Started(**record) if record is not None else None

    def exit(self) -> Exit | None:
        """None while it runs, and when its shim was killed."""
        record = _read(self.path / "exit.json")
        return Exit(**record) if record is not None else None

    def abandon(self) -> Started | None:
        """Make sure that nobody starts this attempt any more; what is already started is returned."""
        nobody = Started(boot_id(), 0, 0, 0, 0, 0, 0, 0.0)
        try:
            with (self.path / "started.json").open("x", encoding="utf-8") as stream:
                json.dump(nobody.__dict__, stream)
        except FileExistsError:
            return self.started()
        return None

    def write_exit(self, end: Exit) -> None:
        """Leave the end of an attempt whose shim could not."""
        temporary = self.path / ".exit"
        temporary.write_text(json.dumps(end.__dict__), encoding="utf-8")
        temporary.replace(self.path / "exit.json")


@dataclass(frozen=True)
class PodDirectory:
    """Everything of one pod on disk."""

    path: Path

    @property
    def uid(self) -> str:
        """The pod's uid."""
        return self.path.name

    @property
    def job_uid(self) -> str:
        """The uid of its job, or ``pod-<uid>`` for a pod of no job."""
        return self.path.parent.parent.name

    @property
    def volumes(self) -> Path:
        """Volumes that live and die with the pod."""
        return self.path / "volumes"

    def record(self) -> dict[str, Any]:
        """``pod.json``; empty when it is missing."""
        return _read(self.path / "pod.json") or {}

    def save(self, record: Mapping[str, Any]) -> None:
        """Write ``pod.json``."""
        self.path.mkdir(parents=True, exist_ok=True)
        temporary = self.path / ".pod.json"
        temporary.write_text(json.dumps(record), encoding="utf-8")
        temporary.replace(self.path / "pod.json")

    def attempt(self, container: str, number: int) -> Attempt:
        """Attempt ``number`` (from 0) of a container, whether it exists or not."""
        return Attempt(self.path / "containers" / container / str(number), number)

    def attempts(self, container: str) -> list[Attempt]:
        """All attempts of a container, oldest first."""
        folder = self.path / "containers" / container
        numbers = sorted(int(name) for name in _entries(folder) if name.isdigit())
        return [Attempt(folder / str(number), number) for number in numbers]

    def forget(self, attempt: Attempt) -> None:
        """Remove an attempt that never ran, so that its number is used again."""
        shutil.rmtree(attempt.path, ignore_errors=True)

    def containers(self) -> list[str]:
        """Names of the containers that were ever started."""
        return sorted(_entries(self.path / "containers"))


@dataclass(frozen=True)
class Layout:
    """The node's directory."""

    root: Path

    def create(self) -> None:
        """Make the directory, for this user only: volumes hold secrets."""
        self.root.mkdir(parents=True, exist_ok=True)
        self.root.chmod(0o700)
        for name in ("jobs", "claims", "hosts"):
            (self.root / name).mkdir(exist_ok=True)

    def job(self, uid: str) -> Path:
        """What belongs to one job."""
        return self.root / "jobs" / uid

    def pod(self, pod: Obj) -> PodDirectory:
        """The directory of a pod, whether it exists or not."""
        uid = pod["metadata"]["uid"]
        owner = job_owner(pod)
        return PodDirectory(self.job(owner["uid"] if owner else f"pod-{uid}") / "pods" / uid)

    def pods_of(self, job_uid: str) -> list[PodDirectory]:
        """Directories of all pods that a job ever had here."""
        folder = self.job(job_uid) / "pods"
        return [PodDirectory(folder / name) for name in sorted(_entries(folder))]

    def pods(self) -> Iterator[PodDirectory]:
        """Directories of all pods."""
        for job_uid in self.jobs():
            yield from self.pods_of(job_uid)

    def jobs(self) -> list[str]:
        """Uids of the jobs (``pod-<uid>`` for pods of no job) that have a directory."""
        return sorted(_entries(self.root / "jobs"))

    def claim(self, claim: Obj) -> Path:
        """The directory of a PersistentVolumeClaim."""
        meta = claim["metadata"]
        return self.root / "claims" / f"{meta['namespace']}_{meta['name']}_{meta['uid']}"

    def claims(self) -> list[Path]:
        """Directories of all claims, also of those that are gone."""
        return [self.root / "claims" / name for name in sorted(_entries(self.root / "claims"))]

    def hosts(self, namespace: str) -> Path:
        """The hosts file of a namespace."""
        return self.root / "hosts" / namespace

    def remove(self, path: Path) -> None:
        """Remove a directory and all in it; what cannot be removed stays (a pod of another user may own it)."""
        shutil.rmtree(path, ignore_errors=True)

    def tell_once(self, job_uid: str, reason: str) -> bool:
        """True the first time for this job and reason."""
        path = self.job(job_uid) / "told" / reason
        path.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(FileExistsError):
            path.touch(exist_ok=False)
            return True
        return False


def job_owner(pod: Obj) -> Mapping[str, Any] | None:
    """The owner reference to the pod's Job; None for a pod of no job."""
    for owner in pod["metadata"].get("ownerReferences") or ():
        if owner.get("kind") == "Job" and owner.get("apiVersion") == names.API_BATCH:
            return owner  # type: ignore[no-any-return]
    return None


def _read(path: Path) -> dict[str, Any] | None:
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return record if isinstance(record, dict) else None


def _entries(folder: Path) -> list[str]:
    try:
        return [entry.name for entry in folder.iterdir()]
    except OSError:
        return []
