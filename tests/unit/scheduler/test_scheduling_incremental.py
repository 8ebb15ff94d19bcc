"""Keeping the state up to date, and leaving out who cannot have become possible, changes no decision."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from unit.scheduler.scheduling_world import Task, World, node
from vcnb.local.scheduler import Conf, Snapshot
from vcnb.local.scheduler.schedule import run_pass
from vcnb.local.scheduler.state import ClusterState
from vcnb.local.scheduler.values import Queue

tasks = st.builds(
    Task,
    count=st.integers(1, 3),
    cpu=st.sampled_from([0, 0.5, 1, 2, 3]),
    name=st.sampled_from(["w", "x"]),
    minimum=st.sampled_from([None, 0, 1]),
)
jobs = st.tuples(
    st.lists(tasks, min_size=1, max_size=2, unique_by=lambda task: task.name),
    st.integers(0, 3),  # how far minAvailable is below the number of pods
    st.sampled_from(["default", "q"]),
    st.sampled_from(["", "high"]),
    st.booleans(),
)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("submit"), jobs),
        st.tuples(st.sampled_from(["run", "succeed", "fail", "delete", "reap", "remove"]), st.integers(0, 7)),
        st.tuples(st.just("capability"), st.sampled_from([2000, 4000])),
        st.tuples(st.just("pods"), st.sampled_from([3, 6])),
    ),
    min_size=1,
    max_size=14,
)


def play(world: World, number: int, step) -> None:
    verb, value = step
    if verb == "submit":
        wanted, below, queue, priority, delayed = value
        minimum = max(sum(task.count for task in wanted) - below, 1)
        world.submit(f"j{number}", *wanted, minimum=minimum, queue=queue, priority=priority, delayed=delayed)
    elif verb in {"capability", "pods"}:
        if verb == "capability":
            world.put_queue(Queue("q", weight=2, capability={"cpu": value}))
        else:
            world.put_node(node(pods=value))
    elif verb == "reap":
        world.reap()
    elif verb == "remove":
        names = sorted(world.jobs)
        if names:
            world.remove_job(names[value % len(names)])
    else:
        names = world.bound()
        if names:
            getattr(world, verb)(names[value % len(names)])


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(steps)
def test_both_ways_come_to_the_same_rest(steps):
    queues = [Queue("q", weight=2)]
    fresh = World(node(pods=6), conf=Conf.strict(), queues=queues)
    kept = World(node(pods=6), conf=Conf(), queues=queues, incremental=True)
    for world in (fresh, kept):
        world.priority_class("high", 100)

    for number, step in enumerate(steps):
        play(fresh, number, step)
        play(kept, number, step)

        assert kept.phases() == fresh.phases()
        assert kept.bound() == fresh.bound()
        assert_sums(kept.state, fresh.snapshot())


def assert_sums(kept: ClusterState, snapshot: Snapshot) -> None:
    """Sums that were kept up to date are those of a count from the beginning."""
    counted = ClusterState.of(snapshot)
    counted.refresh()
    kept.refresh_sums()
    assert nonzero(kept.used) == nonzero(counted.used)
    assert nonzero(kept.total) == nonzero(counted.total)
    assert nonzero(kept.claims) == nonzero(counted.claims)
    for name, queue in counted.queues.items():
        for field in ("allocated", "request", "inqueue", "elastic"):
            assert nonzero(getattr(kept.queues[name], field)) == nonzero(getattr(queue, field)), (name, field)
    for key, group in counted.groups.items():
        assert kept.groups[key].counts == group.counts
        assert kept.groups[key].roles == group.roles
        assert {d.role: len(line) for d, line in kept.groups[key].pending.items()} == {
            d.role: len(line) for d, line in group.pending.items()
        }
    for line in ("to_enqueue", "to_allocate", "to_backfill"):
        assert members(kept, line) == members(counted, line)


def nonzero(amounts):
    return {name: amount for name, amount in amounts.items() if amount}


def members(state, line):
    return {queue: [key for _, key in getattr(state, line).members(queue)] for queue in getattr(state, line).queues()}


def test_a_thousand_equal_jobs_that_wait_are_one_try():
    """The one in front is tried when room may have grown; the others ask for the same."""
    world = World(incremental=True).submit("run", Task(4)).run()
    for number in range(1000):
        world.submit(f"j{number:04}", Task(3), settle=False)
    world.settle()

    world.state.changed.clear()
    world.state.freed = True
    outcome = run_pass(world.state, world.conf, world.now)

    assert not outcome
    assert world.phases()["j0000"] == "Pending"
    assert len(world.state.to_enqueue) == 1000
