"""The ring: golden values of alluxiofs, balance, and what moves when a worker goes."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import cast
from uuid import UUID

import pytest

from vcnb.cache.protocol import Worker
from vcnb.cache.ring import HashRing, LiveRing, RingMismatch, identity, murmur3, settle
from vcnb.cache.stores.jobs import JobStore
from vcnb.cache.stores.memory import MemoryKv
from vcnb.clock import VirtualClock

WORKERS = ("worker-1", "worker-2", "worker-3")


def test_the_hash() -> None:
    assert murmur3(b"") == 0
    assert murmur3(b"abc") == -1277324294
    assert murmur3(b"s3://b/k" + (1).to_bytes(4, "little")) == -726856856


def test_the_identity_of_a_host() -> None:
    assert UUID(bytes=identity("worker-1")) == UUID("fd8beb38-b0b3-3008-b22e-a4ba31a713ac")


def test_the_points_of_a_small_ring() -> None:
    golden = (
        "-1883817648:1, -1871698026:3, -1748118792:2, -1584187924:3, -1548322967:3, -1429860237:2, -1398357253:3, "
        "-1121555975:1, -691011456:2, 445320498:2, 594459906:3, 741081669:1, 840760070:1, 1841923807:2, 1869646436:1"
    )
    assert ", ".join(f"{point}:{name[-1]}" for point, name in HashRing(WORKERS, 5).nodes) == golden


@pytest.mark.parametrize(
    ("nodes", "key", "owners"),
    [
        (5, "s3://b/k", "21"), (5, "s3://b/dir/f-000", "31"), (5, "s3://b/dir/f-001", "23"),
        (5, "s3://b/dir/f-0010", "21"), (5, "s3://b/k0", "12"), (5, "s3://b/k1", "12"),
        (2000, "s3://b/k", "21"), (2000, "s3://b/dir/f-000", "21"), (2000, "s3://b/dir/f-001", "12"),
        (2000, "s3://b/k0", "23"), (2000, "s3://b/k1", "31"),
    ],
)  # fmt: skip
def test_golden_lookups(nodes: int, key: str, owners: str) -> None:
    assert "".join(name[-1] for name in HashRing(WORKERS, nodes).locate(key, 2)) == owners


@pytest.mark.parametrize(("nodes", "shares"), [(5, (524, 1298, 178)), (2000, (672, 672, 656))])
def test_golden_shares(nodes: int, shares: tuple[int, int, int]) -> None:
    ring = HashRing(WORKERS, nodes)
    owners = Counter(ring.locate(f"s3://bucket/data/part-{n:05d}.parquet")[0] for n in range(2000))
    assert tuple(owners[name] for name in WORKERS) == shares


def test_only_the_files_of_a_worker_that_goes_move() -> None:
    before, after = HashRing(WORKERS, 200), HashRing(WORKERS[:2], 200)
    for n in range(500):
        (old,), (new,) = before.locate(f"s3://b/{n}"), after.locate(f"s3://b/{n}")
        assert old in (new, "worker-3")


def test_a_new_worker_takes_its_share_and_nothing_else_moves() -> None:
    before, after = HashRing(WORKERS, 200), HashRing((*WORKERS, "worker-4"), 200)
    moved = Counter(
        after.locate(f"s3://b/{n}")[0]
        for n in range(500)
        if after.locate(f"s3://b/{n}") != before.locate(f"s3://b/{n}")
    )
    assert set(moved) == {"worker-4"}
    assert 60 < moved["worker-4"] < 200


def test_few_workers() -> None:
    assert HashRing(()).locate("x", 2) == ()
    assert HashRing(("a",)).locate("x", 2) == ("a",)
    assert set(HashRing(("a", "b"), 50).locate("x", 5)) == {"a", "b"}
    assert HashRing(WORKERS).locate("x", 0) == ()


def test_replicas_are_different_workers_and_the_first_is_the_owner() -> None:
    ring = HashRing([f"w{n}" for n in range(10)], 100)
    for n in range(200):
        owners = ring.locate(f"s3://b/{n}", 10)
        assert len(set(owners)) == 10
        assert owners[:1] == ring.locate(f"s3://b/{n}")
        assert owners[:3] == ring.locate(f"s3://b/{n}", 3)


def test_every_worker_is_found_even_if_a_hundred_attempts_do_not() -> None:
    ring = HashRing([f"w{n}" for n in range(200)], 1)
    assert len(set(ring.locate("s3://b/k", 200))) == 200


def test_odd_paths_have_a_place() -> None:
    ring = HashRing(WORKERS, 50)
    for key in ("", "s3://b/ü", "file:///\udcff\udc80", "s3://b//x%20y", "s3://b/\x00"):
        assert ring.locate(key)[0] in WORKERS


def test_a_worker_needs_a_virtual_node() -> None:
    with pytest.raises(ValueError, match="virtual node"):
        HashRing(WORKERS, 0)


class _Members:
    """Workers by name that come and go."""

    def __init__(self, live: Sequence[str], known: Sequence[str]) -> None:
        self.names, self.all = list(live), list(known)
        self.listeners: list[Callable[[], None]] = []

    def live(self) -> Mapping[str, Worker]:
        return dict.fromkeys(self.names, cast("Worker", None))

    def known(self) -> Sequence[str]:
        return self.all

    def subscribe(self, changed: Callable[[], None]) -> Callable[[], None]:
        self.listeners.append(changed)
        return lambda: self.listeners.remove(changed)

    def become(self, live: Sequence[str]) -> None:
        self.names = list(live)
        for listener in self.listeners:
            listener()


def test_row_44_a_live_ring_follows_the_membership() -> None:
    members = _Members(["worker-2", "worker-1"], WORKERS)
    ring = LiveRing(members, 50)
    first = ring()
    assert first.workers == ("worker-1", "worker-2")
    assert ring() is first
    members.become(["worker-1", "worker-2"])
    assert ring() is first
    members.become(["worker-3"])
    assert ring().workers == ("worker-3",)
    assert ring().virtual_nodes == 50
    ring.close()
    assert members.listeners == []


def test_a_static_ring_keeps_workers_that_are_away() -> None:
    members = _Members(["worker-1"], WORKERS)
    assert LiveRing(members, 50, static=True)().workers == WORKERS


def test_the_first_ring_of_a_job_store_decides_and_another_is_refused() -> None:
    """A change of the ring made loaded data unfindable (alluxio-py #53, #58)."""

    async def story() -> None:
        store = JobStore(MemoryKv(VirtualClock()))
        await settle(store, HashRing(WORKERS, 2000))
        await settle(store, HashRing(("other",), 2000))
        with pytest.raises(RingMismatch, match=r"2000.*5"):
            await settle(store, HashRing(WORKERS, 5))

    asyncio.run(story())
