"""What an error of a source, or of the page store, means for a unit (reference 3.5.3)."""

from __future__ import annotations

from vcnb.cache.pages import CannotKeep
from vcnb.cache.protocol import RETRYABLE, FailureCode, Outcome, UnitResult, Version
from vcnb.cache.sources.failures import code_of

__all__ = ["ShortRead", "failed", "result_of"]

_LONGEST = 500


class ShortRead(Exception):
    """The source gave fewer bytes than the file has."""

    def __init__(self, expected: int, actual: int) -> None:
        super().__init__(f"Page load failed, expected: {expected} actual {actual}")


def failed(
    code: FailureCode, message: str, *, retryable: bool | None = None, version: Version | None = None
) -> UnitResult:
    """A unit that failed; whether it is tried again follows from the code."""
    again = code in RETRYABLE if retryable is None else retryable
    return UnitResult(Outcome.FAILED, code=code, message=message[:_LONGEST], retryable=again, version=version)


def result_of(error: Exception, path: str) -> UnitResult:
    """The result of a unit that ended with an error."""
    text = str(error) or type(error).__name__
    if isinstance(error, FileNotFoundError | NotADirectoryError):
        return UnitResult(Outcome.VANISHED, code=FailureCode.NOT_FOUND, message=text[:_LONGEST])
    return failed(_code(error), text if path in text else f"{path}: {text}")


def _code(error: Exception) -> FailureCode:
    if isinstance(error, CannotKeep):
        return FailureCode.RESOURCE_EXHAUSTED
    return FailureCode.SHORT_READ if isinstance(error, ShortRead) else code_of(error)
