"""Why a pass over a job could not be finished."""

from __future__ import annotations

from vcnb.errors import VcnbError

__all__ = ["PassFailed"]


class PassFailed(VcnbError):
    """A sync or kill pass has to be tried again.

    ``reason`` is that of the Event which tells of it, empty where upstream records none; ``lasting`` tells that another
    attempt can only help once somebody has acted; ``awaits`` names the object whose appearance would
    (``queue/<name>``, ``pvc/<namespace>/<name>``); ``committed`` that the decision is stored and only its execution is left.
    """

    def __init__(
        self, message: str, *, reason: str = "", lasting: bool = False, awaits: str = "", committed: bool = False
    ) -> None:
        self.reason = reason
        self.lasting = lasting
        self.awaits = awaits
        self.committed = committed
        super().__init__(message)
