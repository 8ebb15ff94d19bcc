"""Time to live of finished jobs (reference section 10)."""

from __future__ import annotations

import pytest

from unit.job.objects import a_job
from vcnb.clock import VirtualClock
from vcnb.controllers.ttl import expires_at
from vcnb.resources.kinds import JOB


def finished(phase: str = "Completed", ttl: int | None = 3, at: str = "2026-01-01T00:00:00Z"):
    spec = {} if ttl is None else {"ttlSecondsAfterFinished": ttl}
    state = {"phase": phase} | ({"lastTransitionTime": at} if at else {})
    return a_job("w*1", status={"state": state}, **spec)


@pytest.mark.parametrize("phase", ["Completed", "Failed", "Terminated"])
def test_a_finished_job_expires(phase: str):
    assert expires_at(finished(phase)) == VirtualClock().time() + 3
    assert expires_at(finished(phase, 0)) == VirtualClock().time()


@pytest.mark.parametrize("job", [finished("Running"), finished("Aborted"), finished(ttl=None), a_job("w*1")])
def test_other_jobs_do_not(job):
    assert expires_at(job) is None


def test_a_job_that_is_being_deleted_already_does_not():
    job = finished()
    job["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"

    assert expires_at(job) is None


def test_a_job_that_does_not_say_when_it_finished():
    with pytest.raises(ValueError, match="has finished, but not when"):
        expires_at(finished(at=""))


def scene_of(ttl: int):
    from scenario.scene import Scene

    scene = Scene("default")
    scene.boot("w*1", ttlSecondsAfterFinished=ttl)
    return scene


def test_deletion_is_tried_again():
    with scene_of(5) as scene:
        scene.succeed("w-0")
        scene.sim.fail_next("delete", kind="Job", times=2)

        scene.wait(5)
        assert scene.job["metadata"].get("deletionTimestamp") is None
        scene.wait(1)

        assert scene.job["metadata"]["deletionTimestamp"]
        assert scene.job["metadata"]["finalizers"] == ["foregroundDeletion"]


def test_the_time_goes_on_over_a_restart_of_the_controllers():
    with scene_of(10) as scene:
        scene.succeed("w-0")
        scene.wait(6)
        scene.sim.restart_controllers()
        scene.wait(3.9)
        assert scene.job["metadata"].get("deletionTimestamp") is None
        scene.wait(0.2)
        assert scene.job["metadata"]["deletionTimestamp"]


def test_a_job_whose_time_is_prolonged_stays():
    with scene_of(5) as scene:
        scene.succeed("w-0")
        scene.wait(1)
        scene.cluster.run(scene.store.patch(JOB, "j", "default", {"spec": {"ttlSecondsAfterFinished": 100}}))
        scene.wait(10)

        assert scene.job["metadata"].get("deletionTimestamp") is None
