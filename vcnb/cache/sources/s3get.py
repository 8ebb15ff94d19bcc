"""Reading objects of S3 without boto's way there: for small objects that costs more than everything else together.

Where a bucket answers, in which region, and how requests look, is learnt from a request that boto has made; later reads are
the same request, signed here (AWS Signature Version 4, as the S3 manual has it), on a session of their own. Whatever is not
as plain as that, a request with more headers, another signature, an unexpected refusal, goes boto's way again.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import quote, urlsplit

if TYPE_CHECKING:
    import aiohttp

__all__ = ["DirectGet", "Manner", "manner_of", "signed"]

UNSIGNED: Final = "UNSIGNED-PAYLOAD"
_PLAIN: Final = frozenset(
    {"x-amz-content-sha256", "x-amz-date", "x-amz-security-token", "x-amz-checksum-mode", "x-amz-user-agent"}
)
_CREDENTIAL: Final = re.compile(r"^AWS4-HMAC-SHA256 Credential=[^/]+/\d{8}/([^/]+)/s3/aws4_request,")
_UNUSUAL: Final = frozenset({301, 307, 400, 403})
"""Answers that may mean that the request was not what this server wants: boto asks again, and its answer counts."""


class Manner(NamedTuple):
    """How a bucket is asked: where its keys begin, and in which region it is signed for; "" for requests without."""

    base: str
    region: str


def manner_of(bucket: str, url: str, headers: Mapping[str, str]) -> Manner | None:
    """What a request of boto for an object tells of its bucket; None when it is nothing plain, or of another bucket."""
    parts = urlsplit(url)
    if (parts.hostname or "").startswith(f"{bucket}."):
        base = f"{parts.scheme}://{parts.netloc}/"
    elif parts.path.startswith(f"/{bucket}/"):
        base = f"{parts.scheme}://{parts.netloc}/{bucket}/"
    else:
        return None
    given = {name.lower(): _text(value) for name, value in headers.items()}
    if any(name.startswith("x-amz-") and name not in _PLAIN for name in given) or parts.query:
        return None
    if "authorization" not in given:
        return Manner(base, "")
    found = _CREDENTIAL.match(given["authorization"])
    return Manner(base, found[1]) if found is not None else None


def _text(value: object) -> str:
    return value.decode("latin-1") if isinstance(value, bytes) else str(value)


def signed(url: str, region: str, access_key: str, secret_key: str, token: str, moment: datetime) -> dict[str, str]:
    """The headers that sign a GET of a URL without a query. Other headers may be added: they are not signed."""
    parts = urlsplit(url)
    stamp = moment.strftime("%Y%m%dT%H%M%SZ")
    headers = {"host": parts.netloc, "x-amz-content-sha256": UNSIGNED, "x-amz-date": stamp}
    if token:
        headers["x-amz-security-token"] = token
    names = ";".join(headers)
    lines = "".join(f"{name}:{value}\n" for name, value in headers.items())
    request = f"GET\n{parts.path}\n\n{lines}\n{names}\n{UNSIGNED}"
    scope = f"{stamp[:8]}/{region}/s3/aws4_request"
    text = f"AWS4-HMAC-SHA256\n{stamp}\n{scope}\n{hashlib.sha256(request.encode()).hexdigest()}"
    key = _key(secret_key, stamp[:8], region)
    signature = hmac.new(key, text.encode(), hashlib.sha256).hexdigest()
    headers["Authorization"] = (
        f"AWS4-HMAC-SHA256 Credential={access_key}/{scope}, SignedHeaders={names}, Signature={signature}"
    )
    return headers


def _key(secret: str, day: str, region: str) -> bytes:
    key = f"AWS4{secret}".encode()
    for part in (day, region, "s3", "aws4_request"):
        key = hmac.digest(key, part.encode(), "sha256")
    return key


class DirectGet:
    """Ranged GETs of one client's buckets, once it is known how they are asked.

    ``silence``: seconds without a byte after which the server counts as gone.
    """

    def __init__(self, silence: float) -> None:
        self._silence = silence
        self._manners: dict[str, Manner] = {}
        self._seen: tuple[str, Mapping[str, str]] | None = None
        self._listens_to: Any = None
        self._session: aiohttp.ClientSession | None = None
        self._off = False

    def watch(self, client: Any) -> None:
        """Look at what a client of boto sends, to learn from it."""
        if self._listens_to is not client:
            self._listens_to = client
            client.meta.events.register_last("before-send.s3.GetObject", self._note, unique_id=f"vcnb-{id(self)}")

    def _note(self, request: Any, **_: Any) -> None:
        self._seen = (request.url, dict(request.headers))

    def learn(self, bucket: str) -> None:
        """A read of an object of this bucket has just gone boto's way, and well."""
        if self._off or bucket in self._manners or self._seen is None:
            return
        manner = manner_of(bucket, *self._seen)
        if manner is not None:
            self._manners[bucket] = manner

    def knows(self, bucket: str) -> bool:
        """Whether reads of this bucket can go the short way."""
        return not self._off and bucket in self._manners

    def give_up(self) -> None:
        """The short way was refused where boto's was not: it is not taken again."""
        self._off = True

    async def get(self, bucket: str, key: str, headers: Mapping[str, str]) -> aiohttp.ClientResponse | None:
        """The answer to a GET; None when boto should ask instead."""
        manner = self._manners[bucket]
        url = manner.base + quote(key, safe="/~")
        sent = dict(headers)
        if manner.region:
            credentials = self._listens_to._request_signer._credentials  # noqa: SLF001 - where boto's client keeps them
            if credentials is None:
                return None
            frozen = await credentials.get_frozen_credentials()
            moment = datetime.now(UTC)
            sent |= signed(url, manner.region, frozen.access_key, frozen.secret_key, frozen.token or "", moment)
        from yarl import URL

        answer = await self._open().get(URL(url, encoded=True), headers=sent, allow_redirects=False)
        if answer.status in _UNUSUAL:
            answer.close()
            return None
        return answer

    def _open(self) -> aiohttp.ClientSession:
        import aiohttp

        if self._session is None:
            patience = aiohttp.ClientTimeout(total=None, sock_connect=self._silence, sock_read=self._silence)
            self._session = aiohttp.ClientSession(
                timeout=patience,
                read_bufsize=1 << 20,
                auto_decompress=False,
                skip_auto_headers={"Accept-Encoding"},
                connector=aiohttp.TCPConnector(limit=64),
            )
        return self._session

    async def close(self) -> None:
        """End its connections."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()
