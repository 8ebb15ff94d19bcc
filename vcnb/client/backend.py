"""What a cluster must be able to do for the client, whichever it is: one in this process, or a Kubernetes cluster.

``Cluster`` and its handles know only this. Writes go to ``store``; reads that must be current go through ``reader``; views,
which read often, go through ``views``. Everything belongs to the cluster's loop.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias

from vcnb.client.cache.host import CacheHost
from vcnb.client.url import Options, Target
from vcnb.clock import Clock
from vcnb.controllers.plane import ControlPlane
from vcnb.errors import Problem
from vcnb.resources.kinds import Kind
from vcnb.scene.snapshot import Stale
from vcnb.store.informer import Informer
from vcnb.store.protocol import Obj, ObjectStore

if TYPE_CHECKING:
    from vcnb.client.documents import Checked
    from vcnb.resources.manifest import Document

__all__ = ["Backend", "Known", "LogReader", "PodsAtStop", "Reader"]

PodsAtStop: TypeAlias = Literal["keep", "stop"]


class Known(Protocol):
    """Objects that can be read without waiting: what admission and ``apply`` look at. A read may raise Forbidden."""

    def peek(self, kind: Kind, name: str, namespace: str = "") -> Obj | None: ...

    def peek_all(self, kind: Kind, namespace: str | None = None) -> Sequence[Obj]: ...


class Reader(Protocol):
    """Reads objects. What is missing, or must not be seen, is None or left out."""

    async def find(self, kind: Kind, name: str, namespace: str = "") -> Obj | None:
        """The object, or None."""
        ...

    async def all(
        self, kind: Kind, namespace: str | None = None, *, labels: Mapping[str, str] | None = None
    ) -> Sequence[Obj]:
        """All objects of a kind in a namespace (None: in all). With ``labels`` those may be left out that have others."""
        ...


class LogReader(Protocol):
    """Reads what pods have written. ``tail`` counts lines of each pod."""

    async def of_pod(
        self, pod: Obj, container: str | None = None, *, tail: int | None = None, previous: bool | int = False
    ) -> str:
        """What one pod has written."""
        ...

    async def of_job(
        self,
        job: Obj,
        task: str | None = None,
        index: int | None = None,
        container: str | None = None,
        *,
        tail: int | None = None,
        previous: bool | int = False,
    ) -> str:
        """What a job's pods have written; lines begin with ``pod | `` when several pods are asked for."""
        ...

    def follow(
        self,
        job: Obj,
        task: str | None = None,
        index: int | None = None,
        container: str | None = None,
        tail: int | None = None,
    ) -> AsyncIterator[list[str]]:
        """Lines as they come, several at a time, until the job has ended."""
        ...

    async def last_words(self, pod: Obj, container: str) -> str:
        """The end of what this very pod's container wrote last; empty when that cannot be told."""
        ...


class Backend(Protocol):
    """One cluster behind ``vcnb.connect``."""

    target: Target
    options: Options
    cache: CacheHost

    @property
    def clock(self) -> Clock:
        """The cluster's time."""
        ...

    @property
    def notices(self) -> list[str]:
        """What the user should know, one sentence each."""
        ...

    @property
    def simulated(self) -> bool:
        """Whether pods are only objects, moved by a test."""
        ...

    @property
    def remote(self) -> bool:
        """Whether a network lies between, so that silence may mean that nothing is heard."""
        ...

    @property
    def store(self) -> ObjectStore:
        """Where a person's calls go."""
        ...

    @property
    def namespace(self) -> str:
        """The namespace of whatever names none."""
        ...

    @property
    def plane(self) -> ControlPlane | None:
        """The controllers that run here; None when others run them, or nobody does."""
        ...

    @property
    def controlled(self) -> bool:
        """Whether controllers, here or elsewhere, work on what is stored."""
        ...

    @property
    def reader(self) -> Reader:
        """Reads that are current."""
        ...

    @property
    def views(self) -> Reader:
        """Reads that cost nothing, and may be a moment behind."""
        ...

    @property
    def logs(self) -> LogReader:
        """Logs of pods."""
        ...

    async def start(self) -> None:
        """Open everything. Raises VcnbError when that is not possible."""
        ...

    async def stop(self, pods: PodsAtStop | None = None) -> None:
        """Close everything."""
        ...

    async def scope(self, kind: Kind, namespace: str | None) -> str | None:
        """The namespace to follow for changes of a kind in ``namespace`` (None: everywhere): None for one view of all."""
        ...

    async def informer(self, kind: Kind, scope: str | None = None) -> Informer:
        """The synced local view of one kind, of what ``scope`` gave. Raises Forbidden, MissingKind."""
        ...

    async def known(self, documents: Sequence[Document], namespace: str) -> Known:
        """What admission of these documents has to look at."""
        ...

    def vet(self, kind: Kind, obj: Obj) -> Sequence[Problem]:
        """What admission lets through and this cluster could not keep; after ``known`` of its document."""
        ...

    async def rehearse(self, checked: Sequence[Checked]) -> None:
        """Have the server judge objects that are not to be stored. Raises InvalidObject, Forbidden."""
        ...

    async def submitting(self, checked: Sequence[Checked]) -> None:
        """These are about to be stored: make ready what they will need."""
        ...

    async def cannot_steer(self, flow: Obj) -> str:
        """Why ``suspend``, ``retry`` and the like of a flow would do nothing, as the end of a sentence; empty: they work."""
        ...

    def facts(self, group: Obj | None) -> list[Any]:
        """What the scheduler says of a PodGroup that waits, where it can be asked."""
        ...

    def story(self, obj: Obj) -> list[Any]:
        """What the controllers noted about an object, where they run here."""
        ...

    def runs_pods_as(self) -> tuple[str, str]:
        """How pods run, and why so."""
        ...

    def stale(self) -> Stale | None:
        """Since when what is shown may be old; None when it is current."""
        ...
