"""HTTP calls to an Alluxio: JSON or text in the answer, and errors that say whether the call may have been carried out."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from vcnb.cache.errors import AlluxioError, OutcomeUnknown, StoreUnavailable

if TYPE_CHECKING:
    import aiohttp

__all__ = ["Answer", "Rest"]

_SHOWN: Final = 300
_TAGS: Final = re.compile(r"<(script|style)\b.*?</\1>|<[^>]*>", re.DOTALL | re.IGNORECASE)


@dataclass(frozen=True)
class Answer:
    """What came back. ``data`` is the body read as JSON, or its text where it is none."""

    status: int
    text: str
    data: Any

    @property
    def words(self) -> str:
        """What an error says: its ``status`` or ``message``, else the text without markup."""
        if isinstance(self.data, Mapping):
            for name in ("status", "message", "error", "errorMessage"):
                if self.data.get(name):
                    return str(self.data[name])[:_SHOWN]
        return " ".join(_TAGS.sub(" ", self.text).split())[:_SHOWN] or "nothing"

    def check(self, doing: str) -> Answer:
        """This answer, if it is a success. Raises AlluxioError."""
        if self.status >= 400:
            raise AlluxioError(f"{doing}: Alluxio answered {self.status}: {self.words}", status=self.status)
        return self


class Rest:
    """Calls below ``url``. ``headers`` go with each; ``timeout`` in seconds; ``verify=False`` takes any certificate."""

    def __init__(
        self, url: str, *, headers: Mapping[str, str] | None = None, timeout: float = 20.0, verify: bool = True
    ) -> None:
        self.url = url.rstrip("/")
        self._headers = dict(headers or {})
        self._timeout = timeout
        self._verify = verify
        self._session: aiohttp.ClientSession | None = None

    async def call(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, str] | None = None,
        query: str = "",
        body: Any = None,
    ) -> Answer:
        """One call. ``query`` is sent as it stands, ``params`` are escaped.

        Raises StoreUnavailable when nothing was sent, OutcomeUnknown when no answer came.
        """
        import aiohttp
        from yarl import URL

        session = self._open()
        target = URL(f"{self.url}{path}{'?' if query else ''}{query}", encoded=True)
        data = None if body is None else json.dumps(body, ensure_ascii=False).encode()
        headers = {"Content-Type": "application/json"} if data is not None else {}
        where = f"{method} {self.url}{path}"
        try:
            async with (
                asyncio.timeout(self._timeout),
                session.request(method, target, params=params or None, data=data, headers=headers) as answer,
            ):
                raw = await answer.read()
                return _answer(answer.status, raw.decode("utf-8", "replace"))
        except aiohttp.ClientConnectorError as error:
            raise StoreUnavailable(
                f"{self.url} cannot be reached ({error.os_error.strerror or error.os_error}); is it the address of "
                "Alluxio's coordinator (REST port 19999), or of a worker (28080)?"
            ) from None
        except TimeoutError:
            raise OutcomeUnknown(f"{where}: no answer within {self._timeout:g} s") from None
        except (aiohttp.ClientError, ConnectionError) as error:
            raise OutcomeUnknown(f"{where}: the connection ended without an answer ({type(error).__name__})") from None

    def _open(self) -> aiohttp.ClientSession:
        import aiohttp

        if self._session is None:
            connector = aiohttp.TCPConnector(ssl=self._verify, force_close=True)
            self._session = aiohttp.ClientSession(
                headers=self._headers, connector=connector, timeout=aiohttp.ClientTimeout(total=None)
            )
            # A GET may submit a job (a worker's /v1/load), so aiohttp must not repeat one that got no answer.
            self._session._retry_connection = False  # noqa: SLF001 - it has no public switch
        return self._session

    async def close(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    def __repr__(self) -> str:
        return f"<Rest {self.url}>"


def _answer(status: int, text: str) -> Answer:
    try:
        return Answer(status, text, json.loads(text))
    except ValueError:
        return Answer(status, text, text.strip())
