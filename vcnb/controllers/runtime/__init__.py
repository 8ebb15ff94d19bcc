"""What all controllers share: queues, workers, events, stories."""

from vcnb.controllers.runtime.context import Compat, Context, Controller
from vcnb.controllers.runtime.events import EventRecorder
from vcnb.controllers.runtime.queue import Backoff, QueueShutDown, RateLimiter, WorkQueue
from vcnb.controllers.runtime.routing import fnv1_32, worker_of
from vcnb.controllers.runtime.stories import Chapter, Stories
from vcnb.controllers.runtime.workers import Workers

__all__ = [
    "Backoff",
    "Chapter",
    "Compat",
    "Context",
    "Controller",
    "EventRecorder",
    "QueueShutDown",
    "RateLimiter",
    "Stories",
    "WorkQueue",
    "Workers",
    "fnv1_32",
    "worker_of",
]
