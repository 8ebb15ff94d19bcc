"""Whatever dies, and whenever: each job ends right, with numbers that add up, and with no transition made twice."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from unit.cache_jobs.cache_fakes import ROOT, Stage, play
from vcnb.cache.errors import OutcomeUnknown, StoreUnavailable
from vcnb.cache.jobs.record import JobState
from vcnb.cache.stores.jobs import JobStore
from vcnb.cache.stores.kv import Compare, Op
from vcnb.cache.stores.memory import MemoryKv
from vcnb.clock import VirtualClock

FILES = 23


class FlakyKv(MemoryKv):
    """Writes whose answer gets lost, or that are refused; and a history of every record that was written."""

    def __init__(self, clock: VirtualClock, *, shared: bool) -> None:
        super().__init__(clock, shared=shared)
        self.faults: list[str] = []
        self.written: list[tuple[str, bytes]] = []

    async def txn(self, compares: Sequence[Compare], ops: Sequence[Op], *, durable: bool = True) -> int | None:
        fault = self.faults.pop() if self.faults else "none"
        if fault == "refused":
            raise StoreUnavailable("no")
        if fault == "unknown":
            raise OutcomeUnknown("not carried out")
        revision = await super().txn(compares, ops, durable=durable)
        if revision is not None:
            self.written.extend(
                (op.key, op.value) for op in ops if getattr(op, "key", "").startswith("meta/") and hasattr(op, "value")
            )
        if fault == "lost":
            raise OutcomeUnknown("carried out")
        return revision


actions = st.lists(
    st.tuples(
        st.floats(0.0, 12.0),
        st.sampled_from(
            [
                "kill",
                "stop",
                "start",
                "kill worker",
                "revive worker",
                "restart worker",
                "lost",
                "refused",
                "unknown",
                "job stop",
            ]
        ),
        st.integers(0, 9),
    ),
    max_size=14,
)


async def act(stage: Stage, kv: FlakyKv, uuid: str, what: str, which: int) -> None:
    running = [c for c in stage.coordinators if c.running]
    if what in {"kill", "stop"} and running:
        victim = running[which % len(running)]
        await (victim.kill() if what == "kill" else victim.stop())
    elif what == "start" and len(running) < (3 if kv.shared else 1):
        kv.faults.clear()  # a start without a store is refused
        await stage.coordinator(f"C{len(stage.coordinators)}")
    elif what.endswith("worker"):
        name = f"W{which % 3 + 1}"
        if what == "kill worker":
            stage.members.kill(name)
        elif (what == "revive worker" and not stage.members.workers[name].alive) or what == "restart worker":
            stage.members.revive(name)
    elif what == "job stop":
        kv.faults.clear()
        await stage.stop(uuid)
        await stage.advance(0.1)
        if await stage.state(uuid) == JobState.STOPPED:
            await stage.submit(skip_if_exists=True, verify=True, max_retries=20)
    elif what in {"lost", "refused", "unknown"}:
        kv.faults.append(what)


def history(stage: Stage, plan: Any, *, shared: bool, local: bool = False) -> None:
    clock = stage.clock
    kv = FlakyKv(clock, shared=shared)
    stage.store = JobStore(kv)

    async def story(stage: Stage) -> None:
        for number, worker in enumerate(stage.workers):
            worker.seconds = 0.4 + 0.1 * number
        record = await stage.submit(verify=True, max_retries=20)
        await stage.coordinator("first")
        for seconds, what, which in plan:
            await stage.advance(seconds)
            if (await stage.job(record.uuid)).finished:
                break
            await act(stage, kv, record.uuid, what, which)
        kv.faults.clear()
        for name, worker in stage.members.workers.items():
            if not worker.alive:
                stage.members.revive(name)
        kv.faults.clear()
        if not any(c.running for c in stage.coordinators):
            await stage.coordinator("last")
        ended = await stage.ended(record.uuid, 3000)
        assert ended.uuid == record.uuid
        if ended.reason == "RECLAIM_LIMIT":
            assert ended.reclaims >= 5
            return
        assert ended.state == JobState.SUCCEEDED, ended.message
        assert await stage.numbers(record.uuid) == (FILES, *(await stage.numbers(record.uuid))[1:3], 0)
        assert {path for worker in stage.workers for path in worker.cache} == set(stage.source.files)
        check_history(kv)

    play(stage, story)


def check_history(kv: FlakyKv) -> None:
    """Versions go up by one, from record to record; nothing is written twice; an end is an end."""
    from vcnb.cache.jobs.record import decode_record

    records = [decode_record(value, 0) for _, value in kv.written]
    assert [record.version for record in records] == list(range(len(records)))
    for before, after in itertools.pairwise(records):
        assert after.epoch == before.epoch + (after.state == JobState.RUNNING)
        assert before.state not in {JobState.SUCCEEDED, JobState.FAILED}


_settings = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True, database=None
)


def stage() -> Stage:
    return Stage(files={f"{ROOT}/{n:02d}": 1000 + n for n in range(FILES)}, batch_size=2)


@_settings
@given(actions)
def test_with_a_shared_store(plan: list[tuple[float, str, int]]) -> None:
    history(stage(), plan, shared=True)


@_settings
@given(actions)
def test_with_a_store_of_its_own(plan: list[tuple[float, str, int]]) -> None:
    history(stage(), plan, shared=False)
