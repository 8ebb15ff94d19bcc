"""``load.why()``: what a cache job waits for, why it is slow, or how it ended and what to do, in plain words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from vcnb.cache.api import CacheJobState, CacheProgress, JobFacts
from vcnb.cache.jobs.record import FailedFile
from vcnb.cache.words import bytes_words, progress_words
from vcnb.client.why.answer import Answer, plural
from vcnb.scene.cache import DONE
from vcnb.scene.words import span

__all__ = ["Situation", "why"]


@dataclass(frozen=True)
class Situation:
    """What is known of a job and its service. ``ahead``: jobs that wait before it; ``workers``: how many can be reached.

    ``working``: whether this process works on jobs; None where that is not known (a real Alluxio). ``coordinators``: how
    many of a shared job store are up.
    """

    facts: JobFacts
    progress: CacheProgress
    failures: Sequence[FailedFile] = ()
    now: float = 0.0
    ahead: int | None = None
    running: int | None = None
    capacity: int = 0
    workers: int | None = None
    working: bool | None = None
    coordinators: int | None = None


_ADVICE: Final[Mapping[str, str]] = {
    "NOT_FOUND": "check the path; names are literal, and nothing is globbed",
    "PERMISSION_DENIED": "check who may read the source; its credentials go into storage_options",
    "INVALID_ARGUMENT": "check the scheme of the path and the storage_options",
    "UNAVAILABLE": "the source refuses or is overloaded: handle.retry() later, or with bandwidth= and a smaller batch_size=",
    "TIMEOUT": "the source is slow: handle.retry() later",
    "RESOURCE_EXHAUSTED": "there is no room, or there are too few workers: cache_capacity=, cluster.cache.free(path), fewer replicas",
    "QUOTA_EXCEEDED": "the path has its quota: free some of it, or load less",
    "VERIFY_MISSING": "the cache is too small for all of it: a larger cache_capacity=, or load less",
    "FAILED_PRECONDITION": "the target exists, or the source cannot be deleted: overwrite=True, or another target",
    "RECLAIM_LIMIT": "its coordinators ended again and again without getting any further; look at their logs",
}


def why(seen: Situation) -> str:
    """The answer as text."""
    state = seen.facts.state
    if state == CacheJobState.WAITING:
        return _waiting(seen).text()
    if state in {CacheJobState.RUNNING, CacheJobState.VERIFYING}:
        return _running(seen).text()
    if state == CacheJobState.FAILED:
        return _failed(seen).text()
    return _ended(seen).text()


def _name(seen: Situation) -> str:
    return f"{seen.facts.type.lower()} {seen.facts.path}"


def _waiting(seen: Situation) -> Answer:
    since = f" for {span(seen.now - seen.facts.submitted)}" if seen.facts.submitted is not None else ""
    answer = Answer(f"{_name(seen)} waits in the queue{since}")
    if seen.working is False:
        return Answer(
            f"{answer.sentence}, and nobody works on it here",
            next="open the cluster in a notebook, or submit with --wait",
        )
    facts = []
    if seen.coordinators == 0:
        facts.append("no coordinator is up: vcnb coordinator --etcd ...")
    if seen.workers == 0:
        facts.append("no worker can be reached")
    if seen.ahead:
        facts.append(f"{plural(seen.ahead, 'job')} wait before it")
    if seen.running is not None and seen.capacity and seen.running >= seen.capacity:
        facts.append(f"{seen.running} jobs run, which is all that may run at once")
    return answer.with_facts(facts or ["its turn is next"])


def _running(seen: Situation) -> Answer:
    progress, verb = seen.progress, "verifies" if seen.facts.state == CacheJobState.VERIFYING else "runs"
    answer = Answer(f"{_name(seen)} {verb}: {progress_words(progress)}")
    facts = []
    if not progress.total_known:
        facts.append("its source is still being listed, so the total is not known")
    if seen.workers == 0:
        facts.append("no worker can be reached; nothing is failed for that, it goes on when one is back")
    if seen.facts.options.get("bandwidth"):
        facts.append(f"each worker reads at most {bytes_words(float(seen.facts.options['bandwidth']))}/s, as was asked")
    if progress.retrying:
        facts.append(f"{plural(progress.retrying, 'part')} wait to be tried again")
    if progress.retried_units:
        facts.append(f"{plural(progress.retried_units, 'retry').replace('retrys', 'retries')} so far")
    return answer.with_facts(facts, _reasons(seen), progress.warnings)


def _failed(seen: Situation) -> Answer:
    facts = seen.facts
    message = f": {facts.message}" if facts.message else ""
    advice = _ADVICE.get(facts.reason, "")
    files = seen.progress.failed_files
    if files and seen.progress.done_files > files and not advice:
        advice = "handle.retry() does what is left"
    more = "" if files <= 1 else "; all of them: handle.failures().to_pandas()"
    return Answer(
        f"{_name(seen)} failed, {facts.reason or 'reason unknown'}{message}", next=f"{advice}{more}"
    ).with_facts(_reasons(seen), seen.progress.warnings)


def _ended(seen: Situation) -> Answer:
    facts, progress = seen.facts, seen.progress
    if facts.state == CacheJobState.STOPPED:
        return Answer(
            f"{_name(seen)} was stopped: {progress_words(progress)}",
            next="submit it again with skip_if_exists=True, and it goes on",
        )
    if facts.state == CacheJobState.SUCCEEDED:
        done = f"{progress.loaded_files:,} files {DONE[facts.type]}"
        took = f" in {span(facts.ended - facts.started)}" if facts.ended and facts.started else ""
        return Answer(f"{_name(seen)} succeeded{took}: {done}, {progress_words(progress)}").with_facts(
            _reasons(seen), progress.warnings
        )
    return Answer(f"{_name(seen)} is in a state that vcnb does not know: {facts.raw}")


def _reasons(seen: Situation) -> list[str]:
    """Failed files by reason, with one of each."""
    counts = Counter(file.reason for file in seen.failures)
    first = {file.reason: file for file in reversed(seen.failures)}
    return [
        f"{plural(count, 'file')} failed, {reason}: {first[reason].path} {first[reason].message}".rstrip()
        for reason, count in counts.most_common(4)
    ]
