"""Every knob of the Job Service, with Alluxio's property names and defaults (reference 5.1)."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Final

from vcnb.cache.paths import source_url
from vcnb.cache.protocol import PARTITION_SIZE
from vcnb.errors import InvalidObject, Problem

__all__ = ["NO_EFFECT", "QUOTA", "CacheConfig", "parse_duration", "parse_size"]

QUOTA: Final = "vcnb.quota."
"""``vcnb.quota.<path>=<size>``: so much may be cached of a path and what lies under it. Alluxio keeps these elsewhere."""

NO_EFFECT: Final[Mapping[str, tuple[str, str]]] = {
    "alluxio.worker.page.store.page.size": ("1MB", "pages have 1 MiB"),
    "alluxio.worker.page.store.overhead": ("0.1", "the index is small, and not taken off the capacity"),
    "alluxio.master.scheduler.initial.wait.time": ("10min", "a coordinator begins as soon as it knows a worker"),
    "alluxio.master.scheduler.restore.job.from.journal": ("true", "unfinished jobs always go on"),
    "alluxio.master.worker.info.cache.refresh.time": ("10sec", "workers are watched"),
    "alluxio.master.dora.load.job.failed.file.list.dir": (
        "${work.dir}/job_results/load",
        "failed files are kept with the job",
    ),
    "alluxio.worker.fast.data.load.enabled": ("false", "there is one way to load"),
    "alluxio.worker.s3.redirect.enabled": ("true", "workers have no S3 API"),
    "alluxio.dora.file.read.virtual.block.size": ("0MB", "a file is on one worker, and its replicas on others"),
    "alluxio.dora.client.ufs.fallback.enabled": ("true", "a filesystem has fallback="),
    "alluxio.user.worker.selection.policy.consistent.hash.provider.impl": (
        "DEFAULT",
        "the ring does not know capacities",
    ),
    "alluxio.user.consistent.hash.virtual.node.count.per.worker": (
        "5",
        "the ring has Enterprise's count: alluxio.user.worker.selection.policy.consistent.hash.virtual.node.count.per.worker",
    ),
    "alluxio.ttl.policy.enabled": ("false", "what is cached stays until it is freed or evicted"),
    "alluxio.quota.enabled": ("true", "quotas are vcnb.quota.<path>"),
    "alluxio.coordinator.address": ("", "coordinators find one another in etcd"),
}
"""Properties of Alluxio that are taken and kept, so that its files of properties can be used, and change nothing here: their
defaults and why."""

_UNITS: Final = {
    "": 0.001, "ms": 0.001, "millisecond": 0.001, "s": 1.0, "sec": 1.0, "second": 1.0, "m": 60.0, "min": 60.0,
    "minute": 60.0, "h": 3600.0, "hr": 3600.0, "hour": 3600.0, "d": 86400.0, "day": 86400.0,
}  # fmt: skip
_POWERS: Final = {"": 0, "b": 0, "k": 1, "m": 2, "g": 3, "t": 4, "p": 5}


def parse_duration(text: str) -> float:
    """Seconds of ``15s``, ``1H``, ``7d``, ``500ms``; a bare number is milliseconds. Raises ValueError."""
    match = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([a-z]*)\s*", text.lower())
    unit = match[2] if match is not None else "?"
    if unit not in _UNITS:
        unit = unit.removesuffix("s") or "?"
    if match is None or unit not in _UNITS:
        raise ValueError(f"{text!r} is not a duration such as 15s or 7d")
    return float(match[1]) * _UNITS[unit]


def parse_size(text: str) -> int:
    """Bytes of ``100MB``, ``256MiB``, ``10Gi``, ``4096``; all powers of 1024, as Alluxio. Raises ValueError."""
    match = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([kmgtp]?)i?b?\s*", text.lower())
    if match is None:
        raise ValueError(f"{text!r} is not a size such as 100MB")
    return int(float(match[1]) * 1024 ** _POWERS[match[2]])


def _property(name: str, default: Any) -> Any:
    return field(default=default, metadata={"property": name})


_SCHEDULER: Final = "alluxio.coordinator.scheduler"


@dataclass(frozen=True)
class CacheConfig:
    """Times in seconds, sizes in bytes. ``from_properties`` reads Alluxio's names.

    ``quotas``: so many bytes may be cached of a path and what lies under it. ``others``: properties without effect
    (``NO_EFFECT``) that were given.
    """

    failure_detection_timeout: float = _property("alluxio.coordinator.failure.detection.timeout", 15.0)
    etcd_max_retries: int = _property(f"{_SCHEDULER}.etcd.max.retries", 2)
    etcd_read_timeout: float = _property(f"{_SCHEDULER}.etcd.read.timeout", 10.0)
    etcd_write_timeout: float = _property(f"{_SCHEDULER}.etcd.write.timeout", 15.0)
    interval: float = _property(f"{_SCHEDULER}.interval.time", 2.0)
    etcd_path: str = _property(f"{_SCHEDULER}.job.etcd.path", "/alluxio/jobs/")
    poll_interval: float = _property(f"{_SCHEDULER}.job.etcd.poll.interval", 1.0)
    max_tasks_per_worker: int = _property(f"{_SCHEDULER}.max.tasks.per.worker", 3)
    running_capacity: int = _property(f"{_SCHEDULER}.running.job.capacity", 100)
    waiting_capacity: int = _property(f"{_SCHEDULER}.waiting.job.capacity", 300_000)
    batch_size: int = _property("alluxio.job.batch.size", 200)
    cleanup_interval: float = _property("alluxio.job.cleanup.interval", 3600.0)
    retention: float = _property("alluxio.job.retention.time", 7 * 86400.0)
    load_threads: int = _property("alluxio.worker.job.load.executor.threads.max", 2048)
    partition_size: int = _property("alluxio.worker.load.file.partition.size", PARTITION_SIZE)
    store_type: str = _property("alluxio.coordinator.job.meta.store.type", "ROCKS")
    etcd_endpoints: str = _property("alluxio.etcd.endpoints", "")
    job_etcd_endpoints: str = _property(f"{_SCHEDULER}.load.job.etcd.endpoints", "")
    retry_capacity: int = _property("alluxio.master.dora.load.job.retry.dlq.capacity", 1_000_000)
    worker_failure_detection_timeout: float = _property("alluxio.worker.failure.detection.timeout", 120.0)
    virtual_nodes: int = _property(
        "alluxio.user.worker.selection.policy.consistent.hash.virtual.node.count.per.worker", 2000
    )
    dynamic_ring: bool = _property("alluxio.user.dynamic.consistent.hash.ring.enabled", True)
    failure_count: int = _property("alluxio.master.dora.load.job.total.failure.count.threshold", -1)
    failure_ratio: float = _property("alluxio.master.dora.load.job.total.failure.ratio.threshold", 1.0)
    evictor: str = _property("alluxio.worker.page.store.evictor.type", "LRU")
    read_rate_limit_mb: int = _property("alluxio.worker.data.ufs.read.rate.limit.mb", 0)
    ttl_check_interval: float = _property("alluxio.ttl.eviction.check.interval", 3600.0)
    quotas: Mapping[str, int] = field(default_factory=dict)
    others: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.evictor not in {"LRU", "LFU", "FIFO"}:
            raise InvalidObject(
                [Problem("alluxio.worker.page.store.evictor.type", None, f"{self.evictor} is not LRU, LFU or FIFO")],
                "the cache",
            )
        if self.store_type == "ETCD" and not self.endpoints:
            raise InvalidObject(
                [Problem("alluxio.etcd.endpoints", None, "is required when the job meta store is ETCD")], "the cache"
            )

    @property
    def endpoints(self) -> tuple[str, ...]:
        """Where the etcd of the job store answers; its own, else the main one."""
        text = self.job_etcd_endpoints or self.etcd_endpoints
        return tuple(part.strip() for part in text.split(",") if part.strip())

    @property
    def lease(self) -> float:
        """Seconds of silence after which a coordinator counts as gone."""
        return self.failure_detection_timeout

    @classmethod
    def from_properties(cls, properties: Mapping[str, Any]) -> CacheConfig:
        """Read properties by Alluxio's names. Raises InvalidObject that names every unknown or unreadable one."""
        known = {item.metadata["property"]: item for item in fields(cls) if "property" in item.metadata}
        values: dict[str, Any] = {}
        quotas: dict[str, int] = {}
        others: dict[str, str] = {}
        problems = []
        for name, value in properties.items():
            if name in NO_EFFECT:
                others[name] = str(value).strip()
                continue
            if name.startswith(QUOTA):
                try:
                    quotas[source_url(name.removeprefix(QUOTA))] = parse_size(str(value))
                except InvalidObject as error:
                    problems.append(Problem(name, None, f"the path {error.errors[0].message}"))
                except ValueError as error:
                    problems.append(Problem(name, None, str(error)))
                continue
            if name not in known:
                near = difflib.get_close_matches(name, [*known, *NO_EFFECT], n=1, cutoff=0.7)
                hint = f"; did you mean {near[0]}?" if near else ""
                problems.append(Problem(name, None, f"is not a property of the Job Service{hint}"))
                continue
            item = known[name]
            try:
                values[item.name] = _read(item.name, item.default, str(value).strip())
            except ValueError as error:
                problems.append(Problem(name, None, str(error)))
        if problems:
            raise InvalidObject(problems, "the configuration of the cache")
        return cls(**values, quotas=quotas, others=others)

    def properties(self) -> dict[str, Any]:
        """Every property and its value."""
        own = {item.metadata["property"]: getattr(self, item.name) for item in fields(self) if item.metadata}
        kept = {name: self.others.get(name, default) for name, (default, _) in NO_EFFECT.items()}
        return {**own, **kept, **{f"{QUOTA}{path}": size for path, size in self.quotas.items()}}


def _read(name: str, default: Any, text: str) -> Any:
    if name == "partition_size":
        return parse_size(text)
    if isinstance(default, str):
        return text
    if isinstance(default, bool):
        return _read_bool(text)
    if name == "failure_ratio":
        return float(text)
    if isinstance(default, float):
        return parse_duration(text)
    return int(text)


def _read_bool(text: str) -> bool:
    if text.lower() not in {"true", "false"}:
        raise ValueError(f"{text!r} is neither true nor false")
    return text.lower() == "true"
