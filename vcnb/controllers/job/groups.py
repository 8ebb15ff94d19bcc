"""The PodGroup of a Job in the cluster: found, made, brought up to date, removed.

Source: Volcano job controller, handling of PodGroups.
"""

from __future__ import annotations

from typing import Any

from vcnb.controllers.job.behaviour import Behaviour
from vcnb.controllers.job.cache import JobInfo
from vcnb.controllers.job.minresources import min_resources
from vcnb.controllers.job.podgroup import belongs_to, changed_podgroup, new_podgroup, podgroup_names
from vcnb.controllers.job.spec import JobSpec
from vcnb.controllers.runtime.context import Context
from vcnb.errors import AlreadyExists, NotFound, VcnbError
from vcnb.resources.kinds import PODGROUP, PRIORITYCLASS
from vcnb.store.protocol import Obj

__all__ = ["PodGroups"]


class PodGroups:
    """PodGroups as passes use them. ``removed`` are the uids of those that were deleted but are still in the view."""

    def __init__(self, ctx: Context, behaviour: Behaviour) -> None:
        self._ctx = ctx
        self._behaviour = behaviour
        self._podgroups = ctx.informers[PODGROUP]
        self._priorities = ctx.informers[PRIORITYCLASS]
        self._removed: set[str] = set()
        self._checked: dict[str, tuple[Obj, JobSpec, Any]] = {}
        self._podgroups.subscribe(deleted=self._is_gone)

    def _is_gone(self, podgroup: Obj) -> None:
        self._removed.discard(podgroup["metadata"].get("uid", ""))

    def find(self, job: Obj) -> Obj | None:
        """The job's PodGroup. By default one counts only if this job owns it and nobody is deleting it."""
        metadata = job["metadata"]
        for name in podgroup_names(job):
            found = self._podgroups.get(name, metadata.get("namespace") or "")
            if found is None or found["metadata"].get("uid") in self._removed:
                continue
            if self._behaviour.check_podgroup and not self._counts(found, metadata["uid"]):
                continue
            return found
        return None

    @staticmethod
    def _counts(podgroup: Obj, uid: str) -> bool:
        return belongs_to(podgroup, uid) and not podgroup["metadata"].get("deletionTimestamp")

    def group_name(self, job: Obj) -> str:
        """What the pods' annotation says. Upstream always ``<job>-<uid>``, whatever the PodGroup is called."""
        found = self.find(job) if self._behaviour.check_podgroup else None
        return str(found["metadata"]["name"]) if found is not None else podgroup_names(job)[0]

    async def ensure(self, info: JobInfo, job: Obj) -> Obj | None:
        """Make the PodGroup, or bring it up to date. Raises what the store raises."""
        spec, found = info.spec, self.find(job)
        metadata = job["metadata"]
        seen = (metadata.get("labels"), metadata.get("annotations"))
        if found is not None and self._behaviour.write_only_changes:
            checked = self._checked.get(info.key)
            if checked is not None and checked[0] is found and checked[1] is spec and checked[2] == seen:
                return found
        resources = min_resources(spec, self._priority, self._behaviour)
        if found is None:
            found = await self._create(new_podgroup(job, spec, resources))
        else:
            changed = changed_podgroup(found, job, spec, resources, self._behaviour)
            if changed is not None:
                found = await self._ctx.store.update(changed)
                self._podgroups.saw(found)
        if found is not None:
            self._checked[info.key] = (found, spec, seen)
        return self.find(job)

    async def _create(self, podgroup: Obj) -> Obj | None:
        try:
            made = await self._ctx.store.create(podgroup)
        except AlreadyExists:
            return None  # the view lags behind, or one that is being deleted holds the name; its event comes
        self._podgroups.saw(made)
        return made

    async def remove(self, info: JobInfo, job: Obj) -> None:
        """Delete the PodGroup if there is one. Raises what the store raises, but NotFound."""
        found = self.find(job)
        self._checked.pop(info.key, None)
        if found is None:
            return
        metadata = found["metadata"]
        uid = metadata.get("uid", "")
        self._removed.add(uid)
        try:
            await self._ctx.store.delete(PODGROUP, metadata["name"], metadata.get("namespace"), uid=uid)
        except NotFound:
            return
        except VcnbError:
            self._removed.discard(uid)
            raise

    def forget(self, key: str) -> None:
        """The job is gone."""
        self._checked.pop(key, None)

    def _priority(self, name: str) -> int:
        if not name:
            return 0
        found = self._priorities.get(name)
        return int((found or {}).get("value") or 0)
