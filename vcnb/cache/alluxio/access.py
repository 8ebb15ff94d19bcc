"""A real Alluxio as ``JobAccess``: finds out which REST calls it has, and drives it by them.

``api="auto"`` asks ``GET /api/v1/load`` (3.6 and newer), then ``GET /api/v1/master/list_job`` (3.3 to 3.5), then a worker's
``GET /health``. Free, copy and move are documented for ``master_v1`` only, which newer coordinators may still answer.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from vcnb.cache.alluxio.generation import Accepted, Generation, Ref, Report
from vcnb.cache.alluxio.load_v1 import LoadV1
from vcnb.cache.alluxio.master_v1 import MasterV1
from vcnb.cache.alluxio.reports import failures_of
from vcnb.cache.alluxio.rest import Rest
from vcnb.cache.alluxio.worker_v1 import WorkerV1
from vcnb.cache.api import ENDED, CacheJobState, CacheProgress, JobFacts, Requeued, Submission
from vcnb.cache.errors import AlluxioError, CacheJobFailed, OutcomeUnknown
from vcnb.cache.jobs.record import FailedFile
from vcnb.cache.jobs.request import Request, normalise, review
from vcnb.cache.protocol import JobType
from vcnb.clock import Clock
from vcnb.errors import InvalidObject, InvalidState, NotFound, Problem, VcnbError, WaitTimeout

__all__ = ["GENERATIONS", "AlluxioAccess"]

GENERATIONS: Final[Mapping[str, type[LoadV1 | MasterV1 | WorkerV1]]] = {
    "v1_load": LoadV1,
    "master_v1": MasterV1,
    "worker_v1": WorkerV1,
}
_FIRST_POLL: Final = 1.0
_LAST_POLL: Final = 10.0


class AlluxioAccess:
    """The jobs of the Alluxio at ``url`` (``http://host:19999``).

    ``headers`` go with every call; ``token`` (default: VCNB_ALLUXIO_TOKEN) as ``Authorization: Bearer``. ``base_path``:
    what a proxy puts before the paths. ``verify=False`` takes any certificate.
    """

    def __init__(
        self,
        url: str,
        clock: Clock,
        *,
        api: str = "auto",
        base_path: str = "",
        headers: Mapping[str, str] | None = None,
        token: str | None = None,
        timeout: float = 20.0,
        verify: bool = True,
    ) -> None:
        if api != "auto" and api not in GENERATIONS:
            raise VcnbError(f"api={api} is not known; possible: auto, {', '.join(GENERATIONS)}")
        token = token if token is not None else os.environ.get("VCNB_ALLUXIO_TOKEN", "")
        sent = {**({"Authorization": f"Bearer {token}"} if token else {}), **(headers or {})}
        self.rest = Rest(f"{url.rstrip('/')}{base_path}", headers=sent, timeout=timeout, verify=verify)
        self._clock = clock
        self._api = api
        self._generation: Generation | None = None
        self._refs: dict[str, Ref] = {}

    # -- which API

    async def generation(self, type: JobType = JobType.LOAD) -> Generation:
        """The calls for a type of job. Raises AlluxioError when none of them is there."""
        if self._generation is None:
            name = self._api if self._api != "auto" else await self._probe()
            self._generation = GENERATIONS[name](self.rest)
        if type in self._generation.types:
            return self._generation
        if self._generation.name == "worker_v1":
            raise InvalidState(f"an Alluxio worker has no {type.lower()} jobs; connect to the coordinator (port 19999)")
        return MasterV1(self.rest)

    async def _probe(self) -> str:
        answer = await self.rest.call("GET", "/api/v1/load")
        if answer.status == 200 and isinstance(answer.data, Mapping) and "results" in answer.data:
            return "v1_load"
        answer = await self.rest.call("GET", "/api/v1/master/list_job", params={"job-type": "LOAD", "job-state": "ALL"})
        if answer.status == 200:
            return "master_v1"
        answer = await self.rest.call("GET", "/health")
        if answer.status == 200 and "worker" in answer.text:
            return "worker_v1"
        raise AlluxioError(
            f"{self.rest.url} answers none of Alluxio's REST calls (/api/v1/load, /api/v1/master/list_job, /health); "
            "check host and port: the coordinator's REST port is 19999",
            status=answer.status,
        )

    # -- JobAccess

    def canonical(self, path: Any, name: str = "path") -> str:
        """A path of Alluxio (``/mnt/data``) or of an under-store (``s3://bucket/data``), as it stands."""
        try:
            text = os.fspath(path) if path is not None else ""
        except TypeError:
            raise InvalidObject(
                [Problem(name, None, f"must be a path, not {type(path).__name__}")], "the job"
            ) from None
        text = normalise(str(text))
        if not text or text == "/":
            raise InvalidObject(
                [Problem(name, None, "is required: an Alluxio path such as /mnt/data, or s3://bucket/data")], "the job"
            )
        return text

    async def submit(self, request: Request) -> Submission:
        options = review(request, 0, batch_size=200).options if request.options.batch_size is None else request.options
        review(request, 0, batch_size=200)
        if options.storage_options:
            raise InvalidObject(
                [
                    Problem(
                        "storage_options", None, "a real Alluxio has its own credentials of its mounts; leave them out"
                    )
                ],
                "the job",
            )
        asked = request.options
        ref = Ref(
            request.type,
            path="" if asked.index_file else request.path,
            src=request.src,
            dst=request.dst,
            index=asked.index_file,
        )
        generation = await self.generation(request.type)
        try:
            accepted = await generation.submit(ref, asked)
        except OutcomeUnknown as error:
            return await self._after_silence(generation, ref, error)
        return await self._submitted(generation, ref, accepted)

    async def _after_silence(self, generation: Generation, ref: Ref, error: OutcomeUnknown) -> Submission:
        """No answer to a submission: the progress is asked once; it is never submitted again blindly."""
        try:
            report = await generation.report(ref)
        except NotFound:
            raise OutcomeUnknown(f"{error}; Alluxio shows no such job, so it was not taken: submit it again") from None
        facts = self._facts(report)
        outcome = "already_exists" if generation.name == "worker_v1" else "created"
        return Submission(facts, outcome, warnings=("Alluxio did not answer the submission, but has the job",))

    async def _submitted(self, generation: Generation, ref: Ref, accepted: Accepted) -> Submission:
        known = replace(ref, id=accepted.id)
        try:
            report = await generation.report(known)
        except (NotFound, OutcomeUnknown):  # a job that was only just taken may not be shown yet
            report = Report(known, CacheProgress(CacheJobState.WAITING), raw=accepted.raw)
        warnings = (f"Alluxio says: {accepted.message}",) if accepted.outcome != "created" and accepted.message else ()
        return Submission(self._facts(report), accepted.outcome, warnings=warnings)

    async def facts(self, id: str) -> JobFacts:
        return self._facts(await self._report(id))

    async def find(self, type: JobType, path: str = "", *, src: str = "", dst: str = "") -> JobFacts:
        if type in {JobType.COPY, JobType.MOVE} and path and not src:
            src, _, dst = _pair(path)
        ref = Ref(type, path="" if src else path, src=src, dst=dst)
        return self._facts(await (await self.generation(type)).report(ref))

    async def jobs(
        self,
        type: str = "ALL",
        state: str = "ALL",
        *,
        coordinator: str = "",
        limit: int = 1000,
        after: str = "",
    ) -> Sequence[JobFacts]:
        generation = await self.generation()
        found = list(await generation.list(type, state))
        found.sort(key=lambda report: report.started or 0.0, reverse=True)
        facts = [self._facts(report) for report in found]
        if after:
            ids = [each.id for each in facts]
            facts = facts[ids.index(after) + 1 :] if after in ids else facts
        return facts[:limit]

    async def progress(self, id: str) -> CacheProgress:
        return (await self._report(id)).progress

    async def failures(self, id: str, *, start: int = 0, limit: int = 1000) -> Sequence[FailedFile]:
        report = await self._report(id, verbose=True)
        raw = report.raw
        text = raw.get("message") if isinstance(raw, Mapping) and isinstance(raw.get("message"), str) else raw
        found = failures_of(text) or failures_of(report.progress.raw)
        return found[start : start + limit]

    async def stop(self, id: str) -> bool:
        ref = self._ref(id)
        return await (await self.generation(ref.type)).stop(ref)

    async def rerun(self, *, type: str = "", path: str = "", id: str = "", coordinator: str = "") -> Sequence[Requeued]:
        raise InvalidState(
            "a real Alluxio has no REST call to run a job again; on its coordinator: "
            "bin/alluxio job rerun --path PATH --type load"
        )

    async def wait(self, id: str, *, timeout: float | None = None, check: bool = True) -> JobFacts:
        """As ``JobAccess.wait``, by asking: after 1 s first, every 10 s at last."""
        deadline = None if timeout is None else self._clock.time() + timeout
        pause = _FIRST_POLL
        while True:
            report = await self._report(id)
            facts = self._facts(report)
            if facts.state in ENDED:
                break
            left = None if deadline is None else deadline - self._clock.time()
            if left is not None and left <= 0:
                raise WaitTimeout(f"{facts.type} {facts.path} is {facts.state} after {timeout:g} s; it goes on")
            await self._clock.sleep(pause if left is None else min(pause, left))
            pause = min(pause * 2, _LAST_POLL)
        if check and facts.state != CacheJobState.SUCCEEDED:
            count = report.progress.failed_files
            text = f"{facts.type} {facts.path} is {facts.state}" + (f": {facts.message}" if facts.message else "")
            text += f" ({count} files failed)" if count else ""
            raise CacheJobFailed(text, id=id, state=facts.state, reason=facts.reason, failed_files=count)
        return facts

    async def close(self) -> None:
        """Let go of the connections."""
        await self.rest.close()

    # -- inside

    async def _report(self, id: str, *, verbose: bool = False) -> Report:
        ref = self._ref(id)
        report = await (await self.generation(ref.type)).report(ref, verbose=verbose)
        return replace(
            report, ref=replace(report.ref, id=id if ref.id else report.ref.id, path=ref.path or report.ref.path)
        )

    def _ref(self, id: str) -> Ref:
        return self._refs.get(id) or Ref(JobType.LOAD, id=id)

    def _facts(self, report: Report) -> JobFacts:
        ref, progress = report.ref, report.progress
        name = ref.id or f"{ref.type} {ref.name}"
        self._refs[name] = ref
        started = report.started
        ended = started + progress.elapsed if started is not None and progress.state in ENDED else None
        return JobFacts(
            id=name,
            type=ref.type,
            path=ref.name,
            state=progress.state,
            src=ref.src,
            dst=ref.dst,
            submitted=started,
            started=started,
            ended=ended,
            message=report.message,
            raw=report.raw,
        )


def _pair(path: str) -> tuple[str, str, str]:
    """``s3://a/x:s3://b/y`` apart: at the colon before the second URL or absolute path."""
    for separator in (":/",):
        start = 0
        while (at := path.find(separator, start)) > 0:
            if not path.startswith("://", at):
                return path[:at], ":", path[at + 1 :]
            start = at + 3
    head, _, tail = path.rpartition("://")
    before, colon, scheme = head.rpartition(":")
    return (before, colon, f"{scheme}://{tail}") if colon else (path, "", "")
