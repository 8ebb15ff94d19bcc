"""What an error of a source means, in Python's own words.

Every library under fsspec has exceptions of its own. What leaves this package is one of FileNotFoundError, PermissionError,
TimeoutError, ConnectionError (the source answers 429 or 5xx, or the connection broke), SourceChanged, ValueError (the
source does not understand) or another OSError.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Final

from vcnb.cache.protocol import FailureCode, SourceChanged
from vcnb.errors import VcnbError

__all__ = ["code_of", "of_status", "translated", "translation"]

_PLAIN: Final = (
    VcnbError,
    FileNotFoundError,
    FileExistsError,
    PermissionError,
    NotADirectoryError,
    IsADirectoryError,
    ConnectionError,
    TimeoutError,
    ImportError,
    NotImplementedError,
)
_CLIENTS: Final = frozenset({"aiohttp", "aiobotocore", "botocore", "requests", "urllib3", "httpx", "gcsfs"})
_CREDENTIALS: Final = frozenset(
    {"NoCredentialsError", "PartialCredentialsError", "NoAuthTokenError", "TokenRetrievalError"}
)
_MISTAKES: Final = frozenset({"ParamValidationError", "InvalidURL", "InvalidRegionError", "UnknownServiceError"})

_CODES: Final[tuple[tuple[tuple[type[BaseException], ...], FailureCode], ...]] = (
    ((SourceChanged,), FailureCode.SOURCE_CHANGED),
    ((EOFError,), FailureCode.SHORT_READ),
    ((FileNotFoundError, NotADirectoryError), FailureCode.NOT_FOUND),
    ((PermissionError,), FailureCode.PERMISSION_DENIED),
    ((TimeoutError,), FailureCode.TIMEOUT),
    ((FileExistsError,), FailureCode.FAILED_PRECONDITION),
    ((MemoryError,), FailureCode.RESOURCE_EXHAUSTED),
    ((IsADirectoryError, ValueError, NotImplementedError, ImportError), FailureCode.INVALID_ARGUMENT),
    ((OSError,), FailureCode.UNAVAILABLE),
)


def of_status(status: int, message: str) -> Exception:
    """The error of an HTTP status that is no success."""
    if status in {401, 403, 407}:
        return PermissionError(message)
    if status in {404, 410}:
        return FileNotFoundError(message)
    if status == 408:
        return TimeoutError(message)
    if status == 412:
        return SourceChanged(message)
    if status in {409, 425, 429} or (status >= 500 and status != 501):
        return ConnectionError(message)
    return ValueError(message)


def translation(error: Exception, what: str) -> Exception:
    """What to raise in place of ``error``: itself when it is plain already."""
    if type(error) in {FileNotFoundError, PermissionError} and what not in str(error):
        return type(error)(f"{what}: {error}")
    if isinstance(error, _PLAIN):
        return error
    message = f"{what}: {error}" if str(error) else f"{what}: {type(error).__name__}"
    status = _status(error) or _answered(error.__cause__)
    if status:
        return of_status(status, message)
    kind = type(error)
    if kind.__name__ in _CREDENTIALS:
        return PermissionError(f"{message}; give credentials, or anon=True, as storage_options")
    if kind.__name__ in _MISTAKES:
        return ValueError(message)
    if kind.__module__.partition(".")[0] in _CLIENTS:
        return TimeoutError(message) if "Timeout" in kind.__name__ else ConnectionError(message)
    return error


def code_of(error: BaseException) -> FailureCode:
    """What an error that left a source is called in failures and metrics."""
    for kinds, code in _CODES:
        if isinstance(error, kinds):
            return code
    return FailureCode.INTERNAL


def _status(error: BaseException) -> int:
    """The HTTP status that an exception carries, wherever its library puts it; 0 for none."""
    for name in ("status", "status_code", "code"):
        value = getattr(error, name, None)
        if isinstance(value, int) and 400 <= value < 600:
            return value
    return _answered(error)


def _answered(error: BaseException | None) -> int:
    """The status of the answer that an exception holds; s3fs hides boto's exception as the cause of its own."""
    response = getattr(error, "response", None)
    if isinstance(response, dict):
        value = response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    else:
        value = getattr(response, "status_code", 0)
    return value if isinstance(value, int) and value >= 400 else 0


@contextlib.contextmanager
def translated(what: str) -> Iterator[None]:
    """Raise what the errors of the body mean. ``what`` says what was tried and where, for the message."""
    try:
        yield
    except Exception as error:
        meaning = translation(error, what)
        if meaning is error:
            raise
        raise meaning from error
