"""The scenario table of the scheduling reference (section 14), row by row: node 4 cpu, queue default unless said.

Each runs on fresh snapshots and on a state that is kept up to date; both must come to the same.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from unit.scheduler.scheduling_world import Task, World, node
from vcnb.local.scheduler import Conf
from vcnb.local.scheduler.values import Queue

pytestmark = pytest.mark.parametrize("incremental", [False, True], ids=["snapshots", "kept up to date"])

OVERUSED_CPU = "resource in cluster is overused: overused cpu"
SHORT_CPU = "queue resource quota insufficient: insufficient cpu"


def test_1_a_job_is_admitted_then_its_pods_are_made_then_all_are_bound(incremental):
    world = World(incremental=incremental)

    world.submit("a", Task(2), settle=False)
    world.one_pass()

    assert world.phase("a") == "Inqueue"
    assert len(world.waiting("a")) == 2
    world.one_pass()
    assert world.phase("a") == "Running"
    assert world.bound() == ["a-w-0", "a-w-1"]
    assert world.newest("a") == "Scheduled"


def test_2_a_group_with_pods_is_admitted_and_bound_in_one_pass(incremental):
    world = World(incremental=incremental)

    world.submit("a", Task(1), delayed=False, settle=False)
    world.one_pass()

    assert world.bound() == ["a-w-0"]
    assert world.phase("a") == "Running"


def test_3_more_than_the_overcommitted_machine_is_not_admitted(incremental):
    world = World(incremental=incremental, conf=replace(Conf(), announce_empty=True)).submit("a", Task(3, 2))

    assert world.phase("a") == "Pending"
    assert not world.pods
    assert world.condition("a", "Unschedulable") is None
    assert ("a", "Normal", OVERUSED_CPU) in world.events
    empty = "0/0 tasks in gang unschedulable: pod group is not ready, 3 minAvailable"
    assert ("a", "Warning", empty) in world.events


def test_4_within_the_factor_but_not_within_the_queue_is_not_admitted_either(incremental):
    world = World(incremental=incremental).submit("a", Task(3, 1.5))

    assert world.phase("a") == "Pending"
    assert ("a", "Normal", SHORT_CPU) in world.events


def test_4a_places_for_pods_are_not_compared_at_admission_but_no_gang_starts_in_part(incremental):
    world = World(node(pods=2), incremental=incremental).submit("a", Task(3, 0.1))

    assert world.phase("a") == "Inqueue"
    assert world.bound() == []
    assert world.condition("a", "Unschedulable") == (
        "1/3 tasks in gang unschedulable: pod group is not ready, 3 Pending, 3 minAvailable; "
        "Pending: 1 Unschedulable, 2 Schedulable. "
        "Origin reason is a-w-2: 0/1 nodes are unavailable: 1 Insufficient pods."
    )
    assert world.waiting("a") == {
        "a-w-0": ("Schedulable", "Pod ns/a-w-0 can possibly be assigned to n1, once minAvailable is satisfied"),
        "a-w-1": ("Schedulable", "Pod ns/a-w-1 can possibly be assigned to n1, once minAvailable is satisfied"),
        "a-w-2": ("Unschedulable", "0/1 nodes are unavailable: 1 Insufficient pods."),
    }


def test_5_the_elastic_part_waits_for_its_queue_and_comes_by_itself(incremental):
    world = World(incremental=incremental).submit("a", Task(3, 1.5), minimum=2)

    assert world.bound() == ["a-w-0", "a-w-1"]
    assert world.phase("a") == "Running"
    assert world.waiting("a")["a-w-2"] == (
        "Unschedulable",
        "pod group is ready, 1 Pending, 2 Bound, 2 minAvailable; Pending: 1 Unschedulable",
    )
    world.succeed("a-w-0")
    assert "a-w-2" in world.bound()


def test_6_a_second_gang_waits_until_the_first_has_ended(incremental):
    world = World(incremental=incremental).submit("a", Task(2, 2)).submit("b", Task(2, 2))
    assert world.phases() == {"a": "Running", "b": "Pending"}

    world.run().succeed("a-w-0")
    assert world.phase("b") == "Pending"

    world.succeed("a-w-1")
    assert world.bound("b") == ["b-w-0", "b-w-1"]


def test_7_a_small_job_overtakes_a_large_one_while_room_is_left(incremental):
    world = World(incremental=incremental).submit("a", Task(2, 1.5)).run()

    world.submit("b", Task(2, 2)).submit("c", Task(1, 0.5))

    assert world.phases() == {"a": "Running", "b": "Pending", "c": "Running"}
    assert world.bound("c") == ["c-w-0"]


def test_7_with_no_room_left_it_waits_as_well(incremental):
    world = World(incremental=incremental).submit("a", Task(2, 2)).run()

    world.submit("b", Task(2, 2)).submit("c", Task(1, 0.5))

    assert world.phases() == {"a": "Running", "b": "Pending", "c": "Pending"}
    assert ("c", "Normal", SHORT_CPU) in world.events


def low_and_high(conf: Conf, incremental: bool, **low) -> World:
    world = World(conf=conf, incremental=incremental)
    world.priority_class("high", 1000)
    world.priority_class("low", 10)
    minimum = low.pop("minimum", 4)
    return world.submit("a", Task(4, pod=low), minimum=minimum, priority="low").run()


def test_8_priority_alone_evicts_nobody(incremental):
    world = low_and_high(Conf(), incremental).submit("b", Task(4), priority="high")

    assert world.phase("b") == "Pending"
    assert world.evicted == []


PREEMPT_ONLY = Conf(("allocate", "preempt", "backfill"), None)


def test_9_with_preemption_the_lower_job_makes_room(incremental):
    world = low_and_high(PREEMPT_ONLY, incremental).submit("b", Task(4), priority="high")

    assert world.phase("b") == "Inqueue"
    assert sorted(world.evicted) == [f"a-w-{index} preempt" for index in range(4)]
    world.reap()
    assert world.bound("b") == ["b-w-0", "b-w-1", "b-w-2", "b-w-3"]
    assert world.phase("b") == "Running"


def test_9_gang_preemptable_keeps_a_job_at_its_min_member(incremental):
    conf = replace(PREEMPT_ONLY, gang_preemptable=True)

    world = low_and_high(conf, incremental).submit("b", Task(4), priority="high")

    assert world.evicted == []
    assert world.phase("b") == "Inqueue"


def test_9a_elastic_pods_are_given_up_highest_index_first(incremental):
    world = low_and_high(Conf.preempting(), incremental, minimum=1).submit("b", Task(2), priority="high")

    assert world.evicted == ["a-w-3 preempt", "a-w-2 preempt"]
    assert world.condition("b", "Unschedulable") == (
        "2/2 tasks in gang unschedulable: pod group is not ready, 2 Pipelined, 2 minAvailable"
    )
    world.reap()
    assert world.bound("b") == ["b-w-0", "b-w-1"]
    waits = "pod group is ready, 1 minAvailable, 2 Pending, 2 Running; Pending: 2 Unschedulable"
    assert world.waiting("a") == dict.fromkeys(("a-w-2", "a-w-3"), ("Unschedulable", waits))


def test_10_pods_that_are_not_preemptable_stay(incremental):
    world = low_and_high(PREEMPT_ONLY, incremental, preemptable=False).submit("b", Task(4), priority="high")

    assert world.evicted == []
    assert world.bound("b") == []


@pytest.mark.parametrize("names", [("a", "b"), ("b", "a")])
def test_11_the_higher_priority_goes_first_whatever_the_names(incremental, names):
    world = World(incremental=incremental)
    world.priority_class("ten", 10)
    world.priority_class("five", 5)

    world.submit(names[0], Task(4), priority="five", settle=False)
    world.submit(names[1], Task(4), priority="ten")

    assert world.phases() == {names[0]: "Pending", names[1]: "Running"}


def test_12_nothing_starts_while_a_role_is_below_its_minimum(incremental):
    world = World(node(pods=2), incremental=incremental)

    world.submit("a", Task(1, 0.1, "ps", 1), Task(2, 0.1, "worker", 2), minimum=3)

    assert world.phase("a") == "Inqueue"
    assert world.bound() == []


def test_12_too_large_in_cpu_it_is_not_even_admitted(incremental):
    world = World(incremental=incremental).submit("a", Task(1, 1, "ps", 1), Task(2, 2, "worker", 2), minimum=3)

    assert world.phase("a") == "Pending"


def test_12_a_role_minimum_holds_although_the_sum_would_do(incremental):
    world = World(node(pods=2), incremental=incremental)

    world.submit("a", Task(3, 0.1, "ps", 1), Task(2, 0.1, "worker", 1), minimum=2)

    assert world.bound() == ["a-ps-0", "a-worker-0"]


def test_13_role_minima_above_min_member_are_ignored(incremental):
    world = World(node(pods=2), incremental=incremental)

    world.submit("a", Task(2, 0.1, "ps", 2), Task(2, 0.1, "worker", 2), minimum=2)

    assert len(world.bound()) == 2
    assert world.phase("a") == "Running"


def test_14_a_failed_member_makes_the_group_unknown(incremental):
    world = World(incremental=incremental).submit("a", Task(3)).run().fail("a-w-0")

    assert world.phase("a") == "Unknown"
    assert world.condition("a", "Unschedulable") == (
        "1/3 tasks in gang unschedulable: pod group is not ready, 1 Failed, 2 Running, 3 minAvailable"
    )


def test_15_a_lost_member_makes_the_group_unknown_and_pending_once_the_rest_ends(incremental):
    world = World(incremental=incremental).submit("a", Task(2), delayed=False).run()
    world.jobs.clear()

    world.delete("a-w-0").reap(come_back=False)
    assert world.phase("a") == "Unknown"

    world.succeed("a-w-1")
    assert world.phase("a") == "Inqueue"  # Pending, and admitted again at once


def test_16_a_terminating_member_changes_nothing_yet(incremental):
    world = World(incremental=incremental).submit("a", Task(2), delayed=False).run().delete("a-w-0")

    assert world.phase("a") == "Running"
    assert world.condition("a", "Unschedulable") is None


def test_17_too_few_pods_are_not_valid(incremental):
    world = World(incremental=incremental).submit("a", Task(1), delayed=False, minimum=2)

    assert world.phase("a") == "Inqueue"
    assert world.bound() == []
    assert world.condition("a", "Unschedulable") == (
        "2/1 tasks in gang unschedulable: pod group is not ready, 1 Pending, 2 minAvailable; Pending: 1 Unschedulable"
    )


@pytest.mark.parametrize("end", ["succeed", "fail"])
def test_18_a_group_whose_pods_have_all_ended_is_completed(incremental, end):
    world = World(incremental=incremental).submit("a", Task(2), delayed=False).run()

    getattr(world, end)("a-w-0", "a-w-1")

    assert world.phase("a") == "Completed"


def test_19_best_effort_pods_start_on_a_full_node(incremental):
    world = World(incremental=incremental).submit("full", Task(4)).run()

    world.submit("a", Task(3, requests={}))

    assert world.bound("a") == ["a-w-0", "a-w-1", "a-w-2"]
    assert world.phase("a") == "Running"


def test_20_gated_pods_claim_nothing(incremental):
    world = World(incremental=incremental)

    world.submit("a", Task(4, pod={"gated": True})).submit("b", Task(4))

    assert world.phases() == {"a": "Inqueue", "b": "Running"}
    assert world.condition("a", "Unschedulable") == (
        "4/4 tasks in gang unschedulable: pod group is not ready, 4 Pending, 4 minAvailable; Pending: 4 Unschedulable"
    )
    world.ungate("a")
    assert world.bound("a") == []
    world.succeed()
    assert len(world.bound("a")) == 4


def test_21_a_queues_capability_holds_although_the_node_has_room(incremental):
    world = World(incremental=incremental, queues=[Queue("q", capability={"cpu": 2000})])

    world.submit("a", Task(1, 2), queue="q").submit("b", Task(1), queue="q")

    assert world.phases() == {"a": "Running", "b": "Pending"}
    assert ("b", "Normal", SHORT_CPU) in world.events


@pytest.mark.parametrize(("wanted", "got"), [(4, (1, 3)), (2, (2, 2))], ids=["22", "23"])
def test_22_23_queues_share_by_weight_and_pass_on_what_they_do_not_want(incremental, wanted, got):
    world = World(incremental=incremental, queues=[Queue("q1"), Queue("q2", weight=3)])

    world.submit("a", Task(4), minimum=1, queue="q1", delayed=False, settle=False)
    world.submit("b", Task(wanted), minimum=1, queue="q2", delayed=False)

    assert (len(world.bound("a")), len(world.bound("b"))) == got


def test_25_a_queue_that_is_closing_starts_nothing_new(incremental):
    world = World(incremental=incremental, queues=[Queue("q")])
    world.submit("a", Task(1), queue="q", settle=False)
    world.one_pass()
    assert world.phase("a") == "Inqueue"

    world.put_queue(Queue("q", state="Closing"))
    assert world.bound() == []

    world.put_queue(Queue("q", state="Open"))
    assert world.bound() == ["a-w-0"]


def test_27_a_group_made_anew_stands_behind_older_ones_of_its_priority(incremental):
    world = World(incremental=incremental).submit("a", Task(4)).submit("b", Task(4)).run()

    world.remove_job("a")
    world.submit("a", Task(4))

    assert world.phases() == {"b": "Running", "a": "Pending"}


def test_28_a_group_of_no_queue_is_left_out(incremental):
    world = World(incremental=incremental).submit("a", Task(1), queue="nope")
    assert world.phase("a") == ""
    assert not [event for event in world.events if event[0] == "a"]

    world.put_queue(Queue("nope"))
    assert world.bound() == ["a-w-0"]


def test_29_a_group_that_wants_nothing_is_completed(incremental):
    world = World(incremental=incremental).submit("a", minimum=0)

    assert world.phase("a") == "Completed"


def test_30_room_of_a_terminating_pod_is_promised_and_taken_when_it_is_gone(incremental):
    world = World(incremental=incremental).submit("a", Task(2, 2)).run().delete("a-w-0", "a-w-1")
    del world.groups["ns/a"], world.jobs["a"]
    if world.state is not None:
        world.state.drop_group("ns/a")

    world.submit("b", Task(2, 2), min_resources=False)

    assert world.waiting("b")["b-w-0"] == (
        "Unschedulable",
        "Pod ns/b-w-0 can possibly be assigned to n1, once resource is released and minAvailable is satisfied",
    )
    world.reap()
    assert world.bound("b") == ["b-w-0", "b-w-1"]
