"""Logs of containers: what is on disk, read at once or followed.

One *stream* is the output of one container of one pod name. A pod that was replaced by another one of its name, and a
container that was restarted, continue their stream: a stream consists of *attempts*, oldest first.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from vcnb.controllers.runtime.context import Context
from vcnb.errors import NotFound
from vcnb.local.node.follow import Follower
from vcnb.local.node.inotify import Inotify
from vcnb.local.node.layout import Attempt, Layout, PodDirectory, job_owner
from vcnb.local.node.tail import tail_offset
from vcnb.resources import names
from vcnb.resources.kinds import JOB, POD
from vcnb.resources.phases import FINISHED, POD_FINISHED, JobPhase, PodPhase
from vcnb.store.protocol import Obj

__all__ = ["LogQuery", "LogStream", "Logs"]


@dataclass(frozen=True)
class LogQuery:
    """Whose logs: a job's (all of it, a task, or one pod of it), or one pod's.

    ``job_uid`` is ``pod-<uid>`` for a pod of no job. ``container`` None is the first one.
    """

    job_uid: str
    namespace: str = "default"
    job: str = ""
    pod: str = ""
    task: str | None = None
    index: int | None = None
    container: str | None = None

    @classmethod
    def of_job(
        cls, job: Obj, task: str | None = None, index: int | None = None, container: str | None = None
    ) -> LogQuery:
        """A job's pods."""
        meta = job["metadata"]
        namespace = meta.get("namespace") or "default"
        return cls(meta["uid"], namespace, meta["name"], "", task, index, container)

    @classmethod
    def of_pod(cls, pod: Obj, container: str | None = None) -> LogQuery:
        """One pod, with those of its name that were there before it."""
        meta, owner = pod["metadata"], job_owner(pod)
        uid, job = (owner["uid"], owner["name"]) if owner else (f"pod-{meta['uid']}", "")
        return cls(uid, meta.get("namespace") or "default", job, meta["name"], None, None, container)

    def selects(self, record: Mapping[str, Any]) -> bool:
        """Whether a pod is meant, by what pod.json says of it."""
        return (
            (not self.pod or record.get("name") == self.pod)
            and (self.task is None or record.get("task") == self.task)
            and (self.index is None or str(record.get("index")) == str(self.index))
        )


@dataclass
class LogStream:
    """One container of one pod name: its attempts, oldest first."""

    pod: str
    container: str
    order: tuple[int, str, int, str]
    attempts: list[Attempt] = field(default_factory=list)


class Logs:
    """Logs of one node."""

    def __init__(self, ctx: Context, layout: Layout) -> None:
        self._ctx = ctx
        self._layout = layout
        self._inotify: Inotify | None = None
        self._unsubscribe: list[Callable[[], None]] = []
        self._followers: set[Follower] = set()

    def start(self) -> None:
        """Begin to notice what followers wait for."""
        with contextlib.suppress(OSError):  # no inotify instance left: followers look ten times a second
            self._inotify = Inotify(asyncio.get_running_loop())
        self._ctx.informers[POD].add_index("job-uid", _job_uid)
        for kind in (POD, JOB):
            self._unsubscribe.append(
                self._ctx.informers[kind].subscribe(self._wake, lambda _, obj: self._wake(obj), self._wake)
            )

    def stop(self) -> None:
        """End all followers."""
        for unsubscribe in self._unsubscribe:
            unsubscribe()
        self._unsubscribe.clear()
        for follower in tuple(self._followers):
            follower.close()
        if self._inotify is not None:
            self._inotify.close()
            self._inotify = None

    def forget(self, job_uid: str) -> None:
        """The job's logs are about to be removed."""
        for follower in tuple(self._followers):
            if follower.key == job_uid:
                follower.wake()

    def _wake(self, _obj: Obj) -> None:
        for follower in self._followers:
            follower.wake(rescan=True)

    # Reading

    def streams(self, query: LogQuery) -> list[LogStream]:
        """Every stream that has something on disk, in the order of the job's tasks, by index and name."""
        places = self._places(query)
        streams: dict[tuple[str, str], LogStream] = {}
        for record, directory in self._directories(query):
            container = query.container or _first_container(record)
            pod = str(record.get("name") or directory.uid)
            task = str(record.get("task") or "")
            order = (places.get(task, len(places)), task, _number(record.get("index")), pod)
            stream = streams.setdefault((pod, container), LogStream(pod, container, order))
            stream.attempts += directory.attempts(container)
        return sorted((stream for stream in streams.values() if stream.attempts), key=lambda stream: stream.order)

    def _places(self, query: LogQuery) -> dict[str, int]:
        job = self._job(query)
        tasks = ((job or {}).get("spec") or {}).get("tasks") or ()
        return {str(task.get("name")): place for place, task in enumerate(tasks)}

    def _directories(self, query: LogQuery) -> list[tuple[dict[str, Any], PodDirectory]]:
        found = [(directory.record(), directory) for directory in self._layout.pods_of(query.job_uid)]
        chosen = [(record, directory) for record, directory in found if query.selects(record)]
        return sorted(chosen, key=lambda entry: str(entry[0].get("created") or ""))

    def read(self, query: LogQuery, *, tail: int | None = None, previous: bool | int = False) -> str:
        """The newest attempt of each stream as one text; ``previous`` the one before it, ``previous=2`` that before that.

        ``tail`` counts lines of each stream. Lines are prefixed ``pod | `` only when several pods are asked for.
        """
        parts = []
        several = self.several(query)
        for stream in self.streams(query):
            attempts = stream.attempts[: -int(previous)] if previous else stream.attempts
            if not attempts:
                continue
            text = _read(attempts[-1].log, tail)
            if several:
                text = "".join(f"{stream.pod} | {line}\n" for line in split_lines(text))
            parts.append(text)
        return "".join(parts)

    def last_words(self, pod: Obj, container: str, *, lines: int = 5, limit: int = 4096) -> str:
        """The end of what this very pod's container wrote last: so many lines, at most ``limit`` bytes."""
        attempts = self._layout.pod(pod).attempts(container)
        return _read(attempts[-1].log, lines, limit) if attempts else ""

    def attempt_count(self, query: LogQuery) -> dict[str, int]:
        """How many attempts each pod name has on disk."""
        return {stream.pod: len(stream.attempts) for stream in self.streams(query)}

    def several(self, query: LogQuery, job: Obj | None = None) -> bool:
        """Whether the query asks for more than one pod. ``job`` helps where the local view does not have it yet."""
        if query.pod or (query.task is not None and query.index is not None):
            return False
        job = job or self._job(query)
        if job is not None:
            return self._expected(query, job) > 1
        return len({record.get("name") for record, _ in self._directories(query)}) > 1

    # Following

    async def follow(self, query: LogQuery, *, tail: int | None = None) -> AsyncIterator[str]:
        """Lines as they come, from the newest attempt on, until the job (or the pod of no job) is over or gone.

        A line that has no end yet is held back until it has, or until the container has ended. ``tail`` begins with that
        many last lines of each stream.
        """
        async for lines in self.follow_batches(query, tail=tail):
            for line in lines:
                yield line

    async def follow_batches(self, query: LogQuery, *, tail: int | None = None) -> AsyncIterator[list[str]]:
        """As :meth:`follow`, with all lines that are there at once."""
        follower = Follower(
            query.job_uid,
            lambda: self.streams(query),
            lambda: self._is_over(query),
            self._ctx.clock,
            self._inotify,
            several=self.several(query, await self._stored(query) if query.job else None),
            tail=tail,
        )
        self._followers.add(follower)
        try:
            async for lines in follower.batches():
                yield lines
        finally:
            self._followers.discard(follower)
            follower.close()

    def _job(self, query: LogQuery) -> Obj | None:
        job = self._ctx.informers[JOB].get(query.job, query.namespace) if query.job else None
        return job if job is not None and job["metadata"]["uid"] == query.job_uid else None

    async def _is_over(self, query: LogQuery) -> bool:
        """Whether no more can come but what running attempts still write."""
        pods = self._ctx.informers[POD]
        if not query.job:
            pod = pods.get(query.pod, query.namespace)
            same = pod is not None and query.job_uid == f"pod-{pod['metadata']['uid']}"
            return await self._is_gone(query) if not same else _pod_phase(pod) in POD_FINISHED
        job = self._job(query)
        if job is None:
            return await self._is_gone(query)
        phase = ((job.get("status") or {}).get("state") or {}).get("phase") or ""
        if phase in FINISHED or phase == JobPhase.ABORTED:
            return True
        chosen = [pod for pod in pods.by_index("job-uid", query.job_uid) if query.selects(_record_of(pod))]
        succeeded = sum(_pod_phase(pod) == PodPhase.SUCCEEDED for pod in chosen)
        return succeeded == len(chosen) >= max(self._expected(query, job), 1)

    async def _is_gone(self, query: LogQuery) -> bool:
        """Whether the store has no such object, either; one that was made just now is in the store alone."""
        return await self._stored(query) is None

    async def _stored(self, query: LogQuery) -> Obj | None:
        """The job, or the pod of no job, as the store has it."""
        kind, name = (JOB, query.job) if query.job else (POD, query.pod)
        try:
            found = await self._ctx.store.get(kind, name, query.namespace)
        except NotFound:
            return None
        uid = found["metadata"]["uid"]
        return found if query.job_uid == (uid if query.job else f"pod-{uid}") else None

    @staticmethod
    def _expected(query: LogQuery, job: Obj) -> int:
        """How many pods the query will have once all are there."""
        if query.pod:
            return 1
        tasks = [
            task
            for task in (job.get("spec") or {}).get("tasks") or ()
            if query.task is None or task.get("name") == query.task
        ]
        if query.index is not None:
            return len(tasks)
        return sum(int(task.get("replicas", 1)) for task in tasks)


def _job_uid(pod: Obj) -> Iterable[str]:
    owner = job_owner(pod)
    return [owner["uid"]] if owner else []


def _record_of(pod: Obj) -> dict[str, Any]:
    labels = pod["metadata"].get("labels") or {}
    return {
        "name": pod["metadata"]["name"],
        "task": labels.get(names.TASK_SPEC, ""),
        "index": labels.get(names.TASK_INDEX, ""),
    }


def _pod_phase(pod: Obj | None) -> str:
    return str(((pod or {}).get("status") or {}).get("phase") or "")


def _first_container(record: Mapping[str, Any]) -> str:
    return str(record.get("default_container") or "")


def _number(index: Any) -> int:
    return int(index) if str(index or "").isdigit() else 0


def split_lines(text: str) -> list[str]:
    """Lines of a text, at newlines only (a carriage return is part of its line); an unfinished last one counts."""
    lines = text.split("\n")
    return lines[:-1] if lines[-1] == "" else lines


def _read(path: Path, tail: int | None, limit: int | None = None) -> str:
    """A log, or its last lines, or of these the last ``limit`` bytes; bytes that are no UTF-8 become U+FFFD."""
    try:
        with path.open("rb") as stream:
            end = stream.seek(0, os.SEEK_END)
            start = max(end - limit, 0) if limit is not None else 0
            if tail is not None:
                start = max(start, tail_offset(stream.fileno(), tail, stop=start))
            stream.seek(start)
            return stream.read().decode("utf-8", "replace")
    except OSError:
        return ""
