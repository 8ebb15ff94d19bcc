"""From changes that the informers tell of to the cache, and to requests.

A handler runs to its end without waiting: it takes the change into the cache and puts a request on the job's queue.
What no policy of the job could answer becomes the job's one plain sync request, so many changes cost one pass.

Source: Volcano job controller, informer handlers.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from vcnb.clock import parse_time
from vcnb.controllers.job import events, finished_pods, seen_pods
from vcnb.controllers.job.cache import CacheError, JobInfo, PodIdentity, identify
from vcnb.controllers.job.events import Happening
from vcnb.controllers.job.lost import lost_pods
from vcnb.controllers.job.podgroup import job_of_podgroup
from vcnb.controllers.job.podspec import pod_name
from vcnb.controllers.job.policies import is_watched
from vcnb.controllers.job.requests import Request
from vcnb.controllers.job.status import phase_of
from vcnb.controllers.job.timers import noted_actions
from vcnb.resources.kinds import JOB, PERSISTENTVOLUMECLAIM, POD, PODGROUP, QUEUE
from vcnb.resources.phases import FINISHED, JobEvent, JobPhase, PodGroupPhase, PodPhase
from vcnb.store.protocol import Obj

if TYPE_CHECKING:
    from vcnb.controllers.job.controller import JobController
    from vcnb.controllers.job.shell import Shell

__all__ = ["Handlers"]

_log = logging.getLogger(__name__)


class Handlers:
    """Subscribed to the informers from construction on. Until ``started`` by default only the cache is filled."""

    def __init__(self, controller: JobController, shell: Shell) -> None:
        self._controller = controller
        self._shell = shell
        self._cache = controller.cache
        self._behaviour = controller.behaviour
        self._started = not self._behaviour.actual_phase_on_add
        informers = controller.ctx.informers
        self._unsubscribe: list[Callable[[], None]] = [
            informers[JOB].subscribe(self.job_added, self.job_updated, self.job_deleted),
            informers[POD].subscribe(self.pod_added, self.pod_updated, self.pod_deleted),
            informers[PODGROUP].subscribe(self.podgroup_added, self.podgroup_updated, self.podgroup_deleted),
        ]
        if self._behaviour.stay_pending:
            self._unsubscribe += [
                informers[QUEUE].subscribe(added=self._queue_added),
                informers[PERSISTENTVOLUMECLAIM].subscribe(added=self._claim_added),
            ]

    def started(self) -> None:
        """All local views are there: look at what they hold as it is now, and at what happened meanwhile."""
        if self._started:
            return
        self._started = True
        for info in tuple(self._cache.infos()):
            self._resume_delays(info)
            self._look_at_pods(info)
            self._controller.enqueue(info.sync)
        for podgroup in self._controller.ctx.informers[PODGROUP].list():
            if ((podgroup.get("status") or {}).get("phase")) == PodGroupPhase.UNKNOWN:
                self._podgroup_moved(podgroup, PodGroupPhase.UNKNOWN)

    def stop(self) -> None:
        """Listen no more."""
        for unsubscribe in self._unsubscribe:
            unsubscribe()

    # Jobs

    def job_added(self, job: Obj) -> None:
        """A Job appears."""
        try:
            info = self._cache.add(job)
        except CacheError as error:
            _log.debug("%s", error)
            return
        if self._behaviour.finished_is_not_evicted:
            info.lost = finished_pods.noted(job)
        if self._started:
            self._controller.enqueue(info.sync)

    def job_updated(self, old: Obj, new: Obj) -> None:
        """A Job has changed; only a new spec or phase is worth a look."""
        if old["metadata"]["resourceVersion"] == new["metadata"]["resourceVersion"]:
            return
        try:
            info = self._cache.update(new)
        except CacheError as error:
            _log.debug("%s", error)
            metadata = new["metadata"]
            info = self._cache.find(f"{metadata.get('namespace') or ''}/{metadata['name']}") or JobInfo(
                metadata.get("namespace") or "",
                metadata["name"],
                Request.sync(metadata.get("namespace") or "", metadata["name"]),
            )
        before, after = phase_of(old), phase_of(new)
        begun = self._behaviour.coalesce and not before and after == JobPhase.PENDING
        if (before != after and not begun) or _differs(old, new):
            self._controller.enqueue(info.sync)

    def job_deleted(self, job: Obj) -> None:
        """A Job is gone."""
        try:
            self._cache.delete(job)
        except CacheError as error:
            _log.debug("%s", error)
        metadata = job["metadata"]
        self._controller.forget(f"{metadata.get('namespace') or ''}/{metadata['name']}")

    # Pods

    def pod_added(self, pod: Obj) -> None:
        """A pod appears."""
        identity = identify(pod)
        if identity is None:
            return
        try:
            info = self._cache.add_pod(identity, pod)
        except CacheError as error:
            _log.debug("%s", error)
        else:
            _note_evicting(info, identity, pod)
        if self._started:
            self._pod_happened(
                identity, pod, events.on_pod_added(pod, identity, self._cache, self._behaviour), since=0.0
            )

    def pod_updated(self, old: Obj, new: Obj) -> None:
        """A pod has changed."""
        if old["metadata"]["resourceVersion"] == new["metadata"]["resourceVersion"]:
            return
        identity = identify(new)
        if identity is None:
            return
        try:
            info = self._cache.update_pod(identity, new)
        except CacheError as error:
            _log.debug("%s", error)
        else:
            _note_evicting(info, identity, new)
        if not self._started:
            return
        happening = events.on_pod_updated(old, new, identity, self._cache, self._behaviour)
        self._pod_happened(identity, new, happening, since=0.0)

    def pod_deleted(self, pod: Obj) -> None:
        """A pod is gone."""
        identity = identify(pod)
        if identity is None:
            return
        known = self._cache.has_pod(identity)
        info = self._cache.find(identity.key)
        unfinished = not events.is_finished(pod)
        if info is not None:
            unfinished = unfinished or identity.uid in info.evicting
            info.evicting.discard(identity.uid)
            self._keep_finished(info, identity, pod, known=known and not unfinished)
        self._cache.delete_pod(identity)
        if not self._started:
            return
        happening = events.on_pod_deleted(identity, known=known, unfinished=unfinished, behaviour=self._behaviour)
        self._pod_happened(identity, pod, happening, since=0.0, gone=True)

    def _keep_finished(self, info: JobInfo, identity: PodIdentity, pod: Obj, *, known: bool) -> None:
        """A pod that had succeeded stays counted when somebody removes it while its job is not finished."""
        index = finished_pods.index_of(pod)
        if not known or index is None or identity.marked or not self._behaviour.finished_is_not_evicted:
            return
        if (
            events.phase_of_pod(pod) == PodPhase.SUCCEEDED
            and info.job is not None
            and phase_of(info.job) not in FINISHED
        ):
            info.lost.add((identity.task, index))

    def _pod_happened(
        self, identity: PodIdentity, pod: Obj, happening: Happening, *, since: float, gone: bool = False
    ) -> None:
        if self._behaviour.timers_by_pod_uid and identity.key in self._controller.delays:
            phase = None if gone else events.phase_of_pod(pod)
            self._controller.delays.cancel_by_pod(identity.key, identity.name, identity.uid, phase)
        info = self._cache.find(identity.key)
        if self._behaviour.coalesce and not self._may_be_answered(info, identity, happening):
            if info is not None and info.job is not None and not self._shell.quiet:
                self._controller.enqueue(info.sync, patient=True)
            return
        preempted = self._behaviour.free_preemption and events.is_preempted(pod)
        self._controller.enqueue(
            Request(
                identity.namespace,
                identity.job,
                job_uid=identity.job_uid,
                task_name=identity.task,
                pod_name=identity.name,
                pod_uid=identity.uid,
                partition_id=identity.partition,
                event=happening.event,
                exit_code=happening.exit_code,
                job_version=identity.version,
                preempted=preempted,
                since=since,
            )
        )

    def _may_be_answered(self, info: JobInfo | None, identity: PodIdentity, happening: Happening) -> bool:
        if info is None or info.job is None or identity.job_uid != info.spec.uid:
            return False
        return is_watched(info.spec, happening.event, happening.exit_code)

    # What happened before the start

    def _resume_delays(self, info: JobInfo) -> None:
        job = info.job
        if job is None or not self._behaviour.timers_by_pod_uid:
            return
        version = (job.get("status") or {}).get("version", 0)
        for waiting in noted_actions(job):
            if waiting.version == version:
                self._controller.delays.register(waiting, self._controller.fire)
        self._controller.delays.changed.add(info.key)

    def _look_at_pods(self, info: JobInfo) -> None:
        for pod in tuple(info.all_pods()):
            identity = identify(pod)
            if identity is None:
                continue
            if identity.marked and not pod["metadata"].get("deletionTimestamp") and not _kill_is_noted(info, pod):
                # A kill pass got no further than the marks: why it wanted to kill has not been answered yet.
                identity = identity._replace(marked=False)
            happening = events.on_pod_added(pod, identity, self._cache, self._behaviour)
            self._pod_happened(identity, pod, happening, since=_began(pod, happening))
        job = info.job
        if job is None:
            return
        lost = lost_pods(info)
        info.lost.update(lost.succeeded)
        version = (job.get("status") or {}).get("version", 0)
        evicted = JobEvent.POD_EVICTED.value
        answered = {w.request.pod_name for w in self._controller.delays.of(info.key) if w.request.event == evicted}
        for task, index in lost.evicted:
            name, known = pod_name(info.name, task, index), info.spec.by_name[task]
            if name in answered:  # the action waits already; only the status that notes the pod as seen is old
                continue
            identity = PodIdentity(
                info.namespace,
                info.name,
                info.spec.uid,
                task,
                name,
                "",
                version,
                known.partition_of(index) or "",
                marked=False,
            )
            self._pod_happened(identity, {"metadata": {}}, Happening(evicted), since=0.0, gone=True)

    # PodGroups

    def podgroup_added(self, podgroup: Obj) -> None:
        """A PodGroup appears; upstream nobody looks."""
        if self._behaviour.check_podgroup and self._started and not self._shell.quiet:
            self._podgroup_moved(podgroup, (podgroup.get("status") or {}).get("phase") or "")

    def podgroup_updated(self, old: Obj, new: Obj) -> None:
        """A PodGroup has changed; only a new phase is worth a look."""
        before = (old.get("status") or {}).get("phase") or ""
        after = (new.get("status") or {}).get("phase") or ""
        if before != after and self._started:
            self._podgroup_moved(new, after)

    def podgroup_deleted(self, podgroup: Obj) -> None:
        """A PodGroup is gone; upstream nobody looks."""
        if self._behaviour.check_podgroup and self._started:
            self._podgroup_moved(podgroup, "")

    def _podgroup_moved(self, podgroup: Obj, phase: str) -> None:
        namespace, job = podgroup["metadata"].get("namespace") or "", job_of_podgroup(podgroup)
        event = events.on_podgroup_phase(phase)
        info = self._cache.find(f"{namespace}/{job}")
        if not self._behaviour.coalesce:
            version = self._version(info) if self._behaviour.version_of_podgroup else 0
            self._controller.enqueue(Request(namespace, job, event=event, job_version=version))
            return
        if info is None or info.job is None:
            return
        if event and is_watched(info.spec, event, 0):
            self._controller.enqueue(Request(namespace, job, event=event, job_version=self._version(info)))
        else:
            self._controller.enqueue(info.sync)

    @staticmethod
    def _version(info: JobInfo | None) -> int:
        job = info.job if info is not None else None
        return int(((job or {}).get("status") or {}).get("version", 0))

    # What jobs may wait for

    def _queue_added(self, queue: Obj) -> None:
        self._controller.awaited(f"queue/{queue['metadata']['name']}")

    def _claim_added(self, claim: Obj) -> None:
        metadata = claim["metadata"]
        self._controller.awaited(f"pvc/{metadata.get('namespace') or ''}/{metadata['name']}")


def _note_evicting(info: JobInfo, identity: PodIdentity, pod: Obj) -> None:
    """Remember that a pod was asked to go before it had finished; it may well say Succeeded on its way out.

    A pod that has finished is given no grace, so one that has some was asked before.
    """
    metadata = pod["metadata"]
    given_grace = bool(metadata.get("deletionGracePeriodSeconds"))
    if metadata.get("deletionTimestamp") and (given_grace or not events.is_finished(pod)):
        info.evicting.add(identity.uid)


def _kill_is_noted(info: JobInfo, pod: Obj) -> bool:
    """Whether the status was written after the pod was marked: it does not count the pod among those seen any more.

    Of finished pods only the succeeded are noted, so of those it cannot be told.
    """
    status = (info.job or {}).get("status") or {}
    if seen_pods.FIELD not in status or events.is_finished(pod):
        return False
    names = {pod_name(info.name, task, index) for task, index in seen_pods.noted(status, seen_pods.UNFINISHED)}
    return pod["metadata"]["name"] not in names


def _differs(old: Obj, new: Obj) -> bool:
    before, after = old.get("spec"), new.get("spec")
    return before is not after and before != after


def _began(pod: Obj, happening: Happening) -> float:
    """When what a policy with a timeout counts from began, for a pod that this controller sees for the first time."""
    if happening.event == JobEvent.POD_PENDING:
        created = pod["metadata"].get("creationTimestamp")
        return parse_time(created) if created else 0.0
    return events.failed_at(pod) or 0.0
