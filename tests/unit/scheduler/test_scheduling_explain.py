"""Why a group waits, in words and numbers: one golden text for each cause."""

from __future__ import annotations

from unit.scheduler.scheduling_world import Task, World, node
from vcnb.local.scheduler import Code, explain
from vcnb.local.scheduler.values import Queue


def facts(world: World, job: str):
    return explain(world.groups[f"ns/{job}"], world.snapshot(), world.conf)


def texts(world: World, job: str) -> list[str]:
    return [fact.text for fact in facts(world, job)]


def test_nothing_to_say_of_a_group_that_runs():
    assert texts(World().submit("a", Task(2)), "a") == []


def test_more_than_the_machine_has_is_never():
    world = World().submit("a", Task(5))

    (fact,) = facts(world, "a")

    assert fact.code is Code.NEVER
    assert fact.never
    assert fact.text == "Unschedulable: never. It needs 5 cpu; the whole machine has 4 cpu."
    assert (fact.need["cpu"], fact.free["cpu"]) == (5000, 4000)


def test_never_names_every_resource_that_is_short():
    world = World().submit("a", Task(3, requests={"cpu": 2, "memory": "3Gi", "nvidia.com/gpu": 1}))

    need, have = "6 cpu, 9Gi memory and 3 nvidia.com/gpu", "4 cpu, 8Gi memory and 0 nvidia.com/gpu"
    assert texts(world, "a") == [f"Unschedulable: never. It needs {need}; the whole machine has {have}."]


def test_more_than_the_queue_may_ever_hold_is_never():
    world = World(queues=[Queue("q", capability={"cpu": 2000})]).submit("a", Task(3), queue="q")

    (fact,) = facts(world, "a")

    assert fact.never
    assert fact.text == "Unschedulable: never. It needs 3 cpu; queue 'q' may hold at most 2 cpu."
    assert fact.share["cpu"] == 2000


def test_a_gang_of_more_pods_than_places_is_never():
    world = World(node(pods=2)).submit("a", Task(3, 0.1))

    assert texts(world, "a") == ["Unschedulable: never. The job needs 3 pods at once; all nodes together hold 2."]


def test_a_pod_larger_than_every_node_is_never():
    world = World(node("n1", 2), node("n2", 2)).submit("a", Task(1, 3))

    assert texts(world, "a") == ["Unschedulable: never. Pod a-w-0: It needs 3 cpu; the largest node has 2 cpu."]


def test_a_full_machine_names_need_free_share_and_who_holds_it():
    world = World().submit("a", Task(4)).submit("b", Task(2))

    (fact,) = facts(world, "b")

    assert fact.text == "It needs 2 cpu; the machine has free 0 cpu. Queue 'default' may hold 4 cpu. Held by a."
    assert (fact.code, fact.jobs) == (Code.MACHINE_FULL, ("a",))
    assert (fact.need["cpu"], fact.free["cpu"], fact.share["cpu"]) == (2000, 0, 4000)


def test_a_full_queue_names_need_free_share_and_who_holds_it():
    world = World(queues=[Queue("q", capability={"cpu": 3000})])
    world.submit("a", Task(2), queue="q").submit("b", Task(2), queue="q")

    (fact,) = facts(world, "b")

    assert fact.text == "It needs 2 cpu; queue 'q', which may hold 3 cpu, has free 1 cpu. Held by a."
    assert (fact.code, fact.jobs) == (Code.QUEUE_FULL, ("a",))
    assert (fact.need["cpu"], fact.free["cpu"], fact.share["cpu"]) == (2000, 1000, 3000)


def test_another_queue_may_fill_the_machine():
    world = World(queues=[Queue("q")]).submit("a", Task(3)).submit("b", Task(2), queue="q")

    (fact,) = facts(world, "b")

    assert fact.code is Code.MACHINE_FULL
    assert fact.text == "It needs 2 cpu; the machine has free 1 cpu. Queue 'q' may hold 4 cpu. Held by a."


def test_jobs_that_go_first_are_named():
    world = World().submit("run", Task(4))
    for name in ("a", "b"):
        world.submit(name, Task(4))

    assert texts(world, "b") == [
        "It needs 4 cpu; the machine has free 0 cpu. Queue 'default' may hold 4 cpu. Held by run.",
        "1 job of queue 'default' goes first: a.",
    ]


def test_a_job_that_can_never_run_stands_in_nobodys_way():
    world = World().submit("run", Task(4)).submit("huge", Task(9)).submit("b", Task(4))

    assert [fact.code for fact in facts(world, "b")] == [Code.MACHINE_FULL]


def test_many_jobs_are_counted():
    world = World().submit("run", Task(4))
    for number in range(9):
        world.submit(f"j{number}", Task(4))

    assert texts(world, "j8")[1] == "8 jobs of queue 'default' go first: j0, j1, j2, j3, j4 and 3 more."


def test_a_queue_that_does_not_exist():
    world = World().submit("a", Task(1), queue="nope")

    assert texts(world, "a") == ["Queue 'nope' does not exist: create it, or submit to another queue."]


def test_a_queue_that_is_not_open():
    world = World(queues=[Queue("q", state="Closed")]).submit("a", Task(1), queue="q")

    assert texts(world, "a") == ["Queue 'q' is Closed: nothing new starts in it until somebody opens it again."]


def test_min_available_above_the_pods_that_exist():
    world = World().submit("a", Task(1), minimum=3, delayed=False)

    assert texts(world, "a") == ["The gang needs 3 pods; only 1 exist that run or could run."]


def test_no_node_takes_the_pod():
    world = World(node(unschedulable=True)).submit("a", Task(1))
    selected = World().submit("a", Task(1, selector={"gpu": "yes"}))

    assert texts(world, "a") == ["No node takes pod a-w-0: node(s) were unschedulable."]
    assert texts(selected, "a") == ["No node takes pod a-w-0: node(s) didn't match Pod's node affinity/selector."]


def test_gated_pods():
    world = World().submit("a", Task(2, pod={"gated": True}))

    assert texts(world, "a") == ["2 pods have scheduling gates: they are not tried until these are removed."]


def test_pods_that_find_no_room_although_the_job_was_admitted():
    world = World(node(pods=3)).submit("a", Task(2, 0.1)).submit("b", Task(2, 0.1))

    (fact,) = facts(world, "b")

    assert fact.code is Code.NO_ROOM
    assert fact.text == "2 pods still wait for room: all nodes together have 1 places left, 2 are needed."


def test_the_elastic_part_of_a_job_that_runs():
    world = World().submit("a", Task(3, 1.5), minimum=2)

    (fact,) = facts(world, "a")

    assert fact.code is Code.WAITS_FOR_REST
    assert fact.text == "1 pod still waits for room: It needs 1.5 cpu; the machine has free 1 cpu."


def test_the_fair_share_of_a_queue():
    """The pods of q2 are gated: they want their share all the same."""
    world = World(queues=[Queue("q1"), Queue("q2")])
    world.submit("b", Task(4, pod={"gated": True}), minimum=1, queue="q2", delayed=False, settle=False)
    world.submit("a", Task(4), minimum=1, queue="q1", delayed=False)

    (fact,) = facts(world, "a")

    assert fact.code is Code.QUEUE_FULL
    share = "The share of queue 'q1' is 2 cpu while other queues want more, too."
    assert fact.text == f"{share} It needs 1 cpu; queue 'q1' has left 0 cpu."


def test_a_group_whose_flow_gang_is_not_complete():
    world = World().submit("a", Task(1), gang="f.g", gang_size=3)

    assert texts(world, "a") == ["It starts together with 2 jobs of gang 'f.g' still to be made."]


def test_a_flow_gang_needs_the_room_of_all_its_groups():
    world = World().submit("run", Task(3))
    world.submit("a", Task(1), gang="f.g", gang_size=2).submit("b", Task(2), gang="f.g", gang_size=2)

    assert facts(world, "a")[0].need["cpu"] == 3000
