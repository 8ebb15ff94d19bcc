"""A cluster at a glance: nodes and how full they are, queues and their shares, jobs, newest first, and the cache's jobs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from html import escape

from vcnb.resources.quantity import Quantity, QuantityError
from vcnb.scene.markup import bar, block, elapsed, folded, stale_line, table
from vcnb.scene.phases import COUNTERS, phase_of, replicas_of
from vcnb.scene.snapshot import ClusterSnapshot
from vcnb.scene.words import badge, mark, seconds_of
from vcnb.store.protocol import Obj

__all__ = ["SECTIONS", "html", "sections", "text"]

SECTIONS = ("head", "nodes", "queues", "jobs", "cache")
MAX_ROWS = 40
_FINISHED = frozenset({"Completed", "Failed", "Terminated"})
_RESOURCES = ("cpu", "memory", "pods")


def text(snapshot: ClusterSnapshot) -> str:
    """One line for a terminal."""
    return f"dashboard of {snapshot.url}: {_counts(snapshot.jobs)}"


def html(snapshot: ClusterSnapshot) -> str:
    """The dashboard for a notebook that nobody keeps up to date."""
    return block("".join(part for part in sections(snapshot, live=False).values() if part))


def sections(snapshot: ClusterSnapshot, *, live: bool) -> Mapping[str, str]:
    """The sections of the dashboard as HTML."""
    return {
        "head": f"<div><b>{escape(snapshot.url)}</b> &nbsp; {_counts_html(snapshot.jobs)}</div>"
        + stale_line(snapshot.stale, snapshot.now, live=live),
        "nodes": _nodes(snapshot),
        "queues": _queues(snapshot),
        "jobs": _jobs(snapshot, live=live),
        "cache": _cache(snapshot, live=live),
    }


def _cache(snapshot: ClusterSnapshot, *, live: bool) -> str:
    if not snapshot.cache:
        return ""
    from vcnb.scene.cache import jobs_html

    return folded("cache", jobs_html(snapshot.cache, snapshot.now, live=live), open_=True)


def _tally(jobs: Sequence[Obj]) -> Counter[str]:
    return Counter(phase_of(job) for job in jobs)


def _counts(jobs: Sequence[Obj]) -> str:
    return (
        ", ".join(f"{count} {mark(phase).shape} {phase or 'new'}" for phase, count in _tally(jobs).items()) or "no jobs"
    )


def _counts_html(jobs: Sequence[Obj]) -> str:
    return " &nbsp; ".join(f"{count} {badge(phase)}" for phase, count in _tally(jobs).items()) or "no jobs"


def _amount(value: object) -> Quantity:
    try:
        return Quantity.parse(str(value))
    except QuantityError:
        return Quantity.parse(0)


def _meter(used: object, most: object) -> str:
    taken, room = _amount(used), _amount(most)
    said = f"{_short(taken)} of {_short(room)}"
    return f"{bar(float(taken), float(room), said)} {said}" if float(room) else said


def _short(amount: Quantity) -> str:
    """An amount as a person says it: bytes in binary units with at most one decimal."""
    value = float(amount)
    for factor, unit in ((2**40, "Ti"), (2**30, "Gi"), (2**20, "Mi")):
        if value >= factor:
            return f"{value / factor:.1f}".removesuffix(".0") + unit
    return f"{value:.2f}".rstrip("0").rstrip(".")


def _nodes(snapshot: ClusterSnapshot) -> str:
    rows = [
        (
            escape(node["metadata"]["name"]),
            *(
                _meter(
                    snapshot.used.get(node["metadata"]["name"], {}).get(name, "0"),
                    node.get("status", {}).get("allocatable", {}).get(name, "0"),
                )
                for name in _RESOURCES
            ),
        )
        for node in snapshot.nodes[:MAX_ROWS]
    ]
    more = len(snapshot.nodes) - len(rows)
    rest = f"<div>… and {more} more nodes</div>" if more else ""
    return folded("nodes", table(("node", *_RESOURCES), rows) + rest, open_=True) if rows else "<div>no node</div>"


def _queues(snapshot: ClusterSnapshot) -> str:
    weights = {
        queue["metadata"]["name"]: max(int(queue.get("spec", {}).get("weight", 1)), 0) for queue in snapshot.queues
    }
    total = sum(weight for name, weight in weights.items() if name != "root") or 1
    room = _room(snapshot.nodes)
    rows = []
    for queue in snapshot.queues[:MAX_ROWS]:
        name, spec, status = queue["metadata"]["name"], queue.get("spec", {}), queue.get("status", {})
        allocated = status.get("allocated", {})
        limit = spec.get("capability", {})
        rows.append(
            (
                escape(name),
                badge(str(status.get("state") or "Open")),
                f"{weights[name]} ({weights[name] / total:.0%})" if name != "root" else "",
                *(_meter(allocated.get(key, "0"), limit.get(key, room[key])) for key in ("cpu", "memory")),
                *(str(status.get(key, 0)) for key in ("pending", "inqueue", "running")),
            )
        )
    header = ("queue", "state", "weight (share)", "cpu", "memory", "pending", "inqueue", "running")
    more = len(snapshot.queues) - len(rows)
    rest = f"<div>… and {more} more queues</div>" if more else ""
    return folded("queues", table(header, rows) + rest, open_=True) if rows else ""


def _room(nodes: Sequence[Obj]) -> dict[str, str]:
    room = {}
    for name in ("cpu", "memory"):
        total = Quantity.parse(0)
        for node in nodes:
            total += _amount(node.get("status", {}).get("allocatable", {}).get(name, "0"))
        room[name] = str(total)
    return room


def _jobs(snapshot: ClusterSnapshot, *, live: bool) -> str:
    newest = sorted(snapshot.jobs, key=lambda job: str(job["metadata"].get("creationTimestamp", "")), reverse=True)
    newest.sort(key=lambda job: phase_of(job) in _FINISHED)
    rows = [_job(job, snapshot.now, live=live) for job in newest[:MAX_ROWS]]
    if not rows:
        return folded("jobs", "<div>no jobs</div>", open_=True)
    more = len(newest) - len(rows)
    rest = f"<div>… and {more} more jobs</div>" if more else ""
    return folded("jobs", table(("job", "phase", "pods", "", "queue", "age"), rows) + rest, open_=True)


def _job(job: Obj, now: float, *, live: bool) -> tuple[str, ...]:
    meta, status = job["metadata"], job.get("status", {})
    name = escape(f"{meta.get('namespace', 'default')}/{meta['name']}")
    total = replicas_of(job)
    done = min(total, status.get("succeeded", 0) + status.get("failed", 0))
    counts = ", ".join(f"{status[key]} {key}" for key in COUNTERS if status.get(key))
    return (
        f'<button class="v-link" data-open="{name}">{name}</button>' if live else name,
        badge(phase_of(job)),
        bar(done, max(total, 1), f"{done} of {total} pods have finished"),
        escape(counts),
        escape(str(job.get("spec", {}).get("queue", ""))),
        elapsed(seconds_of(meta.get("creationTimestamp")), None, now, live=live),
    )
