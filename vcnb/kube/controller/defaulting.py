"""Defaults of the Jobs that controllers make, where nobody else fills them in.

Volcano's webhooks complete every Job on its way in: minAvailable, task names, maxRetry. A cluster that runs vcnb's
controllers need not have them, and a flow's templates leave out what the webhooks would add. So a Job that a controller
makes is completed here; webhooks, where there are any, find nothing left to do.

The Job controller completes new jobs as well (``fill_defaults``), which is for jobs that others bring, and does not make
this superfluous: it does so only where ``compat`` is "default", at the cost of one more write for each job, and it leaves
an explicit 0 or "" alone, as an update does.
"""

from __future__ import annotations

from typing import Any

from vcnb.admission import review
from vcnb.errors import Forbidden
from vcnb.resources.kinds import JOB, kind_of
from vcnb.store.passing import PassingStore
from vcnb.store.protocol import Obj

__all__ = ["DefaultingStore", "with_defaults"]


class DefaultingStore(PassingStore):
    """Passes everything on to a store; a Job that is created has its defaults."""

    async def create(self, obj: Obj) -> Obj:
        """Create an object, a Job with its defaults."""
        return await self._store.create(with_defaults(obj) if kind_of(obj) == JOB else obj)


def with_defaults(job: Obj) -> Obj:
    """The Job as Volcano's webhook completes it. What would be refused is left as it is, for the server to judge."""
    outcome = review("CREATE", job, None, _Nothing(), strict=False)
    return job if outcome.problems else outcome.object


class _Nothing:
    """A world of which nothing can be read: rules that need it are the server's."""

    def _unreadable(self, *_: str) -> Any:
        raise Forbidden("nothing is read here")

    queue = queues = namespace = template = priority_class = _unreadable
