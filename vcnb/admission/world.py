"""What admission may look at while it judges an object: a few synchronous reads of what the cluster holds."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Protocol, TypeVar

from vcnb.errors import Forbidden
from vcnb.store.protocol import Obj

__all__ = ["Unreadable", "World", "ask"]

T = TypeVar("T")


class World(Protocol):
    """The objects that rules of other objects depend on. Every read returns None (or nothing) for what is missing.

    A read may raise ``vcnb.errors.Forbidden`` when the objects cannot be read at all (a Kubernetes user without the
    right to see queues); the rules that need them are then left to the server.
    """

    def queue(self, name: str) -> Obj | None:
        """The Queue of that name."""
        ...

    def queues(self) -> Iterable[Obj]:
        """Every Queue."""
        ...

    def namespace(self, name: str) -> Obj | None:
        """The Namespace of that name."""
        ...

    def template(self, namespace: str, name: str) -> Obj | None:
        """The JobTemplate of that name."""
        ...

    def priority_class(self, name: str) -> Obj | None:
        """The PriorityClass of that name."""
        ...


class Unreadable:
    """The answer of ``ask`` when the world may not be read."""


def ask(read: Callable[..., T], *args: Any) -> T | type[Unreadable]:
    """``read(*args)``, or Unreadable when that is forbidden."""
    try:
        return read(*args)
    except Forbidden:
        return Unreadable
