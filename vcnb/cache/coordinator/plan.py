"""The accounts of one running job: what was found, what is to be sent, what came back. No I/O, no clock of its own.

The entries of a listing come in spans, in order. A span is final when each of its files is: every unit loaded, skipped,
vanished, or finally failed. Spans become final in any order; the checkpoint is the end of the last span of the final ones
at the front, and the numbers "as of the checkpoint" are the sums of exactly those spans. So a job that goes on at its
checkpoint counts everything once.

A unit is in one place at any time: in a worker's queue, in flight, waiting to be retried, or homeless (there is no worker).
"""

from __future__ import annotations

import heapq
import itertools
from collections import deque
from collections.abc import Callable, Collection, Iterable, Sequence

from vcnb.cache.coordinator.pieces import FREE_LOSSES, MESSAGE, File, Piece, Place, Span, backoff, uncount
from vcnb.cache.jobs.record import Checkpoint, Counters, FailedFile, JobOptions, Progress
from vcnb.cache.protocol import FailureCode, JobType, Outcome, Unit, UnitResult, Version

__all__ = ["Plan"]


class Plan:
    """Everything that is open of one job, and its numbers."""

    def __init__(
        self,
        type: JobType,
        options: JobOptions,
        *,
        place: Place,
        partition_size: int,
        jitter: Callable[[], float],
        progress: Progress | None = None,
        replicas: int = 1,
        retry_capacity: int = 1_000_000,
    ) -> None:
        self.type = type
        self.options = options
        self.place = place
        self.partition_size = partition_size
        self.replicas = replicas
        self._jitter = jitter
        self._retry_capacity = retry_capacity
        self.committed = progress.counters.copy() if progress is not None else Counters()
        self.checkpoint = progress.checkpoint if progress is not None else Checkpoint()
        self.spans: deque[Span] = deque()
        self._open_spans: set[Span] = set()
        self._final = Counters()
        self.evicted = 0
        self.reasons: set[str] = set(progress.reasons) if progress is not None else set()
        self.failures: list[FailedFile] = []
        """Of spans before the checkpoint, not stored yet."""
        self.queues: dict[str, deque[Piece]] = {}
        self.inflight: dict[str, tuple[str, list[Piece]]] = {}
        self.homeless: deque[Piece] = deque()
        self._retries: list[tuple[float, int, Piece]] = []
        self._order = itertools.count()
        self._turn = itertools.count()
        self.open_files = 0
        self.failed_units = self.committed.failed_units
        self.units = self.committed.units

    # Numbers

    def live(self) -> Counters:
        """All numbers as they are now."""
        total = self.committed.copy()
        total.add(self._final)
        for span in self._open_spans:
            total.add(span.counters)
        total.evicted_bytes += self.evicted
        return total

    def open_failures(self) -> list[FailedFile]:
        """Files that have failed and are not stored yet."""
        return [*self.failures, *(failed for span in self.spans for failed in span.failures)]

    @property
    def idle(self) -> bool:
        """Whether nothing is open."""
        return self.open_files == 0

    @property
    def retrying(self) -> int:
        return len(self._retries)

    def unhealthy(self) -> bool:
        """Whether more units failed than both thresholds allow (reference 3.6)."""
        count, ratio = self.options.failure_count, self.options.failure_ratio
        if count < 0 or ratio >= 1:
            return False
        return self.failed_units > count and self.failed_units > ratio * self.units

    # Planning

    def begin_span(self, checkpoint: Checkpoint) -> Span:
        """The next entries of the listing; all of them are added before ``end_span``."""
        span = Span(checkpoint)
        self.spans.append(span)
        self._open_spans.add(span)
        return span

    def end_span(self, span: Span) -> None:
        span.closed = True
        self._look_at(span)
        self._commit()

    def _look_at(self, span: Span) -> None:
        """A span whose files are all final does not change any more."""
        if span.closed and not span.open:
            self._open_spans.discard(span)
            self._final.add(span.counters)

    def add_file(self, span: Span, path: str, version: Version, *, target: str = "", reload: bool = False) -> None:
        """A file to load, copy or move; with ``reload`` one that is counted already, and is not cached after all."""
        file = File(span, path, version, target, reload)
        self._opened(file)
        self._cut(file, account=not reload)

    def add_cached(self, span: Span, path: str, version: Version, holders: Sequence[tuple[str, int]]) -> None:
        """A file to free: which workers hold how many bytes of it."""
        file = File(span, path, version, "", reload=False)
        self._opened(file)
        for name, held in holders:
            self._send(Piece(file, 0, 0, held, holder=name))
            span.counters.total_bytes += held

    def add_failed(self, span: Span, path: str, code: FailureCode, message: str, size: int = 0) -> None:
        """A file that cannot even be begun."""
        counters = span.counters
        counters.scanned_files += 1
        counters.failed_files += 1
        counters.total_bytes += size
        counters.failed_bytes += size
        counters.units += 1
        counters.failed_units += 1
        self.units += 1
        self.failed_units += 1
        self._note(span, FailedFile(path, code, message[:MESSAGE], 1))

    def _note(self, span: Span, failed: FailedFile) -> None:
        span.failures.append(failed)
        self.reasons.add(failed.reason)

    def _opened(self, file: File) -> None:
        file.span.open += 1
        self.open_files += 1
        if file.directory:
            file.span.counters.directories += 1
        elif not file.reload:
            file.span.counters.scanned_files += 1

    def _cut(self, file: File, *, account: bool, first_cost: int | None = None) -> None:
        """Make the units of a file: one for each partition and replica; one without bytes where there are none."""
        size = 0 if self.options.metadata_only and self.type == JobType.LOAD else file.version.size
        replicas = self.replicas if self.type == JobType.LOAD else 1
        step = self.partition_size if self.type == JobType.LOAD else max(size, 1)
        for replica in range(replicas):
            for offset in range(0, size, step) if size else (0,):
                length = min(step, size - offset)
                cost = length if account else 0
                if first_cost is not None:
                    cost, first_cost = first_cost, 0
                elif account:
                    file.span.counters.total_bytes += cost
                self._send(Piece(file, offset, length, cost, replica))

    def _send(self, piece: Piece) -> None:
        piece.file.pending += 1
        piece.file.span.counters.units += 1
        self.units += 1
        self._route(piece)

    def _route(self, piece: Piece) -> None:
        """Give a unit to the queue of the worker that the ring names now."""
        if piece.holder is not None:
            self.queues.setdefault(piece.holder, deque()).append(piece)
            return
        names = self.place(piece.file.path, self.replicas)
        if not names:
            self.homeless.append(piece)
            return
        if self.type in {JobType.COPY, JobType.MOVE}:
            name = names[next(self._turn) % len(names)]
        elif self.replicas == 1:
            name = names[0]
        else:
            found = self._home(piece, names)
            if found is None:
                self.homeless.append(piece)
                return
            name = found
        self.queues.setdefault(name, deque()).append(piece)

    def _home(self, piece: Piece, names: tuple[str, ...]) -> str | None:
        """A worker for one replica: the ring's, unless it has another replica of it from before the ring has changed.

        Replicas of one file are on different workers; None when there are not enough of those now.
        """
        homes = piece.file.homes
        others = {homes.get((piece.offset, number)) for number in range(self.replicas) if number != piece.replica}
        wanted = names[piece.replica : piece.replica + 1]
        for name in (*wanted, *names):
            if name not in others:
                homes[piece.offset, piece.replica] = name
                return name
        return None

    # Sending

    def has_work(self, worker: str) -> bool:
        return bool(self.queues.get(worker))

    def take(self, worker: str, task: str, files: int) -> tuple[Unit, ...]:
        """The next units for a worker: at most ``files`` files, and about a partition's bytes. Empty: there is nothing."""
        queue = self.queues.get(worker)
        if not queue:
            return ()
        pieces: list[Piece] = []
        last: File | None = None
        size = count = 0
        while queue:
            piece = queue[0]
            if piece.file is not last:
                if count == files:
                    break
                last = piece.file
                count += 1
            if pieces and size + piece.length > self.partition_size:
                break
            size += piece.length
            queue.popleft()
            piece.tries += 1
            pieces.append(piece)
        self.inflight[task] = (worker, pieces)
        return tuple(piece.unit() for piece in pieces)

    # What came back

    def settle(self, task: str, results: Sequence[UnitResult], now: float) -> None:
        """The answer of a worker; one that does not fit the task is none."""
        entry = self.inflight.get(task)
        if entry is None:
            return
        if len(results) != len(entry[1]):
            text = f"worker {entry[0]} gave {len(results)} results for {len(entry[1])} units"
            self.lose(task, FailureCode.INTERNAL, text, now)
            return
        del self.inflight[task]
        for piece, result in zip(entry[1], results, strict=True):
            self._result(piece, result, now)
        self._commit()

    def lose(self, task: str, code: FailureCode, message: str, now: float, *, free: bool = False) -> None:
        """A task that has no answer: its units are tried again; ``free``: it does not count as a try."""
        entry = self.inflight.pop(task, None)
        if entry is None:
            return
        result = UnitResult(Outcome.FAILED, code=code, message=message, retryable=True)
        for piece in entry[1]:
            piece.losses += free
            if free and piece.losses <= FREE_LOSSES:
                piece.tries -= 1
                self._route_again(piece)
            else:
                self._result(piece, result, now)
        self._commit()

    def _route_again(self, piece: Piece) -> None:
        if piece.holder is not None:
            self.homeless.append(piece)
        else:
            self._route(piece)

    def due(self, now: float) -> float | None:
        """Send what is to be tried again now; returns when the next unit will be, None when none waits."""
        while self._retries and self._retries[0][0] <= now:
            self._route(heapq.heappop(self._retries)[2])
        return self._retries[0][0] if self._retries else None

    def members(self, live: Collection[str]) -> None:
        """Other workers live now: what is queued for those that are gone goes elsewhere, without a try being used up."""
        stranded: list[Piece] = []
        for name in [name for name in self.queues if name not in live]:
            stranded.extend(self.queues.pop(name))
        stranded.extend(self.homeless)
        self.homeless.clear()
        for piece in stranded:
            if piece.holder is not None and piece.holder not in live:
                self.homeless.append(piece)
            else:
                self._route(piece)

    def cancel(self, code: FailureCode, message: str) -> None:
        """Give up everything that is open: it becomes failed."""
        left: list[Piece] = [piece for _, pieces in self.inflight.values() for piece in pieces]
        left.extend(piece for queue in self.queues.values() for piece in queue)
        left.extend(self.homeless)
        left.extend(piece for _, _, piece in self._retries)
        self.inflight.clear()
        self.queues.clear()
        self.homeless.clear()
        self._retries.clear()
        result = UnitResult(Outcome.FAILED, code=code, message=message)
        for piece in left:
            self._result(piece, result, 0.0)
        self._commit()

    def abandon(self) -> None:
        """Give up what no worker can do: replicas that have no worker of their own, files of a worker that is gone."""
        pieces, self.homeless = self.homeless, deque()
        for piece in pieces:
            if piece.holder is not None:
                result = UnitResult(
                    Outcome.FAILED, code=FailureCode.WORKER_LOST, message=f"worker {piece.holder} is gone"
                )
            elif self.options.replicas_best_effort:
                result = UnitResult(Outcome.SKIPPED)
            else:
                text = f"not enough workers for {self.replicas} replicas"
                result = UnitResult(Outcome.FAILED, code=FailureCode.RESOURCE_EXHAUSTED, message=text)
            self._result(piece, result, 0.0)
        self._commit()

    def _result(self, piece: Piece, result: UnitResult, now: float) -> None:
        file = piece.file
        counters = file.span.counters
        outcome = result.outcome
        counters.fetched_bytes += result.fetched
        if outcome is Outcome.LOADED:
            file.loaded = True
            cost = piece.cost
            if result.version is not None and not result.version.same(file.version):
                cost = self._other_version(piece, result)
            counters.loaded_bytes += cost
        elif outcome is Outcome.SKIPPED:
            counters.skipped_bytes += piece.cost
            if self.type == JobType.FREE:
                counters.pinned_files += 1
        elif self._vanished(result):
            file.vanished = True
            counters.vanished_bytes += piece.cost
        elif self._again(piece, result, now):
            return
        else:
            file.failed = (result.code or FailureCode.INTERNAL, result.message)
            file.tries = max(file.tries, piece.tries)
            counters.failed_bytes += piece.cost
            counters.failed_units += 1
            self.failed_units += 1
        file.pending -= 1
        if not file.pending:
            self._file_done(file)

    def _vanished(self, result: UnitResult) -> bool:
        """Gone since it was listed (404): not a failure, unless the listing is to be taken strictly."""
        if result.outcome is Outcome.VANISHED:
            return not self.options.strict_listing
        return result.code is FailureCode.NOT_FOUND and not self.options.strict_listing

    def _other_version(self, piece: Piece, result: UnitResult) -> int:
        """A unit was loaded in a newer version than the listing's: a whole file is right so, a part begins anew."""
        assert result.version is not None
        file = piece.file
        if piece.offset == 0 and piece.length == file.version.size and self.replicas == 1:
            cost = result.bytes if piece.cost else 0
            file.span.counters.total_bytes += cost - piece.cost
            file.version = result.version
            return cost
        file.changed = result.version
        return piece.cost

    def _again(self, piece: Piece, result: UnitResult, now: float) -> bool:
        """Whether a unit that failed is tried again."""
        file = piece.file
        if not result.retryable or len(self._retries) >= self._retry_capacity:
            return False
        if result.code is FailureCode.SOURCE_CHANGED and result.version is not None:
            if file.restarts >= self.options.max_retries:
                return False
            file.changed = result.version
            file.owed += piece.cost
            file.pending -= 1
            if not file.pending:
                self._file_done(file)
            return True
        if piece.tries > self.options.max_retries:
            return False
        file.span.counters.retried_units += 1
        due = now + backoff(piece.tries, self._jitter())
        heapq.heappush(self._retries, (due, next(self._order), piece))
        return True

    def _file_done(self, file: File) -> None:
        counters = file.span.counters
        if file.changed is not None and file.failed is None and file.restarts < self.options.max_retries:
            self._begin_again(file)
            return
        file.span.open -= 1
        self.open_files -= 1
        if file.failed is not None or file.changed is not None:
            reason, message = file.failed or (FailureCode.SOURCE_CHANGED, "the file keeps changing while it is read")
            counters.failed_bytes += file.owed
            if file.reload:
                self._uncount(file)
            elif file.directory:
                counters.scanned_files += 1
            counters.failed_files += 1
            self._note(file.span, FailedFile(file.path, reason, message[:MESSAGE], file.tries))
        elif file.reload:
            counters.reloaded_files += not file.vanished
        elif file.directory:
            pass
        elif file.vanished:
            counters.vanished_files += 1
        elif file.loaded:
            counters.loaded_files += 1
        else:
            counters.skipped_files += 1
        self._look_at(file.span)

    def _begin_again(self, file: File) -> None:
        assert file.changed is not None
        copies = self.replicas if self.type == JobType.LOAD else 1
        more = max(0, (file.changed.size - file.version.size) * copies)
        file.span.counters.total_bytes += more
        file.version, file.changed = file.changed, None
        file.homes.clear()
        file.restarts += 1
        file.span.counters.retried_units += 1
        owed, file.owed = file.owed + more, 0
        self._cut(file, account=False, first_cost=owed)

    def _uncount(self, file: File) -> None:
        """A file that was counted as loaded (or skipped) is not there and cannot be had: it is failed instead."""
        uncount(file.span.counters, self.live(), file.version.size * self.replicas)

    def _commit(self) -> None:
        spans = self.spans
        while spans and spans[0].closed and not spans[0].open:
            span = spans.popleft()
            self.committed.add(span.counters)
            self._final.add(span.counters, -1)
            self.failures.extend(span.failures)
            self.checkpoint = span.checkpoint

    def fail_missing(self, span: Span, files: Iterable[tuple[str, int]], message: str) -> None:
        """Files that the last verification pass did not find: failed after all."""
        for path, size in files:
            uncount(span.counters, self.live(), size * self.replicas)
            span.counters.failed_files += 1
            self._note(span, FailedFile(path, FailureCode.VERIFY_MISSING, message, 1))
