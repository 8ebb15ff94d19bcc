"""A cache job as a scene: its state, how far it is in files and bytes, how fast, what failed. And tables of such jobs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from html import escape
from typing import Any, Final

from vcnb.cache.api import CacheProgress, JobFacts
from vcnb.cache.jobs.record import FailedFile
from vcnb.cache.protocol import JobType
from vcnb.cache.words import bytes_words, progress_words
from vcnb.scene.markup import bar, block, elapsed, folded, table
from vcnb.scene.svg import Figure, element, number
from vcnb.scene.svg import text as label
from vcnb.scene.tables import text_table
from vcnb.scene.words import badge, mark

__all__ = [
    "COLUMNS",
    "DONE",
    "SECTIONS",
    "CacheSnapshot",
    "html",
    "jobs_html",
    "jobs_rows",
    "jobs_text",
    "line",
    "sections",
    "text",
]

SECTIONS: Final = ("head", "progress", "numbers", "failures")
SHOWN_FAILURES: Final = 20
MAX_ROWS: Final = 60
COLUMNS: Final = ("JobId", "Type", "State", "Path", "Owner", "Submitted", "Updated", "Files", "Bytes")
"""The columns of ``job list``."""

DONE: Final[Mapping[JobType, str]] = {
    JobType.LOAD: "loaded",
    JobType.FREE: "freed",
    JobType.COPY: "copied",
    JobType.MOVE: "moved",
}
"""What "loaded" is called for each type."""

_WIDTH: Final = 560
_BAR: Final = 16
_SPARK: Final = 40
_WINDOW: Final = 4


@dataclass(frozen=True)
class CacheSnapshot:
    """A cache job at one moment. ``samples``: (time, bytes done) as a live view has seen them, oldest first."""

    facts: JobFacts
    progress: CacheProgress
    failures: Sequence[FailedFile] = ()
    now: float = 0.0
    samples: Sequence[tuple[float, float]] = field(default=())

    @property
    def done(self) -> str:
        return DONE[self.facts.type]


def line(snapshot: CacheSnapshot) -> str:
    """The job in one line, for printed progress."""
    facts = snapshot.facts
    words = progress_words(snapshot.progress)
    return f"{mark(facts.state).shape} {facts.type.lower()} {_place(facts)}: {facts.state}  {words}"


def _place(facts: JobFacts) -> str:
    return f"{facts.src} to {facts.dst}" if facts.src and facts.dst else facts.path


def text(snapshot: CacheSnapshot) -> str:
    """The job for a terminal: a line, then why it ended as it did, warnings, and the first failures."""
    facts = snapshot.facts
    lines = [line(snapshot), *(f"  {words}" for words in _remarks(snapshot))]
    shown = snapshot.failures[:5]
    lines += [f"  ✘ {file.path}: {file.reason} {file.message} (tried {_times(file.tries)})" for file in shown]
    more = max(snapshot.progress.failed_files, len(snapshot.failures)) - len(shown)
    if shown and more > 0:
        lines.append(f"  ... and {more} more failed files: .failures()")
    lines.append(f"  id {facts.id}")
    return "\n".join(lines)


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def _remarks(snapshot: CacheSnapshot) -> list[str]:
    facts, progress = snapshot.facts, snapshot.progress
    said = []
    if facts.reason or facts.message:
        said.append(": ".join(part for part in (facts.reason, facts.message) if part))
    told = dict.fromkeys((*facts.warnings, *progress.warnings))
    said += [f"warning: {words}" for words in told if words != facts.message]
    if progress.evicted_bytes:
        said.append(f"{bytes_words(progress.evicted_bytes)} of other cached data had to go to make room")
    if progress.quota is not None:
        said.append(f"quota {bytes_words(progress.quota[0])}, {bytes_words(progress.quota[1])} left")
    if progress.retrying:
        said.append(f"{progress.retrying} parts are being tried again")
    return said


# -- the scene


def sections(snapshot: CacheSnapshot, *, live: bool) -> Mapping[str, str]:
    """The sections of a cache job as HTML."""
    return {
        "head": _head(snapshot, live=live),
        "progress": _progress(snapshot, live=live),
        "numbers": _numbers(snapshot),
        "failures": _failures(snapshot),
    }


def html(snapshot: CacheSnapshot) -> str:
    """The job for a notebook that nobody keeps up to date."""
    return block("".join(part for part in sections(snapshot, live=False).values() if part))


def _head(snapshot: CacheSnapshot, *, live: bool) -> str:
    facts = snapshot.facts
    place = f"{escape(facts.src)} → {escape(facts.dst)}" if facts.src and facts.dst else escape(facts.path)
    took = elapsed(facts.started or facts.submitted, facts.ended, snapshot.now, live=live)
    first = f"<div>{badge(facts.state)} &nbsp; {facts.type.lower()} <b>{place}</b> &nbsp; {took}</div>"
    remarks = "".join(f"<div>{escape(words)}</div>" for words in _remarks(snapshot))
    options = ", ".join(f"{name.replace('_', '-')}={value}" for name, value in facts.options.items())
    small = f"id {escape(facts.id)}" + (f" &nbsp; {escape(options)}" if options else "")
    return f'{first}{remarks}<div style="opacity:.75;font-size:12px">{small}</div>'


def _progress(snapshot: CacheSnapshot, *, live: bool) -> str:
    words = f"<div>{escape(progress_words(snapshot.progress))}</div>"
    return _figure(snapshot).show(live=live) + words


def _figure(snapshot: CacheSnapshot) -> Figure:
    """The share of what is done, in one bar; above it the speed, where a live view has seen it change."""
    progress = snapshot.progress
    by_bytes = bool(progress.total_bytes)
    kinds = (("loaded", "good"), ("skipped", "run"), ("vanished", "off"), ("failed", "bad"))
    unit = "bytes" if by_bytes else "files"
    total = max(progress.total_bytes if by_bytes else progress.scanned_files, 1)
    rates = _rates(snapshot.samples)
    top = _SPARK + 6 if rates else 0
    body = [_spark(rates)] if rates else []
    frame = "vn" if progress.total_known else "vn vd"  # dashed while nobody knows where the end is
    body.append(element("rect", class_=frame, x=0.6, y=top + 0.6, width=_WIDTH - 1.2, height=_BAR, rx=3))
    x = 1.2
    for name, tone in kinds:
        width = (_WIDTH - 2.4) * min(getattr(progress, f"{name}_{unit}") / total, 1.0)
        if width > 0:
            shown = max(width, 1.5)
            body.append(
                element(
                    "rect", class_=f"vf-{tone}", x=x, y=top + 1.2, width=min(shown, _WIDTH - 1.2 - x), height=_BAR - 1.2
                )
            )
            x += width
    legend, at = [], 0.0
    for name, tone in kinds:
        count = getattr(progress, f"{name}_files")
        if not count and name != "loaded":
            continue
        word = f"{snapshot.done if name == 'loaded' else name} {count:,}"
        legend.append(element("rect", class_=f"vf-{tone}", x=at, y=top + _BAR + 8, width=9, height=9))
        legend.append(label(at + 14, top + _BAR + 16, word, "vs"))
        at += 30 + 6.2 * len(word)
    said = progress_words(progress)
    return Figure(_WIDTH, top + _BAR + 22, "".join((*body, *legend)), f"{snapshot.facts.state}: {said}")


def _rates(samples: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """(time, bytes per second) over the last few samples each, because files come in lumps; nothing before there are three."""
    rates = []
    for place, (later, more) in enumerate(samples):
        sooner, less = samples[max(0, place - _WINDOW)]
        if later > sooner:
            rates.append((later, (more - less) / (later - sooner)))
    return rates if len(rates) >= 3 else []


def _spark(rates: Sequence[tuple[float, float]]) -> str:
    begin, end = rates[0][0], rates[-1][0]
    most = max(rate for _, rate in rates) or 1.0
    width = _WIDTH - 90
    points = [
        (width * (when - begin) / max(end - begin, 1e-9), _SPARK - (_SPARK - 4) * max(rate, 0.0) / most)
        for when, rate in rates
    ]
    path = " ".join(f"{number(x)},{number(y)}" for x, y in points)
    return (
        element("line", class_="vg", x1=0, y1=_SPARK, x2=width, y2=_SPARK)
        + element("polyline", class_="vk-run", points=path, fill="none", stroke_width=1.6)
        + label(width + 6, 12, f"{bytes_words(most)}/s", "vs")
    )


def _numbers(snapshot: CacheSnapshot) -> str:
    progress, done = snapshot.progress, snapshot.done
    rows = [
        ("found", f"{progress.scanned_files:,}", bytes_words(progress.total_bytes) if progress.total_bytes else ""),
        (done, f"{progress.loaded_files:,}", bytes_words(progress.loaded_bytes)),
        ("skipped", f"{progress.skipped_files:,}", bytes_words(progress.skipped_bytes)),
        ("failed", f"{progress.failed_files:,}", bytes_words(progress.failed_bytes)),
        ("vanished", f"{progress.vanished_files:,}", bytes_words(progress.vanished_bytes)),
    ]
    kept = [row for row in rows if row[0] in {"found", done} or row[1] != "0"]
    more = [
        f"read from the source {bytes_words(progress.fetched_bytes)}" if progress.fetched_bytes else "",
        f"directories {progress.directories:,}" if progress.directories else "",
        f"retries {progress.retried_units:,}" if progress.retried_units else "",
        f"pinned {progress.pinned_files:,}" if progress.pinned_files else "",
        f"verified {progress.verified_files:,}, reloaded {progress.reloaded_files:,} in {progress.verify_passes} passes"
        if progress.verify_passes
        else "",
        f"average {bytes_words(progress.average_throughput)}/s" if progress.average_throughput else "",
    ]
    rest = ", ".join(part for part in more if part)
    body = table(("", "files", "bytes"), kept) + (f"<div>{escape(rest)}</div>" if rest else "")
    return folded("numbers", body)


def _failures(snapshot: CacheSnapshot) -> str:
    if not snapshot.failures:
        return ""
    rows = [
        (escape(file.path), escape(file.reason), escape(file.message[:200]), str(file.tries))
        for file in snapshot.failures[:SHOWN_FAILURES]
    ]
    total = max(snapshot.progress.failed_files, len(snapshot.failures))
    more = total - len(rows)
    rest = f"<div>… and {more:,} more: .failures().to_pandas()</div>" if more > 0 else ""
    return folded(f"failed files ({total:,})", table(("file", "reason", "", "tries"), rows) + rest, open_=True)


# -- tables of jobs


def stamp(seconds: float | None) -> str:
    """A time in UTC to the second, as ``job list`` prints it; ``-`` for none."""
    return "-" if seconds is None else datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S")


def jobs_rows(jobs: Sequence[tuple[JobFacts, CacheProgress]]) -> list[tuple[Any, ...]]:
    """A row for each job, in the order of ``COLUMNS``."""
    return [
        (
            facts.id,
            facts.type.value,
            facts.state.value,
            facts.path,
            facts.owner.partition("#")[0] or "-",
            stamp(facts.submitted),
            stamp(facts.ended or facts.started or facts.submitted),
            f"{progress.done_files}/{progress.scanned_files}",
            f"{progress.done_bytes}/{progress.total_bytes}",
        )
        for facts, progress in jobs
    ]


def jobs_text(jobs: Sequence[tuple[JobFacts, CacheProgress]]) -> str:
    """The jobs as a table of text."""
    if not jobs:
        return "no cache jobs"
    rows = jobs_rows(jobs[:MAX_ROWS])
    more = len(jobs) - len(rows)
    return text_table(COLUMNS, rows) + (f"\n... and {more} more" if more > 0 else "")


def jobs_html(jobs: Sequence[tuple[JobFacts, CacheProgress]], now: float, *, live: bool = False) -> str:
    """The jobs as a table of HTML."""
    if not jobs:
        return "<div>no cache jobs</div>"
    rows = []
    for facts, progress in jobs[:MAX_ROWS]:
        share = progress.percent if progress.percent is not None else 0.0
        name = escape(f"{facts.type.lower()} {_place(facts)}")
        rows.append(
            (
                name,
                badge(facts.state),
                bar(share, 100, progress_words(progress)),
                escape(progress_words(progress)),
                elapsed(facts.started or facts.submitted, facts.ended, now, live=live),
            )
        )
    more = len(jobs) - len(rows)
    rest = f"<div>… and {more} more</div>" if more > 0 else ""
    return table(("job", "state", "", "", "time"), rows) + rest
