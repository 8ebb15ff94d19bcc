"""What every controller is given: the store it writes to, the clock, the informers it reads from, the event recorder."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

from vcnb.clock import Clock
from vcnb.store.protocol import ObjectStore

if TYPE_CHECKING:
    from vcnb.controllers.runtime.events import EventRecorder
    from vcnb.store.informer import Informers

__all__ = ["Compat", "Context", "Controller"]

Compat: TypeAlias = Literal["default", "strict"]
"""``strict`` behaves exactly as upstream does, bugs that show in a trace included."""


@dataclass(frozen=True)
class Context:
    """Handed to a controller at construction. Informers are shared and started after all controllers have subscribed."""

    store: ObjectStore
    clock: Clock
    informers: Informers
    recorder: EventRecorder
    compat: Compat = "default"


class Controller(Protocol):
    """One controller. ``start`` is called once the informers have synced; ``stop`` ends every task within a second."""

    name: str

    async def start(self) -> None: ...

    async def stop(self) -> None: ...
