"""A server that answers as an Alluxio of each generation is documented to (reference 6), and notes what it was asked."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from aiohttp import web

from vcnb.cache.alluxio.access import AlluxioAccess

T = TypeVar("T")
HTML = "<html><head><style>b{}</style></head><body><h1>500</h1> Internal <b>error</b></body></html>"


class QuickClock:
    """A clock whose sleeps are over at once, and noted."""

    def __init__(self) -> None:
        self.now = 1_700_000_000.0
        self.slept: list[float] = []

    def time(self) -> float:
        return self.now

    def call_later(self, delay: float, callback: Callable[[], None]) -> Any:
        raise NotImplementedError

    async def sleep(self, delay: float) -> None:
        self.slept.append(delay)
        self.now += delay
        await asyncio.sleep(0)


class FakeAlluxio:
    """Jobs by name; ``states[name]`` are what the next progress calls say, the last for ever."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str, dict[str, str], Any]] = []
        self.headers: list[dict[str, str]] = []
        self.jobs: dict[str, dict[str, Any]] = {}
        self.states: dict[str, list[str]] = {}
        self.fail: Callable[[web.Request], web.StreamResponse | None] | None = None
        self.drop: set[str] = set()
        self.hang: set[str] = set()
        self.release = asyncio.Event()

    def app(self) -> web.Application:
        app = web.Application(middlewares=[self._note])
        self.routes(app.router)
        return app

    def routes(self, router: web.UrlDispatcher) -> None:
        raise NotImplementedError

    @web.middleware
    async def _note(self, request: web.Request, handler: Any) -> web.StreamResponse:
        text = await request.text()
        body = json.loads(text) if text else None
        self.asked.append((request.method, request.path, dict(request.query), body))
        self.headers.append(dict(request.headers))
        key = f"{request.method} {request.path}"
        if self.fail is not None and (answer := self.fail(request)) is not None:
            return answer
        response: web.StreamResponse = await handler(request)
        if key in self.hang:
            await self.release.wait()
        if key in self.drop:
            assert request.transport is not None
            request.transport.close()
        return response

    def state(self, name: str) -> str:
        left = self.states.get(name, ["RUNNING"])
        return left.pop(0) if len(left) > 1 else left[0]

    def calls(self, method: str, path: str) -> list[Any]:
        return [body for verb, place, _, body in self.asked if (verb, place) == (method, path)]


class WorkerV1Server(FakeAlluxio):
    """``GET /v1/load`` of a worker."""

    def routes(self, router: web.UrlDispatcher) -> None:
        router.add_get("/v1/load", self.load)
        router.add_get("/health", self.health)

    async def health(self, _: web.Request) -> web.Response:
        return web.Response(text="worker is active")

    async def load(self, request: web.Request) -> web.Response:
        raw = dict(part.partition("=")[::2] for part in request.raw_path.partition("?")[2].split("&"))
        path = raw["path"].replace("%2F", "/").replace("%3A", ":").replace("%3F", "?")
        answer = getattr(self, f"_{raw['opType'].lower()}")(request, path, raw)
        if answer is None:
            assert request.transport is not None
            request.transport.close()
            return web.Response()
        return web.Response(text=json.dumps(answer), content_type="text/plain")

    def _submit(self, _: web.Request, path: str, raw: dict[str, str]) -> dict[str, Any] | None:
        if path == "/bad":
            return {"success": False, "jobId": "NONE", "path": path, "message": f"Failed to submit load job {path}"}
        if path in self.jobs:
            return None
        self.jobs[path] = raw
        message = f"Load '{path}' is successfully submitted. JobId: 1234\n"
        return {"success": True, "jobId": "1234", "path": path, "message": message}

    def _progress(self, _: web.Request, path: str, raw: dict[str, str]) -> dict[str, Any]:
        if path not in self.jobs:
            message = f"Load for path '{path}' cannot be found."
            return {"jobState": "FAILED", "message": message, "respProperties": {}}
        state = self.state(path)
        shown = state if state != "FAILED" else "FAILED (alluxio.exception.JobException: 2 files failed)"
        verbose = "\tRecent failed subtasks: \n\t\ts3://b/d/x: Reason: WORKER_RPC_FAILED, message: 503\n"
        report = (
            f"Progress for loading path '{path}':\n\tSettings:\tbandwidth: unlimited\tverify: false\tmetadata-only: false\n"
            f"\tTime Elapsed: 00:01:05\n\tJob State: {shown}\n\tInodes Scanned: 10\n\tInodes Processed: 6\n"
            "\tBytes Loaded: 18.00MB out of 30.00MB\n\tThroughput: 2509.80KB/s\n\tFile Failure rate: 0.00%\n"
            f"\tFiles Failed: 2\n{verbose if raw['verbose'] == 'true' else ''}"
        )
        return {"jobState": shown, "path": path, "message": report, "respProperties": {"Time Elapsed": "00"}}

    def _stop(self, _: web.Request, path: str, raw: dict[str, str]) -> dict[str, Any]:
        known = self.jobs.pop(path, None) is not None
        gone = f"Cannot find load job for path {path}, it might have already been stopped or finished"
        return {"success": known, "path": path, "message": "stopped" if known else gone}


class MasterV1Server(FakeAlluxio):
    """``/api/v1/master/*`` of a coordinator. ``form``: how its answers look."""

    form = "object"

    def routes(self, router: web.UrlDispatcher) -> None:
        router.add_post("/api/v1/master/submit_job/{type}", self.submit)
        router.add_get("/api/v1/master/progress_job/{type}", self.progress)
        router.add_post("/api/v1/master/stop_job/{type}", self.stop)
        router.add_get("/api/v1/master/list_job", self.list_jobs)

    @staticmethod
    def _name(type: str, body: dict[str, Any]) -> str:
        return f"{type} {body.get('path') or body.get('indexFile') or body['src'] + ':' + body['dst']}"

    async def submit(self, request: web.Request) -> web.Response:
        body = await request.json()
        name = self._name(request.match_info["type"], body)
        if name in self.jobs:
            return web.Response(text=f"Load already running for path '{body.get('path')}' ")
        self.jobs[name] = body
        answers: dict[str, Any] = {
            "object": {"jobId": "abc-1"},
            "uuid": "0c8b4d6e-53d7-4a3b-9f33-0f3b0f2b7a11",
            "true": True,
            "curvine": {"job_id": "7", "target_path": "/x"},
        }
        return web.json_response(answers[self.form])

    async def progress(self, request: web.Request) -> web.Response:
        body = await request.json()
        name = self._name(request.match_info["type"], body)
        if name not in self.jobs:
            return web.Response(
                status=404, text=json.dumps({"status": "No job found"}), content_type="application/json"
            )
        state = self.state(name)
        if self.form == "object":
            return web.json_response(
                {"mJobState": state, "mLoadedByteCount": 10, "mTotalByteCount": 40, "mScannedInodesCount": 4,
                 "mProcessedInodesCount": 1, "mFailedFileCount": 0, "mUnheardOf": 1}
            )  # fmt: skip
        return web.Response(
            text=f"Progress:\n\tJob State: {state}\n\tFiles Processed: 1\n\tBytes Loaded: 10B out of 40B\n"
        )

    async def stop(self, request: web.Request) -> web.Response:
        name = self._name(request.match_info["type"], await request.json())
        return web.json_response({"success": self.jobs.pop(name, None) is not None})

    async def list_jobs(self, request: web.Request) -> web.Response:
        wanted = request.query["job-type"]
        rows = [
            {"jobId": f"id-{number}", "jobType": name.split()[0].upper(), "path": name.partition(" ")[2],
             "jobState": self.state(name)}
            for number, name in enumerate(self.jobs)
        ]  # fmt: skip
        return web.json_response([row for row in rows if wanted in {"ALL", row["jobType"]}])


class LoadV1Server(FakeAlluxio):
    """``/api/v1/load``. ``release``: 3.6 or 3.8. Pages of two jobs."""

    version = "3.8"

    def routes(self, router: web.UrlDispatcher) -> None:
        router.add_get("/api/v1/load", self.get)
        router.add_post("/api/v1/load", self.post)
        router.add_delete("/api/v1/load", self.delete)

    def _job(self, name: str, *, files: bool = False) -> dict[str, Any]:
        job = {**self.jobs[name], "state": self.state(name), "startTime": "2026-01-01T00:00:00+00:00"}
        job |= {"loadedBytes": 20, "totalBytes": 40, "scannedFiles": 4, "loadedNonEmptyFiles": 2,
                "timeElapsedMilliseconds": 4000}  # fmt: skip
        if job["state"] == "FAILED":
            job |= {"failedFiles": 2, "errorMessage": {"message": "2 files failed"}}
            if files:
                job["failedFileList"] = [{"path": "s3://b/x", "reason": "403"}, "s3://b/y"]
        return {key: value for key, value in job.items() if key != "options"}

    async def get(self, request: web.Request) -> web.Response:
        wanted = request.query.get("id" if self.version == "3.6" else "target", "").removeprefix("job-")
        if wanted:
            found = [name for name, job in self.jobs.items() if job["id"].removeprefix("job-") == wanted]
            if not found:
                return web.json_response({"status": "No job found"}, status=404)
            return web.json_response({"results": [self._job(found[0], files=request.query.get("fileList") == "true")]})
        names = list(self.jobs)
        after = request.query.get("lastKey")
        start = names.index(after) + 1 if after else 0
        page = names[start : start + 2]
        more = {"lastKey": page[-1]} if start + 2 < len(names) else {}
        return web.json_response({"results": [self._job(name) for name in page], **more})

    async def post(self, request: web.Request) -> web.Response:
        body = await request.json()
        if "paths" not in body and "index" not in body:
            return web.json_response({"status": "fields missing"}, status=400)
        name = (body.get("paths") or [body.get("index")])[0]
        if name == "s3://refused":
            return web.json_response({"status": "no mount for s3://refused"}, status=400)
        if name in self.jobs:
            if self.version == "3.6":
                return web.json_response({"id": self.jobs[name]["id"]}, status=409)
            return web.json_response({"status": "identical job already scheduled"}, status=409)
        self.jobs[name] = {**body, "id": f"job-{len(self.jobs)}"}
        return web.json_response({"id": self.jobs[name]["id"], "alias": "happy-fox"})

    async def delete(self, request: web.Request) -> web.Response:
        body = await request.json()
        name = (body.get("paths") or [body.get("index")])[0]
        if self.jobs.pop(name, None) is None:
            return web.json_response({"status": "No job found..."}, status=404)
        return web.json_response({})


def talk(
    server: FakeAlluxio,
    story: Callable[[AlluxioAccess, Any], Coroutine[Any, Any, T]],
    **options: Any,
) -> T:
    """Start the server, tell the story with a client of it, and end both."""

    async def run() -> T:
        runner = web.AppRunner(server.app(), access_log=None)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        port = runner.addresses[0][1]
        clock = QuickClock()
        access = AlluxioAccess(f"http://127.0.0.1:{port}", clock, **options)
        try:
            return await story(access, clock)
        finally:
            server.release.set()
            await access.close()
            await runner.cleanup()

    return asyncio.run(run())
