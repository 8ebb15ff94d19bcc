"""Two servers on the loopback whose answers a test decides: an S3 (list, get, head, put, delete) and a tree of index pages.

Both hold ``files`` (name -> bytes) and do to a request what ``faults`` says: a status in place of the answer, a delay, a body
that is cut, a header left out. ``requests`` are counted, ``sent`` are the bytes of bodies.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from email.utils import formatdate
from typing import Any
from urllib.parse import quote
from xml.sax.saxutils import escape

from aiohttp import web

MODIFIED = 1_700_000_000


@dataclass
class Fault:
    """What happens to the requests of one name: ``status``, or a body cut after ``cut`` bytes, or ``stall`` seconds before it."""

    status: int = 0
    cut: int = -1
    stall: float = 0.0
    times: int = 1_000_000
    method: str = ""


@dataclass
class Web:
    """What both servers share."""

    files: dict[str, bytes] = field(default_factory=dict)
    faults: dict[str, Fault] = field(default_factory=dict)
    requests: Counter[str] = field(default_factory=Counter)
    sent: Counter[str] = field(default_factory=Counter)
    ranges: bool = True
    etags: bool = True
    heads: bool = True
    lengths: bool = True
    conditions: bool = True
    url: str = ""

    def etag(self, name: str) -> str:
        return '"' + hashlib.md5(self.files[name], usedforsecurity=False).hexdigest() + '"'

    def fault(self, name: str, method: str) -> Fault | None:
        fault = self.faults.get(name)
        if fault is None or fault.times <= 0 or (fault.method and fault.method != method):
            return None
        fault.times -= 1
        return fault

    def headers(self, name: str) -> dict[str, str]:
        headers = {"Last-Modified": formatdate(MODIFIED, usegmt=True)}
        if self.etags:
            headers["ETag"] = self.etag(name)
        return headers

    async def body(self, request: web.Request, name: str) -> web.StreamResponse:
        """A file, or the range of it that is asked for, with what its fault does to it."""
        fault = self.fault(name, request.method)
        if fault is not None and fault.status:
            return self.refusal(fault.status)
        if self.conditions and request.headers.get("If-Match") not in {None, self.etag(name)}:
            return self.refusal(412)
        data, status, headers = self.files[name], 200, self.headers(name)
        wanted = request.headers.get("Range")
        if wanted and self.ranges:
            first, _, last = wanted.removeprefix("bytes=").partition("-")
            start, end = int(first), min(int(last), len(data) - 1)
            if start >= len(data):
                refusal = self.refusal(416)
                refusal.headers["Content-Range"] = f"bytes */{len(data)}"
                return refusal
            headers["Content-Range"] = f"bytes {start}-{end}/{len(data)}"
            data, status = data[start : end + 1], 206
        response = web.StreamResponse(status=status, headers={**headers, "Content-Type": "application/octet-stream"})
        if self.lengths:
            response.content_length = len(data)
        else:
            response.enable_chunked_encoding()
        await response.prepare(request)
        if request.method == "HEAD":
            return response
        if fault is not None and fault.stall:
            await asyncio.sleep(fault.stall)
        if fault is not None and 0 <= fault.cut < len(data):
            await response.write(data[: fault.cut])
            assert request.transport is not None
            request.transport.close()
            return response
        with contextlib.suppress(ConnectionError):
            await response.write(data)
            await response.write_eof()
            self.sent[name] += len(data)
        return response

    def refusal(self, status: int) -> web.Response:
        return web.Response(status=status)


@dataclass
class FakeS3(Web):
    """One bucket, ``b``: the keys are the names of the files. Listings from ``list_fails_after`` on have the fault of ""."""

    list_fails_after: str = ""

    def refusal(self, status: int) -> web.Response:
        code = {503: "SlowDown", 500: "InternalError", 403: "AccessDenied", 404: "NoSuchKey", 412: "PreconditionFailed"}
        text = (
            f"<?xml version='1.0'?><Error><Code>{code.get(status, 'InvalidRange')}</Code><Message>no</Message></Error>"
        )
        return web.Response(status=status, text=text, content_type="application/xml")

    async def handle(self, request: web.Request) -> web.StreamResponse:
        bucket, _, key = request.path.lstrip("/").partition("/")
        self.requests[f"{request.method} {key}"] += 1
        if bucket != "b":
            return self.refusal(404)
        if not key:
            return self.listing(request)
        if request.method == "PUT":
            self.files[key] = await request.read()
            return web.Response(headers={"ETag": self.etag(key)})
        if request.method == "DELETE":
            self.files.pop(key, None)
            return web.Response(status=204)
        if key not in self.files:
            return self.refusal(404)
        return await self.body(request, key)

    def listing(self, request: web.Request) -> web.Response:
        fault = self.fault("", "LIST")
        query = request.query
        after = query.get("continuation-token") or query.get("start-after", "")
        if fault is not None and after >= self.list_fails_after:
            return self.refusal(fault.status)
        prefix, limit = query.get("prefix", ""), int(query.get("max-keys", 1000))
        delimiter = query.get("delimiter", "")
        keys = sorted(key for key in self.files if key.startswith(prefix) and key > after)
        groups = {
            prefix + key.removeprefix(prefix).split("/")[0] + "/" for key in keys if "/" in key.removeprefix(prefix)
        }
        if delimiter:
            keys = [key for key in keys if "/" not in key.removeprefix(prefix)]
        page, more = keys[:limit], len(keys) > limit
        items = "".join(
            f"<Contents><Key>{escape(quote(key))}</Key><Size>{len(self.files[key])}</Size><ETag>{escape(self.etag(key))}</ETag>"
            "<LastModified>2023-11-14T22:13:20.000Z</LastModified></Contents>"
            for key in page
        )
        if delimiter and not more:
            items += "".join(
                f"<CommonPrefixes><Prefix>{escape(quote(each))}</Prefix></CommonPrefixes>" for each in sorted(groups)
            )
        token = f"<NextContinuationToken>{escape(page[-1])}</NextContinuationToken>" if more else ""
        self.requests["LIST"] += 1
        text = (
            "<?xml version='1.0'?><ListBucketResult xmlns='http://s3.amazonaws.com/doc/2006-03-01/'><Name>b</Name>"
            f"<EncodingType>url</EncodingType><IsTruncated>{str(more).lower()}</IsTruncated>{items}{token}</ListBucketResult>"
        )
        return web.Response(text=text, content_type="application/xml")


@dataclass
class FakeGcs(Web):
    """One bucket, ``b``, by Google's JSON API. A version of a file is counted in ``generations``."""

    generations: Counter[str] = field(default_factory=Counter)

    async def handle(self, request: web.Request) -> web.StreamResponse:
        bucket, _, key = request.path.removeprefix("/storage/v1/b/").partition("/o")
        key = key.removeprefix("/")
        self.requests[f"{request.method} {key or 'LIST'}"] += 1
        if bucket != "b":
            return self.refusal(404)
        if not key:
            return self.listing(request)
        if key not in self.files:
            return self.refusal(404)
        if request.query.get("alt") != "media":
            return web.json_response(self.resource(key))
        if request.query.get("ifGenerationMatch") not in {None, self.resource(key)["generation"]}:
            return self.refusal(412)
        return await self.body(request, key)

    def resource(self, key: str) -> dict[str, str]:
        return {
            "name": key,
            "size": str(len(self.files[key])),
            "generation": str(1 + self.generations[key]),
            "updated": "2023-11-14T22:13:20.123Z",
        }

    def listing(self, request: web.Request) -> web.Response:
        query = request.query
        prefix, start = query.get("prefix", ""), query.get("pageToken") or query.get("startOffset", "")
        limit, delimiter = int(query.get("maxResults", 1000)), query.get("delimiter", "")
        keys = sorted(key for key in self.files if key.startswith(prefix) and key >= start)
        groups = sorted(
            {prefix + key.removeprefix(prefix).split("/")[0] + "/" for key in keys if "/" in key.removeprefix(prefix)}
        )
        if delimiter:
            keys = [key for key in keys if "/" not in key.removeprefix(prefix)]
        found: dict[str, Any] = {}
        if keys:
            found["items"] = [self.resource(key) for key in keys[:limit]]
        if delimiter and groups:
            found["prefixes"] = groups
        if len(keys) > limit:
            found["nextPageToken"] = keys[limit]
        return web.json_response(found)


@dataclass
class FakeHttp(Web):
    """A tree of files with index pages as nginx makes them. ``style``: ``nginx``, or ``bare`` (no redirect to ``/``)."""

    style: str = "nginx"
    links: dict[str, str] = field(default_factory=dict)

    async def handle(self, request: web.Request) -> web.StreamResponse:
        name = request.path.lstrip("/")
        self.requests[f"{request.method} {name}"] += 1
        if request.method == "HEAD" and not self.heads:
            return web.Response(status=405)
        if name in self.files:
            return await self.body(request, name)
        directory = f"{name}/" if name and not name.endswith("/") else name
        if not any(file.startswith(directory) for file in self.files) and directory not in self.links:
            return web.Response(status=404)
        if directory != name and self.style == "nginx":
            raise web.HTTPMovedPermanently(f"/{quote(directory)}")
        return web.Response(text=self.index(directory), content_type="text/html")

    def index(self, directory: str) -> str:
        below = {file.removeprefix(directory) for file in self.files if file.startswith(directory)}
        names = sorted({name.split("/")[0] + ("/" if "/" in name else "") for name in below})
        links = "".join(f'<a href="{escape(quote(name))}">{escape(name)}</a> 14-Nov-2023 5\n' for name in names)
        extra = self.links.get(directory, "")
        return f'<html><title>Index of /{escape(directory)}</title><a href="../">../</a><a href="?C=N;O=D">N</a>{links}{extra}</html>'


@contextlib.asynccontextmanager
async def serving(server: FakeS3 | FakeHttp | FakeGcs) -> AsyncIterator[Any]:
    """Serve on a free port of the loopback; ``server.url`` says where."""
    app = web.Application(client_max_size=1 << 30)
    app.router.add_route("*", "/{tail:.*}", server.handle)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        server.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        yield server
    finally:
        await runner.cleanup()
