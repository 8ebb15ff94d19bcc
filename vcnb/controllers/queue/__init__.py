"""The queue controller: state machine of queues, Commands on them, and what their status counts."""

from vcnb.controllers.queue.controller import QueueController

__all__ = ["QueueController"]
