"""What the cache refuses or cannot do.

VcnbError
├── CacheJobFailed         a waited-for job ended FAILED or STOPPED
├── QueueFull              the waiting queue has no room; nothing was written
├── StoreUnavailable       the job store does not answer, or cannot write
│   └── OutcomeUnknown     a write was sent, and whether it was carried out is not known
├── EtcdNotEnabled         ``job rerun`` without a shared job store
└── AlluxioError           a real Alluxio answered with an error
"""

from __future__ import annotations

from vcnb.errors import VcnbError

__all__ = ["AlluxioError", "CacheJobFailed", "EtcdNotEnabled", "OutcomeUnknown", "QueueFull", "StoreUnavailable"]


class CacheJobFailed(VcnbError):
    """A cache job that was waited for ended FAILED or STOPPED; ``failed_files`` is how many files could not be done."""

    def __init__(self, message: str, *, id: str = "", state: str = "", reason: str = "", failed_files: int = 0) -> None:
        self.id = id
        self.state = state
        self.reason = reason
        self.failed_files = failed_files
        super().__init__(message)


class QueueFull(VcnbError):
    """``alluxio.coordinator.scheduler.waiting.job.capacity`` jobs wait already (RESOURCE_EXHAUSTED, HTTP 429)."""

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        super().__init__(
            f"RESOURCE_EXHAUSTED: waiting queue is full ({capacity}). Nothing was written; submit again when jobs have ended"
        )


class StoreUnavailable(VcnbError):
    """The job store cannot be reached or refuses to write; nothing was changed."""


class OutcomeUnknown(StoreUnavailable):
    """A write was sent and no answer came: it may or may not have been carried out."""


class EtcdNotEnabled(VcnbError):
    """``rerun`` hands jobs of one coordinator to others, which needs a job store that they share."""

    def __init__(self) -> None:
        super().__init__("UnavailableException: Job ETCD is not enabled")


class AlluxioError(VcnbError):
    """A real Alluxio answered with an error; ``status`` is its HTTP status, 0 where the body alone said so."""

    def __init__(self, message: str, *, status: int = 0) -> None:
        self.status = status
        super().__init__(message)
