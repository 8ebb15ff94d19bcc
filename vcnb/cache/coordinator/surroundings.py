"""What a running job needs of its coordinator."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from vcnb.cache.config import CacheConfig
from vcnb.cache.coordinator.dispatch import Dispatcher
from vcnb.cache.protocol import Membership, Ring, UnderStores
from vcnb.clock import Clock

__all__ = ["Surroundings"]


@dataclass(frozen=True)
class Surroundings:
    """The parts that all running jobs of one coordinator share. ``jitter`` gives -0.2 to 0.2."""

    config: CacheConfig
    clock: Clock
    stores: UnderStores
    membership: Membership
    ring: Callable[[], Ring]
    dispatcher: Dispatcher
    jitter: Callable[[], float]
