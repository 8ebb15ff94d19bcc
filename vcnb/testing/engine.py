"""What a simulator needs from the cluster that it drives."""

from __future__ import annotations

from collections.abc import Awaitable, Coroutine
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, TypeVar

from vcnb.clock import Clock

if TYPE_CHECKING:
    from vcnb.store.faults import FaultInjector
    from vcnb.store.memory import MemoryStore

__all__ = ["Bridge", "Engine", "Scheduling"]

T = TypeVar("T")

Scheduling: TypeAlias = Literal["gang", "manual"]
"""Who admits PodGroups and binds pods: the gang scheduler, or nobody but the test."""


class Bridge(Protocol):
    """The way from a person's thread to the loop that the engine runs on."""

    def run(self, work: Coroutine[Any, Any, T], /) -> T:
        """Run ``work`` on the engine's loop (a ``vcnb.loop.EngineLoop``) and wait for its result."""
        ...

    def wrap(self, work: Coroutine[Any, Any, T], /) -> Awaitable[T]:
        """The same, to be awaited on another loop; only the ``_async`` twins of verbs need it."""
        ...


class Engine(Protocol):
    """The running parts of one simulated cluster; used on its own loop only.

    ``store`` is the plain store: what a person or a kubelet does goes there. ``faults`` is the same store as the
    controllers see it, where calls can be made to fail.
    """

    @property
    def store(self) -> MemoryStore: ...

    @property
    def faults(self) -> FaultInjector | None: ...

    @property
    def clock(self) -> Clock: ...

    @property
    def scheduling(self) -> Scheduling:
        """``start_controllers`` starts the scheduler only when this is ``gang``."""
        ...

    async def set_scheduling(self, mode: Scheduling) -> None:
        """Change ``scheduling``; a scheduler that runs is stopped, one that is wanted started, if controllers run."""
        ...

    @property
    def collect_garbage(self) -> bool:
        """Whether owner references are collected; holds for a running collector and for one started later."""
        ...

    async def set_collect_garbage(self, collect: bool) -> None:
        """Change ``collect_garbage``."""
        ...

    async def start_controllers(self) -> None:
        """Build new controllers (and the scheduler) on the store and start them; nothing when they run."""
        ...

    async def stop_controllers(self) -> None:
        """Stop controllers and scheduler; all they held in memory is dropped. Nothing when they do not run."""
        ...
