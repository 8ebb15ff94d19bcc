"""Single rules of the scheduler that no scenario shows: votes, shares, order, predicates, gangs of a flow, choices."""

from __future__ import annotations

import pytest

from unit.scheduler.scheduling_world import NS, Task, World, node
from vcnb.local.scheduler import Conf, Snapshot, schedule, shares
from vcnb.local.scheduler.amounts import compared, in_words
from vcnb.local.scheduler.parts import QueueState
from vcnb.local.scheduler.predicates import refusal
from vcnb.local.scheduler.reading import read_node, read_pod
from vcnb.local.scheduler.session import Session
from vcnb.local.scheduler.values import Condition, Demand, GroupStatus, Node, Pod, PodGroup, Queue, demand
from vcnb.local.scheduler.waiting import WaitingLine

# -- the vote at admission


@pytest.mark.parametrize(
    ("resources", "left"),
    [
        ({"cpu": 1, "memory": 2, "nvidia.com/gpu": 3}, {"cpu": 1, "memory": 2, "nvidia.com/gpu": 3}),
        ({"pods": 3, "count/pods": 3, "requests.cpu": 3, "limits.memory": 3}, {}),
    ],
)
def test_only_resources_are_compared(resources, left):
    assert compared(resources) == left


def test_a_group_without_min_resources_is_admitted_without_asking():
    world = World(queues=[Queue("q", state="Closed")]).submit("a", Task(9, 9), queue="q", min_resources=False)

    assert world.phase("a") == "Inqueue"
    assert world.bound() == []


def test_a_closed_queue_turns_away_without_an_event():
    world = World(queues=[Queue("q", state="Closed")]).submit("a", Task(1), queue="q")

    assert world.phase("a") == "Pending"
    assert world.events == []


def test_the_factor_bounds_the_sum_over_queues():
    """4 x 1.2 = 4.8: two queues are promised more than the machine together, not a third."""
    world = World(queues=[Queue("p"), Queue("q"), Queue("r")])
    for queue, cpu in (("p", 4), ("q", 0.8), ("r", 0.1)):
        world.submit(queue, Task(1, cpu, pod={"gated": False}), queue=queue, settle=False)
    world.one_pass()

    assert world.phases() == {"p": "Inqueue", "q": "Inqueue", "r": "Pending"}


def test_without_the_overcommit_plugin_only_queues_bound():
    world = World(conf=Conf(overcommit=None), queues=[Queue("p"), Queue("q")])
    for queue in ("p", "q"):
        world.submit(queue, Task(1, 4), queue=queue, settle=False)
    world.one_pass()

    assert world.phases() == {"p": "Inqueue", "q": "Inqueue"}


def test_a_factor_below_one_is_replaced():
    assert Conf(overcommit=0.5).overcommit == 1.2


def test_what_terminating_pods_hold_is_used():
    """Overcommit counts every pod on the nodes; the queue does not count terminating ones."""
    world = World().submit("a", Task(4)).run()
    world.delete("a-w-0", "a-w-1", "a-w-2", "a-w-3")
    del world.groups["ns/a"]

    world.submit("b", Task(1))

    assert ("b", "Normal", "resource in cluster is overused: overused cpu") in world.events


def test_the_unused_rest_of_a_running_group_stays_promised():
    """A group of minMember 1 was promised 3 cpu; its only pod uses 1."""
    world = World()
    world.submit("a", Task(1), min_resources=False, settle=False)
    group = world.groups["ns/a"]
    world.groups["ns/a"] = PodGroup(
        **{f: getattr(group, f) for f in group.__slots__} | {"min_resources": {"cpu": 3000}}
    )
    world.settle()
    assert world.phase("a") == "Running"

    world.submit("b", Task(1, 1.5))
    assert world.phase("b") == "Pending"
    world.submit("c", Task(1))
    assert world.phase("c") == "Running"


def test_what_is_guaranteed_to_one_queue_is_kept_from_the_others():
    world = World(queues=[Queue("g", guarantee={"cpu": 2000})])

    world.submit("a", Task(3)).submit("b", Task(2)).submit("c", Task(2), queue="g")

    assert world.phases() == {"a": "Pending", "b": "Running", "c": "Running"}


# -- shares of queues


def queue_state(request, **spec):
    state = QueueState()
    state.queue = Queue("", **spec)
    state.request = request
    return state


@pytest.mark.parametrize(
    ("queues", "expected"),
    [
        ({"a": (1, 9), "b": (3, 9)}, {"a": 1, "b": 3}),
        ({"a": (1, 9), "b": (3, 2)}, {"a": 2, "b": 2}),
        ({"a": (1, 1), "b": (1, 1)}, {"a": 1, "b": 1}),
        ({"a": (1, 0), "b": (1, 9)}, {"a": 0, "b": 4}),
        ({"a": (1, 9), "b": (1, 9), "c": (2, 1)}, {"a": 1.5, "b": 1.5, "c": 1}),
    ],
)
def test_water_filling(queues, expected):
    states = {name: queue_state({"cpu": want * 1000}, weight=weight) for name, (weight, want) in queues.items()}

    fair = shares.deserved(states, {"cpu": 4000}, {})

    assert {name: share["cpu"] / 1000 for name, share in fair.items()} == pytest.approx(expected, abs=0.002)


def test_a_share_is_capped_and_raised():
    states = {
        "capped": queue_state({"cpu": 9000}, capability={"cpu": 1000}),
        "guaranteed": queue_state({"cpu": 0}, guarantee={"cpu": 2000}),
        "rest": queue_state({"cpu": 9000}),
    }

    fair = shares.deserved(states, {"cpu": 8000}, {"cpu": 2000})

    assert {name: share["cpu"] for name, share in fair.items()} == {"capped": 1000, "guaranteed": 2000, "rest": 5000}


def test_the_queue_of_higher_priority_then_of_smaller_share_goes_first():
    world = World(node(cpu=2), queues=[Queue("p"), Queue("q", priority=5)])
    world.submit("a", Task(2), queue="p", settle=False)

    world.submit("b", Task(2), queue="q")

    assert world.phases() == {"a": "Pending", "b": "Running"}


# -- order


def test_pods_go_by_priority_then_index_then_age():
    world = World(node(pods=3))

    world.submit(
        "a", Task(2, 0.1, "x"), Task(2, 0.1, "y"), Task(1, 0.1, "z", pod={"priority": 9}), minimum=1, delayed=False
    )

    assert world.bound() == ["a-x-0", "a-y-0", "a-z-0"]


def test_a_gang_goes_before_the_elastic_part_of_an_older_job():
    world = World(node(cpu=8, pods=4))
    world.submit("a", Task(6, 0.1), minimum=1, delayed=False, settle=False)

    world.submit("b", Task(2, 0.1), delayed=False)

    assert world.bound("b") == ["b-w-0", "b-w-1"]
    assert len(world.bound("a")) == 2


def test_what_an_attempt_took_is_free_for_the_next_group():
    world = World(node(pods=3))
    world.submit("a", Task(4, 0.1), delayed=False, settle=False)

    world.submit("b", Task(3, 0.1), delayed=False)

    assert world.bound("a") == []
    assert len(world.bound("b")) == 3


# -- nodes


def test_several_nodes_are_filled_one_after_the_other():
    world = World(node("n1", 2), node("n2", 2)).submit("a", Task(3))

    nodes = [pod.node for pod in sorted(world.pods.values())]
    assert sorted(nodes) == ["n1", "n1", "n2"]


def test_a_gang_that_fits_no_node_alone_but_the_sum_is_admitted_and_waits():
    world = World(node("n1", 2), node("n2", 2)).submit("a", Task(1, 3))

    assert world.phase("a") == "Inqueue"
    assert world.waiting("a")["a-w-0"] == ("Unschedulable", "0/2 nodes are unavailable: 2 Insufficient cpu.")


def test_a_fit_error_counts_reasons_over_nodes():
    world = World(node("n1", 1), node("n2", 1, "1Gi"), node("n3", unschedulable=True))

    world.submit("a", Task(1, requests={"cpu": 2, "memory": "2Gi"}))

    message = "0/3 nodes are unavailable: 1 Insufficient memory, 1 node(s) were unschedulable, 2 Insufficient cpu."
    assert world.waiting("a")["a-w-0"] == ("Unschedulable", message)


def test_without_nodes_nothing_is_bound():
    snapshot = Snapshot(
        groups=(PodGroup(NS, "a", min_member=1),), pods=(Pod(NS, "p", "u", demand("w", {"cpu": 1}), "ns/a"),)
    )

    outcome = schedule(snapshot)

    assert outcome.binds == []
    assert outcome.pods[0].reason == "Unschedulable"


def test_a_node_that_is_not_ready_offers_nothing():
    world = World(node(ready=False)).submit("a", Task(1, requests={}))

    assert world.waiting("a")["a-w-0"] == ("Unschedulable", "0/1 nodes are unavailable: 1 node(s) were not ready.")


TAINT = {"key": "k", "value": "v", "effect": "NoSchedule"}


@pytest.mark.parametrize(
    ("toleration", "tolerated"),
    [
        ({"key": "k", "operator": "Exists"}, True),
        ({"operator": "Exists"}, True),
        ({"key": "k", "value": "v"}, True),
        ({"key": "k", "value": "v", "effect": "NoSchedule"}, True),
        ({"key": "k", "value": "other"}, False),
        ({"key": "other", "operator": "Exists"}, False),
        ({"key": "k", "operator": "Exists", "effect": "NoExecute"}, False),
        ({}, False),
    ],
)
def test_tolerations(toleration, tolerated):
    found = refusal(Node("n", {}, taints=(TAINT,)), demand("w", {}, tolerations=(toleration,)))

    assert found == (None if tolerated else "node(s) had untolerated taint(s)")


def test_a_preference_is_no_taint_and_an_unschedulable_node_can_be_tolerated():
    preferred = {**TAINT, "effect": "PreferNoSchedule"}
    toleration = {"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}

    assert refusal(Node("n", {}, taints=(preferred,)), demand("w", {})) is None
    assert refusal(Node("n", {}, unschedulable=True), demand("w", {}, tolerations=(toleration,))) is None


def affine(*expressions, fields=()) -> Demand:
    term = {"matchExpressions": list(expressions), "matchFields": list(fields)}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    return demand("w", {}, affinity={"nodeAffinity": required})


@pytest.mark.parametrize(
    ("expression", "matches"),
    [
        ({"key": "zone", "operator": "In", "values": ["a", "b"]}, True),
        ({"key": "zone", "operator": "In", "values": ["b"]}, False),
        ({"key": "zone", "operator": "NotIn", "values": ["a"]}, False),
        ({"key": "other", "operator": "NotIn", "values": ["a"]}, True),
        ({"key": "zone", "operator": "Exists"}, True),
        ({"key": "other", "operator": "Exists"}, False),
        ({"key": "other", "operator": "DoesNotExist"}, True),
        ({"key": "size", "operator": "Gt", "values": ["4"]}, True),
        ({"key": "size", "operator": "Lt", "values": ["4"]}, False),
        ({"key": "zone", "operator": "Gt", "values": ["4"]}, False),
        ({"key": "zone", "operator": "Like", "values": ["a"]}, False),
    ],
)
def test_node_affinity(expression, matches):
    found = refusal(Node("n", {}, labels={"zone": "a", "size": "5"}), affine(expression))

    assert (found is None) is matches


def test_node_affinity_by_name_and_an_empty_term():
    by_name = affine(fields=[{"key": "metadata.name", "operator": "In", "values": ["n"]}])

    assert refusal(Node("n", {}), by_name) is None
    assert refusal(Node("m", {}), by_name) is not None
    assert refusal(Node("n", {}), affine()) is not None


# -- the stop rule of an attempt


def test_pods_of_a_role_that_failed_are_not_tried_again():
    world = World(node(cpu=8))
    selector = {"gpu": "yes"}

    world.submit("a", Task(2, 1, "x", 0, selector=selector), Task(2, 1, "y", 0), minimum=2)

    no_match = "0/1 nodes are unavailable: 1 node(s) didn't match Pod's node affinity/selector."
    skipped = "Task a-x-1 with role spec x has already predicated failed, skip"
    assert world.bound() == ["a-y-0", "a-y-1"]
    assert world.waiting() == {"a-x-0": ("Unschedulable", no_match), "a-x-1": ("Unschedulable", skipped)}


def test_an_attempt_that_cannot_succeed_any_more_stops():
    """Role y is above its minimum only without a failure of x: its pods are not looked at and get the histogram."""
    world = World(node(cpu=8))

    world.submit("a", Task(2, 1, "x", 1, selector={"gpu": "yes"}), Task(2, 1, "y", 1), minimum=2)

    assert world.bound() == []
    failed = "Origin reason is a-x-0: 0/1 nodes are unavailable: 1 node(s) didn't match Pod's node affinity/selector."
    text = f"pod group is not ready, 2 minAvailable, 4 Pending; Pending: 4 Unschedulable. {failed}"
    assert world.waiting()["a-y-1"] == ("Unschedulable", text)


# -- preemption


def test_a_pod_that_never_preempts_evicts_nobody():
    world = World(conf=Conf.preempting())
    world.priority_class("high", 10)
    world.submit("a", Task(4), minimum=1).run()

    world.submit("b", Task(1, pod={"never_preempts": True}), priority="high")

    assert world.evicted == []


def test_system_pods_are_never_victims():
    world = World(conf=Conf.preempting())
    world.priority_class("high", 10)
    world.submit("a", Task(4, pod={"critical": True}), minimum=1).run()

    world.submit("b", Task(1), priority="high")

    assert world.evicted == []


def test_a_gang_that_could_not_run_anyhow_evicts_nobody():
    """Two of four pods may fall, three are needed."""
    world = World(conf=Conf(("allocate", "preempt", "backfill"), None))
    world.priority_class("high", 10)
    world.submit("a", Task(2), minimum=1).submit("c", Task(2), minimum=1, priority="high").run()

    world.submit("b", Task(3), priority="high")

    assert world.evicted == []
    assert world.phase("b") == "Inqueue"


def test_the_job_of_lowest_priority_falls_first_then_the_youngest():
    world = World(conf=Conf.preempting())
    for name, value in (("high", 10), ("mid", 5)):
        world.priority_class(name, value)
    world.submit("mid", Task(2), minimum=1, priority="mid").submit("old", Task(1), minimum=0)
    world.submit("young", Task(1), minimum=0).run()

    world.submit("b", Task(1), priority="high")

    assert world.evicted == ["young-w-0 preempt"]


def test_a_pod_of_higher_priority_takes_the_place_of_one_in_its_own_job():
    world = World(conf=Conf(("enqueue", "allocate", "preempt", "backfill"), None))
    world.submit("a", Task(4, name="lo", minimum=1), minimum=1).run()

    world.make_pod("a", Task(1, name="hi", pod={"priority": 9}), 0)
    world.settle()

    assert world.evicted == ["a-lo-3 preempt"]


def test_reclaim_takes_from_a_queue_above_its_share_and_only_for_the_gang():
    world = World(conf=Conf.preempting(), queues=[Queue("q1"), Queue("q2")])
    world.submit("a", Task(4), minimum=1, queue="q1").run()

    world.submit("b", Task(2), minimum=1, queue="q2")

    assert world.evicted == ["a-w-3 reclaim"]
    world.reap()
    assert world.bound("b") == ["b-w-0"]


@pytest.mark.parametrize("spec", [{"reclaimable": False}, {"weight": 3}], ids=["not reclaimable", "within its share"])
def test_reclaim_leaves_a_queue_alone(spec):
    world = World(conf=Conf.preempting(), queues=[Queue("q1", **spec), Queue("q2")])
    world.submit("a", Task(3), minimum=1, queue="q1").submit("other", Task(1), queue="q2").run()

    world.submit("b", Task(1), queue="q2", minimum=1)

    assert world.evicted == []


# -- gangs of a flow


def test_a_flow_gang_is_admitted_and_bound_together_or_not_at_all():
    world = World()
    world.submit("a", Task(2), gang="f.g", gang_size=2)
    assert world.phase("a") == "Pending"

    world.submit("b", Task(2), gang="f.g", gang_size=2)
    assert world.phases() == {"a": "Running", "b": "Running"}


def test_a_flow_gang_larger_than_the_machine_is_not_admitted_in_part():
    world = World().submit("a", Task(2), gang="f.g", gang_size=2).submit("b", Task(3), gang="f.g", gang_size=2)

    assert world.phases() == {"a": "Pending", "b": "Pending"}


def test_a_flow_gang_of_which_one_group_finds_no_room_is_undone():
    world = World(node(pods=3)).submit("a", Task(2, 0.1), gang="f.g", gang_size=2)
    world.submit("b", Task(2, 0.1), gang="f.g", gang_size=2)

    assert world.phases() == {"a": "Inqueue", "b": "Inqueue"}
    assert world.bound() == []

    world.put_node(node(pods=4))
    assert len(world.bound()) == 4


def test_best_effort_groups_of_a_flow_gang_wait_for_each_other():
    world = World(node(cpu=1)).submit("a", Task(1, requests={}), gang="f.g", gang_size=2)
    world.submit("b", Task(1, 1, selector={"gpu": "yes"}), gang="f.g", gang_size=2)

    assert world.bound() == []


def test_a_group_made_anew_for_a_retry_schedules_alone():
    world = World().submit("a", Task(1), gang="f.g", gang_size=2).submit("b", Task(1), gang="f.g", gang_size=2)
    world.run().remove_job("a")

    world.submit("a", Task(1), gang="f.g", gang_size=2)

    assert world.bound("a") == ["a-w-0"]


# -- conditions


def test_the_newest_condition_tells_the_present_also_when_no_time_passes():
    """Both stay True; the clock of a simulated cluster may stand still."""
    scheduled = Condition("Scheduled", "tasks in gang are ready to be scheduled", "", 5.0)
    group = PodGroup(NS, "a", min_member=2, status=GroupStatus("Running", 2, conditions=(scheduled,)))
    wanted = demand("w", {"cpu": 1000})
    pods = (
        Pod(NS, "a-w-0", "0", wanted, "ns/a", "Failed", "n1"),
        Pod(NS, "a-w-1", "1", wanted, "ns/a", "Running", "n1"),
    )

    (change,) = schedule(Snapshot(5.0, (node(),), pods, (group,))).groups

    assert change.status.phase == "Unknown"
    assert max(change.status.conditions, key=lambda found: found.time).type == "Unschedulable"


def test_a_status_that_differs_only_in_times_is_the_same():
    one = GroupStatus("Running", 1, 0, 0, (Condition("Scheduled", "r", "", 1.0, "x"),))
    other = GroupStatus("Running", 1, 0, 0, (Condition("Scheduled", "r", "", 2.0, "y"),))

    assert one.same_as(other)
    assert not one.same_as(other._replace(running=2))


# -- reading objects


def test_a_pod_is_read():
    obj = {
        "metadata": {
            "name": "a-w-3",
            "namespace": "ns",
            "uid": "u",
            "creationTimestamp": "2026-01-01T00:00:01.5Z",
            "annotations": {
                "scheduling.k8s.io/group-name": "a",
                "volcano.sh/task-spec": "w",
                "volcano.sh/task-index": "3",
                "volcano.sh/task-priority": "7",
                "volcano.sh/preemptable": "false",
            },
        },
        "spec": {
            "schedulerName": "volcano",
            "priority": 5,
            "preemptionPolicy": "Never",
            "priorityClassName": "system-node-critical",
            "containers": [
                {"name": "c", "resources": {"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "250m"}}}
            ],
        },
        "status": {"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False", "reason": "x"}]},
    }

    pod = read_pod(obj, "volcano", {})

    assert (pod.group, pod.demand.role, pod.ordinal, pod.priority) == ("ns/a", "w", 3, 7)
    assert pod.demand.request == {"cpu": 250, "memory": 2**30 * 1000}
    assert (pod.preemptable, pod.never_preempts, pod.critical) == (False, True, True)
    assert pod.condition == ("x", "")
    assert read_pod(obj, "other", {}).group == ""


@pytest.mark.parametrize(
    ("phase", "terminating", "node_name", "status"),
    [
        ("Pending", False, "", "Pending"),
        ("Pending", False, "n1", "Bound"),
        ("Pending", True, "n1", "Releasing"),
        ("Running", False, "n1", "Running"),
        ("Running", True, "n1", "Releasing"),
        ("Succeeded", True, "n1", "Succeeded"),
        ("Failed", False, "n1", "Failed"),
        ("Unknown", False, "n1", "Unknown"),
    ],
)
def test_the_status_of_a_pod(phase, terminating, node_name, status):
    meta = {"name": "p", "namespace": "ns"} | ({"deletionTimestamp": "2026-01-01T00:00:00Z"} if terminating else {})

    pod = read_pod({"metadata": meta, "spec": {"nodeName": node_name}, "status": {"phase": phase}}, "volcano", {})

    assert pod.status == status


def test_a_node_is_read():
    obj = {
        "metadata": {"name": "n1"},
        "spec": {},
        "status": {"capacity": {"cpu": "2"}, "conditions": [{"type": "Ready", "status": "False"}]},
    }

    assert read_node(obj) == Node("n1", {"cpu": 2000}, pods=110, ready=False)


# -- waiting lines


def test_rows_are_walked_in_order_and_left_once_turned_away():
    line = WaitingLine()
    for number, (key, row) in enumerate([("a", "small"), ("b", "large"), ("c", "small"), ("d", "large")]):
        line.put(key, "q", row, (0, 0, float(number), number))
    line.put("z", "q", "small", (-5, 0, 9.0, 9))

    walk = line.walk("q", {"c"}, all_rows=True, every_group=False)

    assert walk.pop()[0] == "z"
    assert walk.pop()[0] == "a"
    walk.turn_away("small")
    assert walk.pop()[0] == "b"
    assert walk.pop()[0] == "c"  # it is news: it is met although its row was left
    assert walk.pop()[0] == "d"
    assert walk.pop() is None


def test_a_group_stands_in_one_place():
    line = WaitingLine()
    line.put("a", "q", "row", (0, 0, 1.0, 1))
    line.put("a", "r", "row", (0, 0, 1.0, 1))

    assert line.queues() == ["r"]
    line.drop("a")
    assert len(line) == 0
    assert line.queues() == []


def test_equal_jobs_that_wait_are_tried_once():
    world = World(incremental=True).submit("run", Task(4)).run()
    for number in range(100):
        world.submit(f"j{number:04}", Task(3), settle=False)
    world.settle()
    world.state.freed = True

    session = Session(world.state, world.conf, world.now)
    from vcnb.local.scheduler.actions import ACTIONS

    for action in world.conf.actions:
        ACTIONS[action](session)

    assert list(session.candidates) == ["ns/j0000"]


@pytest.mark.parametrize(
    ("name", "amount", "words"),
    [
        ("cpu", 1500, "1.5 cpu"),
        ("cpu", 4000, "4 cpu"),
        ("memory", 3 * 2**30 * 1000, "3Gi memory"),
        ("x/gpu", 2000, "2 x/gpu"),
    ],
)
def test_amounts_in_words(name, amount, words):
    assert in_words(name, amount) == words
