"""The view of a job: ``job.view()``, and what ``%%vcjob`` shows in a live front end."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import replace
from typing import Any, Final

import traitlets

from vcnb.client.job import JobHandle
from vcnb.client.situation import gather
from vcnb.client.why import why
from vcnb.notebook.painter import PAINTER
from vcnb.notebook.widget.scene import SceneWidget
from vcnb.notebook.widget.verbs import VERBS, carry_out, verbs_of
from vcnb.resources import kinds
from vcnb.resources.phases import FINISHED
from vcnb.scene import job as scene
from vcnb.scene.phases import phase_of, replicas_of
from vcnb.scene.snapshot import JobSnapshot
from vcnb.store.protocol import Obj

__all__ = ["JobView", "Reader", "static_bundle"]

LINES: Final = 200
"""Of output are kept, the newest."""
CHARACTERS: Final = 20_000
FOLLOWED: Final = 16
"""The output of a job with at most so many pods is followed from the start, else when it is opened."""
_FLUSH_SECONDS: Final = 2.0
_SPARING: Final = 20.0
"""``why()`` is not asked again before so many times the time that it took have gone by."""


class Reader:
    """Reads a job's situation with the answer of ``why()``, which is asked less often the longer it takes.

    The answer is found on the caller's thread, so that the cluster's loop does not wait for it.
    """

    def __init__(self, job: JobHandle) -> None:
        self._job = job
        self._why = ""
        self._phase = ""
        self._again_at = 0.0

    def read(self) -> JobSnapshot:
        """The situation now. Raises VcnbError when the cluster was closed."""
        snapshot = self._job._bridge.run(self._gathered())  # noqa: SLF001 - a view is a part of the client's inside
        phase = phase_of(snapshot.job)
        if phase in scene.UNEXPLAINED:
            return snapshot
        began = time.monotonic()
        if phase != self._phase or began >= self._again_at:
            self._why, self._phase = why(snapshot), phase
            self._again_at = began + _SPARING * (time.monotonic() - began)
        return replace(snapshot, why=self._why)

    async def _gathered(self) -> JobSnapshot:
        await self._job._look(self._job.cluster._engine.views)  # noqa: SLF001
        return await gather(self._job.cluster, self._job._seen, self._job.cluster._engine.views)  # noqa: SLF001


def static_bundle(snapshot: JobSnapshot) -> dict[str, str]:
    """A job as a saved notebook shows it."""
    return {"text/plain": scene.text(snapshot), "text/html": scene.html(snapshot)}


class JobView(SceneWidget):
    """A job with its states, pods, timeline, events and output, kept up to date until it has ended."""

    SECTIONS = scene.SECTIONS
    LOGS = True

    cell_head = traitlets.Unicode().tag(sync=True)
    cell_why = traitlets.Unicode().tag(sync=True)
    cell_states = traitlets.Unicode().tag(sync=True)
    cell_pods = traitlets.Unicode().tag(sync=True)
    cell_timeline = traitlets.Unicode().tag(sync=True)
    cell_tasks = traitlets.Unicode().tag(sync=True)
    cell_events = traitlets.Unicode().tag(sync=True)

    def __init__(self, job: JobHandle) -> None:
        self._job = job
        self._reader = Reader(job)
        self._lines: deque[str] = deque(maxlen=LINES)
        self._following: Future[None] | None = None
        self._flushed_by = 0.0
        self._phase = ""
        super().__init__(job.cluster)
        self._cluster._bridge.run(self._listen())  # noqa: SLF001
        if replicas_of(job._seen) <= FOLLOWED:  # noqa: SLF001
            self.log_open = True
            self._follow()
        PAINTER.dirty(self)

    # -- what is shown

    def _read(self) -> JobSnapshot:
        return replace(self._reader.read(), log=tuple(self._lines))

    def _state(self, snapshot: JobSnapshot) -> dict[str, Any]:
        job, phase = snapshot.job, phase_of(snapshot.job)
        name = job["metadata"]["name"]
        lines = "\n".join(snapshot.log)
        news = {"notice": ""} if phase != self._phase else {}
        self._phase = phase
        return {
            **news,
            **{f"cell_{key}": html for key, html in scene.sections(snapshot, live=True).items()},
            "label": f"job {name}, {phase or 'new'}",
            "job": f"{job['metadata'].get('namespace', 'default')}/{name}",
            "verbs": verbs_of(name, phase, exists=not self._job._gone),  # noqa: SLF001
            "log": lines[-CHARACTERS:],
            "now": snapshot.now,
        }

    def _again(self) -> str:
        where = "" if self._job.namespace == self._cluster.namespace else f" -n {self._job.namespace}"
        return f"%vcjob watch {self._job.name}{where}"

    def _static(self, snapshot: JobSnapshot) -> dict[str, str]:
        return static_bundle(snapshot)

    def _ended(self, snapshot: JobSnapshot) -> bool:
        if self._job._gone:  # noqa: SLF001
            self.notice = f"job {self._job.name} was deleted"
            return True
        if phase_of(snapshot.job) not in FINISHED or snapshot.job.get("status", {}).get("terminating"):
            return False
        if self._following is None or self._following.done():
            return True
        if not self._flushed_by:  # the last lines are on their way
            self._flushed_by = time.monotonic() + _FLUSH_SECONDS
            PAINTER.later(self, _FLUSH_SECONDS)
        return time.monotonic() >= self._flushed_by

    # -- listening, on the cluster's loop

    async def _listen(self) -> None:
        name, namespace, uid = self._job.name, self._job.namespace, self._job.uid
        changes = self._cluster._changes  # noqa: SLF001

        def itself(obj: Obj) -> None:
            if obj["metadata"]["uid"] == uid:
                PAINTER.dirty(self)

        def owned(obj: Obj) -> None:
            if any(owner.get("uid") == uid for owner in obj["metadata"].get("ownerReferences", ())):
                PAINTER.dirty(self)

        def about(event: Obj) -> None:
            told = str(event.get("involvedObject", {}).get("name", ""))
            if event["metadata"].get("namespace") == namespace and (told == name or told.startswith(f"{name}-")):
                PAINTER.dirty(self)

        self._stops.append(await changes.listen(kinds.JOB, itself, namespace))
        for kind in (kinds.POD, kinds.PODGROUP):
            self._stops.append(await changes.listen(kind, owned, namespace))
        self._stops.append(await changes.listen(kinds.EVENT, about, namespace))
        self._stops.append(self._unfollow)

    def _follow(self) -> None:
        if self._following is None or self._following.done():
            self._lines.clear()
            self._following = self._cluster._bridge.submit(self._output())  # noqa: SLF001
            self._following.add_done_callback(lambda _: PAINTER.dirty(self))

    def _unfollow(self) -> None:
        if self._following is not None:
            self._following.cancel()

    async def _output(self) -> None:
        logs = self._cluster._logs  # noqa: SLF001
        with contextlib.suppress(asyncio.CancelledError):
            async for lines in logs.follow(self._job._seen, tail=LINES):  # noqa: SLF001
                self._lines.extend(line.rstrip("\n") for line in lines)
                PAINTER.dirty(self)

    # -- clicks

    def _clicked(self, content: Mapping[str, Any]) -> None:
        verb = content.get("do")
        if verb in VERBS and content.get("job") == self.job:
            self._run(carry_out(self._job, str(verb)), str(verb))
        elif content.get("log") is True and not self._over:
            self._follow()
        elif content.get("log") is False:
            self._unfollow()

    def __repr__(self) -> str:
        return f"<view of job {self._job.namespace}/{self._job.name}>"
