"""The verbs of the simulator, on a cluster without controllers."""

from __future__ import annotations

import types

import pytest

from unit.testing.stage import Stage, job, pod, podgroup, stage
from vcnb.clock import rfc3339
from vcnb.errors import InternalError, InvalidState, NotFound
from vcnb.resources.kinds import JOB, POD, PODGROUP
from vcnb.testing import Unsettled
from vcnb.testing.references import Target, job_target, pod_target

# References


def test_a_pod_is_its_name_handle_manifest_or_task_and_index():
    handle = types.SimpleNamespace(name="j-a-0", namespace="work")
    manifest = {"metadata": {"name": "j-a-0", "namespace": "work"}}

    assert pod_target("j-a-0") == Target("default", "j-a-0")
    assert pod_target(handle) == Target("work", "j-a-0")
    assert pod_target(manifest) == Target("work", "j-a-0")
    assert pod_target(("a", 0), "j", "work") == Target("work", "j-a-0")
    assert pod_target(("a", 0), types.SimpleNamespace(name="j", namespace="work")) == Target("work", "j-a-0")


def test_a_task_and_index_need_the_job():
    with pytest.raises(TypeError, match="needs its job"):
        pod_target(("a", 0))


def test_a_namespace_that_is_given_beats_the_handles():
    assert job_target(types.SimpleNamespace(name="j", namespace="one"), "two") == Target("two", "j")


def test_a_pod_that_does_not_exist_is_not_found_and_others_are_named():
    with stage() as made:
        made.create(pod("j-a-1"))

        with pytest.raises(NotFound, match=r"no pod 'j-a-0' in namespace 'default'; pods there: j-a-1"):
            made.sim.run("j-a-0")


# Reports


def test_run_binds_a_pod_without_a_node_and_then_reports():
    with stage() as made:
        made.create(pod())
        made.events()

        made.sim.run("j-a-0")

        phases = [
            (bool(event.object["spec"].get("nodeName")), event.object["status"]["phase"]) for event in made.events()
        ]
        assert phases == [(True, "Pending"), (True, "Running")]


def test_a_pod_with_a_node_keeps_it():
    with stage() as made:
        made.create(pod(node="n7"))

        made.sim.run("j-a-0")

        assert made.pod()["spec"]["nodeName"] == "n7"


def test_a_pod_is_bound_to_a_node_of_the_cluster():
    with stage() as made:
        made.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}})
        made.create(pod())

        made.sim.succeed("j-a-0")

        assert (made.pod()["spec"]["nodeName"], made.phase()) == ("n1", "Succeeded")


def test_pending_binds_nothing():
    with stage() as made:
        made.create(pod())

        made.sim.pending("j-a-0", "ImagePullBackOff")

        assert "nodeName" not in made.pod()["spec"]
        waiting = made.pod()["status"]["containerStatuses"][0]["state"]["waiting"]
        assert waiting == {"reason": "ImagePullBackOff"}


def test_a_report_that_changes_nothing_causes_no_event():
    with stage() as made:
        made.create(pod())
        made.sim.run("j-a-0")
        version = made.pod()["metadata"]["resourceVersion"]

        made.sim.advance(10)
        made.sim.run("j-a-0")

        assert made.pod()["metadata"]["resourceVersion"] == version


def test_fail_reports_the_exit_code():
    with stage() as made:
        made.create(pod())

        made.sim.fail("j-a-0", 137, "OOMKilled")

        status = made.pod()["status"]
        assert (status["phase"], status["containerStatuses"][0]["state"]["terminated"]["exitCode"]) == ("Failed", 137)


def test_a_terminating_pod_that_gets_a_final_phase_stays_until_reaped():
    with stage() as made:
        made.create(pod(node="n1"))
        made.sim.run("j-a-0")
        made.sim.delete("j-a-0")

        made.sim.fail("j-a-0")

        assert made.phase() == "Failed"
        made.sim.reap()
        assert made.phase() == "gone"


# Removal


@pytest.mark.parametrize(
    ("prepare", "left"),
    [
        (lambda _: None, "gone"),
        (lambda sim: sim.run("j-a-0"), "Running"),
        (lambda sim: sim.succeed("j-a-0"), "gone"),
        (lambda sim: sim.fail("j-a-0"), "gone"),
    ],
)
def test_only_a_bound_unfinished_pod_stays_when_it_is_deleted(prepare, left: str):
    with stage() as made:
        made.create(pod())
        prepare(made.sim)

        made.sim.delete("j-a-0")

        assert made.phase() == left
        assert left == "gone" or made.pod()["metadata"]["deletionTimestamp"]


def test_every_removal_is_two_changes():
    with stage() as made:
        made.create(pod())
        made.events()

        made.sim.delete("j-a-0")

        assert [event.type for event in made.events()] == ["MODIFIED", "DELETED"]


def test_reaping_lowers_the_grace_period_first():
    with stage() as made:
        made.create(pod(node="n1"))
        made.sim.delete("j-a-0")
        made.events()

        made.sim.reap()

        events = made.events()
        assert [event.type for event in events] == ["MODIFIED", "DELETED"]
        assert events[0].object["metadata"]["deletionGracePeriodSeconds"] == 0


def test_deleting_twice_changes_nothing():
    with stage() as made:
        made.create(pod(node="n1"))
        made.sim.delete("j-a-0")
        version = made.pod()["metadata"]["resourceVersion"]

        made.sim.advance(5)
        made.sim.delete("j-a-0")

        assert made.pod()["metadata"]["resourceVersion"] == version


def test_an_evicted_pod_is_gone_at_once():
    with stage() as made:
        made.create(pod(node="n1"))
        made.sim.run("j-a-0")

        made.sim.evict("j-a-0")

        assert made.phase() == "gone"


def test_reap_takes_all_that_terminate_and_nothing_else():
    with stage() as made:
        for name in ("j-a-0", "j-a-1", "j-a-2"):
            made.create(pod(name, node="n1"))
        made.sim.delete("j-a-0")
        made.sim.delete("j-a-2")

        made.sim.reap()

        assert [made.phase(f"j-a-{index}") for index in range(3)] == ["gone", "Pending", "gone"]


def test_reap_one_pod():
    with stage() as made:
        for name in ("j-a-0", "j-a-1"):
            made.create(pod(name, node="n1"))
            made.sim.delete(name)

        made.sim.reap(("a", 1), job="j")

        assert (made.phase("j-a-0"), made.phase("j-a-1")) == ("Pending", "gone")


def test_a_pod_that_is_not_terminating_cannot_be_reaped():
    with stage() as made:
        made.create(pod())

        with pytest.raises(InvalidState, match="not terminating"):
            made.sim.reap("j-a-0")


# Time


def test_advance_fires_timers_in_order_and_each_at_its_own_time():
    with stage() as made:
        start, fired = made.sim.now, []
        for delay in (5, 1, 3):
            made.engine.clock.call_later(delay, lambda delay=delay: fired.append((delay, made.sim.now - start)))

        made.sim.advance(3)

        assert fired == [(1, 1.0), (3, 3.0)]
        assert made.sim.now - start == 3.0


def test_the_cluster_settles_between_two_timers():
    with stage() as made:
        seen: list[str] = []

        def due(name: str) -> None:
            seen.append(name)
            made.bridge.loop.call_soon(lambda: seen.append(f"after {name}"))

        for delay, name in ((1, "a"), (2, "b"), (2, "c")):
            made.engine.clock.call_later(delay, lambda name=name: due(name))

        made.sim.advance(2)

        assert seen == ["a", "after a", "b", "c", "after b", "after c"]


def test_a_timer_set_on_the_way_fires_if_it_is_due():
    with stage() as made:
        fired: list[float] = []
        start = made.sim.now
        clock = made.engine.clock
        clock.call_later(1, lambda: clock.call_later(1, lambda: fired.append(made.sim.now - start)))

        made.sim.advance(5)

        assert fired == [2.0]


def test_time_does_not_run_backwards():
    with stage() as made, pytest.raises(ValueError, match="backwards"):
        made.sim.advance(-1)


def test_a_real_clock_cannot_be_moved():
    with stage(real_clock=True) as made, pytest.raises(InvalidState, match="virtual"):
        made.sim.advance(1)


def test_timers_without_end_are_told():
    with stage() as made:
        clock = made.engine.clock

        def again() -> None:
            made.bridge.loop.call_soon(lambda: clock.call_later(0, again))

        again()

        with pytest.raises(Unsettled):
            made.sim.settle()


def test_a_cluster_that_never_rests_is_told():
    with stage(patience=0.05) as made:
        loop, stopped = made.bridge.loop, []

        def again() -> None:
            if not stopped:
                loop.call_soon(again)

        loop.call_soon(again)

        with pytest.raises(Unsettled, match=r"still works after 0\.05 s"):
            made.sim.settle()
        stopped.append(True)


# Batches


def test_a_batch_arrives_together():
    with stage() as made:
        for name in ("j-a-0", "j-a-1"):
            made.create(pod(name, node="n1"))
        made.events()

        with made.sim.batch():
            made.sim.run("j-a-0")
            made.sim.fail("j-a-1")
            assert made.phase("j-a-0") == "Pending"

        assert [event.object["metadata"]["name"] for event in made.events()] == ["j-a-0", "j-a-1"]
        assert (made.phase("j-a-0"), made.phase("j-a-1")) == ("Running", "Failed")


def test_two_reports_of_one_pod_in_a_batch_come_in_order():
    with stage() as made:
        made.create(pod())

        with made.sim.batch():
            made.sim.run("j-a-0")
            made.sim.succeed("j-a-0")

        assert made.phase() == "Succeeded"


def test_a_missing_pod_is_told_inside_the_batch_and_drops_it():
    with stage() as made:
        made.create(pod())

        def two_reports() -> None:
            with made.sim.batch():
                made.sim.run("j-a-0")
                made.sim.run("nobody")

        with pytest.raises(NotFound):
            two_reports()

        assert made.phase() == "Pending"
        made.sim.run("j-a-0")
        assert made.phase() == "Running"


@pytest.mark.parametrize("verb", ["settle", "restart_controllers", "stop_controllers", "start_controllers", "auto"])
def test_what_moves_everything_makes_no_sense_in_a_batch(verb: str):
    with stage() as made, pytest.raises(InvalidState, match="batch"), made.sim.batch():
        getattr(made.sim, verb)()


# PodGroups


def _with_job(made: Stage, phase: str = "") -> str:
    uid = made.create(job())["metadata"]["uid"]
    made.create(podgroup(f"j-{uid}", phase))
    return f"j-{uid}"


@pytest.mark.parametrize(("phase", "then"), [("", "Inqueue"), ("Pending", "Inqueue"), ("Running", "Running")])
def test_admit_lets_a_waiting_podgroup_in(phase: str, then: str):
    with stage() as made:
        name = _with_job(made, phase)

        made.sim.admit("j")

        assert made.store.peek(PODGROUP, name, "default")["status"]["phase"] == then


def test_podgroup_sets_any_phase():
    with stage() as made:
        name = _with_job(made, "Inqueue")

        made.sim.podgroup("j", "Unknown")

        assert made.store.peek(PODGROUP, name, "default")["status"]["phase"] == "Unknown"


def test_a_podgroup_that_is_named_like_the_job_is_found():
    with stage() as made:
        made.create(job())
        made.create(podgroup("j"))

        made.sim.admit("j")

        assert made.store.peek(PODGROUP, "j", "default")["status"]["phase"] == "Inqueue"


@pytest.mark.parametrize(("with_job", "says"), [(True, "has no PodGroup"), (False, "there is no job")])
def test_a_missing_podgroup_is_not_found(with_job: bool, says: str):
    with stage() as made:
        if with_job:
            made.create(job())

        with pytest.raises(NotFound, match=says):
            made.sim.admit("j")


def test_who_schedules_is_the_engines_business():
    with stage() as made:
        made.sim.scheduler = "gang"

        assert (made.engine.scheduling, made.sim.scheduler) == ("gang", "gang")
        with pytest.raises(ValueError, match="'gang' or 'manual'"):
            made.sim.scheduler = "none"


# The kubelet that acts by itself


def test_auto_runs_what_is_there_and_what_comes():
    with stage() as made:
        made.create(pod("j-a-0"))

        made.sim.auto()
        made.create(pod("j-a-1"))

        assert (made.phase("j-a-0"), made.phase("j-a-1")) == ("Running", "Running")


def test_auto_takes_its_time():
    with stage() as made:
        made.sim.auto(run_after=2, succeed_after=5)
        made.create(pod())
        phases = []

        for seconds in (1, 1, 4, 1):
            made.sim.advance(seconds)
            phases.append(made.phase())

        assert phases == ["Pending", "Running", "Running", "Succeeded"]


def test_auto_waits_for_the_scheduler_where_there_is_one():
    with stage() as made:
        made.sim.scheduler = "gang"
        made.sim.auto()
        made.create(pod("j-a-0"))
        made.create(pod("j-a-1", node="n1"))

        assert (made.phase("j-a-0"), made.phase("j-a-1")) == ("Pending", "Running")


def test_auto_lets_deleted_pods_go():
    with stage() as made:
        made.sim.auto(succeed_after=60)
        made.create(pod(node="n1"))

        made.sim.delete("j-a-0")

        assert made.phase() == "gone"


def test_auto_does_not_end_a_pod_that_took_the_place_of_another():
    with stage() as made:
        made.sim.auto(succeed_after=10)
        made.create(pod(node="n1"))
        made.sim.advance(6)
        made.sim.evict("j-a-0")
        made.create(pod(node="n1"))

        made.sim.advance(6)

        assert made.phase() == "Running"


def test_auto_can_be_sent_away():
    with stage() as made:
        made.sim.auto(run_after=5)
        made.create(pod("j-a-0"))

        made.sim.auto(None)
        made.sim.advance(10)

        assert made.phase("j-a-0") == "Pending"


# Counting, faults, controllers


def test_created_counts_the_pods_of_the_job_that_is_there():
    with stage() as made:
        old = made.create(job())["metadata"]["uid"]
        for name in ("j-a-0", "j-a-1"):
            made.create(pod(name, job_uid=old))
        made.sim.evict("j-a-0")
        made.create(pod("j-a-0", job_uid=old))
        assert made.sim.created("j") == 3

        made.bridge.run(made.store.delete(JOB, "j", "default"))
        assert made.sim.created("j") == 3

        made.create(job())
        assert made.sim.created("j") == 0


def test_created_knows_pods_from_before_the_simulator():
    from vcnb.testing import Simulator

    with stage() as made:
        made.create(job())
        made.create(pod(job_uid=made.store.peek(JOB, "j", "default")["metadata"]["uid"]))
        made.sim.evict("j-a-0")

        late = Simulator(made.engine, made.bridge)
        late.settle()

        assert late.created("j") == 1
        made.bridge.run(late.close())


def test_faults_hit_the_controllers_calls_only():
    with stage() as made:
        made.sim.fail_next("create", kind="Pod", message="no room")

        made.create(pod())
        with pytest.raises(InternalError, match="no room"):
            made.bridge.run(made.engine.faults.create(pod("j-a-1")))
        made.bridge.run(made.engine.faults.create(pod("j-a-1")))

        made.sim.fail_next("delete", times=None)
        made.sim.clear_faults()
        made.bridge.run(made.engine.faults.delete(POD, "j-a-1", "default"))


def test_controllers_are_started_and_stopped_by_the_engine():
    with stage() as made:
        made.sim.restart_controllers()
        made.sim.stop_controllers()
        made.sim.start_controllers()

        assert made.engine.told == ["stop", "start", "stop", "start"]


def test_garbage_collection_can_be_switched_off():
    with stage() as made:
        made.sim.collect_garbage = False

        assert (made.engine.collect_garbage, made.sim.collect_garbage) == (False, False)


def test_reports_carry_the_virtual_time():
    with stage() as made:
        made.create(pod())
        made.sim.advance(90)

        made.sim.run("j-a-0")

        started = made.pod()["status"]["containerStatuses"][0]["state"]["running"]["startedAt"]
        assert started == rfc3339(made.sim.now) == "2026-01-01T00:01:30Z"
