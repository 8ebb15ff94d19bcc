"""What the controller knows of jobs and pods (reference section 7)."""

from __future__ import annotations

import pytest

from scenario.notation import task
from unit.job.objects import a_cache, a_job, a_pod, put
from vcnb.controllers.job.cache import CacheError, JobCache, identify


def identity_of(pod):
    found = identify(pod)
    assert found is not None
    return found


def test_a_job_that_is_not_there():
    cache = JobCache()

    with pytest.raises(CacheError, match="failed to find job <ns/j>"):
        cache.get("ns/j")
    put(cache, a_pod("w-0"))
    with pytest.raises(CacheError, match="job <ns/j> is not ready"):
        cache.get("ns/j")


def test_pods_may_come_before_their_job():
    cache = JobCache()
    put(cache, a_pod("w-0"))

    info = cache.add(a_job("w*1"))

    assert list(info.pods_of("w")) == ["j-w-0"]


def test_a_job_is_added_once():
    cache = a_cache(a_job("w*1"))

    with pytest.raises(CacheError, match="duplicated jobInfo <ns/j>"):
        cache.add(a_job("w*2"))
    assert cache.get("ns/j").spec.replicas == 1


def test_s88_an_older_version_changes_nothing():
    cache = a_cache(a_job("w*1", version=100))

    with pytest.raises(CacheError, match="too old"):
        cache.update(a_job("w*9", version=99))
    assert cache.get("ns/j").spec.replicas == 1
    cache.update(a_job("w*2", version=100))
    assert cache.get("ns/j").spec.replicas == 2
    with pytest.raises(CacheError, match="failed to find job"):
        JobCache().update(a_job("w*1"))


def test_a_version_that_is_no_number_is_refused():
    cache = a_cache(a_job("w*1"))
    odd = a_job("w*1")
    odd["metadata"]["resourceVersion"] = "v2"

    with pytest.raises(CacheError, match="is no number"):
        cache.update(odd)


def test_s89_pods_are_added_once_and_updated_when_known():
    cache = a_cache(a_job("w*1"), a_pod("w-0", "Pending"))

    with pytest.raises(CacheError, match="duplicated pod <ns/j-w-0>"):
        put(cache, a_pod("w-0", "Running"))
    assert cache.get("ns/j").pods_of("w")["j-w-0"]["status"]["phase"] == "Pending"
    unknown = a_pod("w-1")
    with pytest.raises(CacheError, match="failed to find pod <ns/j-w-1>"):
        cache.update_pod(identity_of(unknown), unknown)
    with pytest.raises(CacheError, match="failed to find pod"):
        JobCache().update_pod(identity_of(unknown), unknown)


def test_s90_nothing_is_left_of_a_job_whose_last_pod_is_gone():
    pod = a_pod("w-0")
    cache = a_cache(a_job("w*1"), pod)

    cache.delete(a_job("w*1"))
    assert "ns/j" in cache
    cache.delete_pod(identity_of(pod))

    assert "ns/j" not in cache
    assert len(cache) == 0
    with pytest.raises(CacheError):
        cache.delete(a_job("w*1"))
    assert cache.delete_pod(identity_of(pod)) is None


def test_q33_pods_without_a_job_leave_nothing_behind():
    cache = JobCache()
    put(cache, a_pod("w-0"))

    cache.delete_pod(identity_of(a_pod("w-0")))

    assert len(cache) == 0


def test_q33_a_new_job_does_not_inherit_its_predecessors_pods():
    old, new = a_pod("w-0", job_uid="u1"), a_pod("w-1", job_uid="u2", uid="new")
    strict, default = a_cache(a_job("w*2"), old, own_pods_only=False), a_cache(a_job("w*2"), old)
    for cache in (strict, default):
        cache.delete(a_job("w*2"))
        cache.add(a_job("w*2", uid="u2"))
        put(cache, new)

    assert list(strict.get("ns/j").pods_of("w")) == ["j-w-0", "j-w-1"]
    info = default.get("ns/j")
    assert (list(info.pods_of("w")), list(info.strangers)) == (["j-w-1"], ["j-w-0"])
    default.update_pod(identity_of(old), {**old, "status": {"phase": "Failed"}})
    assert list(info.pods_of("w")) == ["j-w-1"]
    default.delete_pod(identity_of(old))
    assert not info.strangers


def test_the_end_of_a_pod_does_not_take_its_successor_out():
    first, second = a_pod("w-0", uid="first"), a_pod("w-0", uid="second")
    cache = a_cache(a_job("w*1"), second)

    cache.delete_pod(identity_of(first))

    assert cache.get("ns/j").pods_of("w")["j-w-0"] is second


@pytest.mark.parametrize(
    ("phases", "completed"), [(["Succeeded", "Succeeded"], True), (["Succeeded", "Running"], False)]
)
def test_s91_task_completed(phases: list[str], completed: bool):
    cache = a_cache(a_job("w*2"), *(a_pod(f"w-{index}", phase) for index, phase in enumerate(phases)))

    assert cache.task_completed("ns/j", "w") is completed


def test_task_completed_of_nothing():
    cache = a_cache(a_job("w*0", "v*1"), a_pod("w-0", "Succeeded"), a_pod("x-0", "Succeeded"))

    assert not cache.task_completed("ns/j", "w")
    assert not cache.task_completed("ns/j", "v")
    assert not cache.task_completed("ns/j", "x")
    assert not cache.task_completed("ns/other", "w")


def test_a_pod_that_had_succeeded_and_is_gone_counts():
    cache = a_cache(a_job("w*2"), a_pod("w-1", "Succeeded"))
    cache.get("ns/j").lost.add(("w", 0))

    assert cache.task_completed("ns/j", "w")


@pytest.mark.parametrize(
    ("max_retry", "restarts", "failed"),
    [(3, [2, 1], True), (3, [1, 1], False), (0, [3], True), (1, [1], True), (-1, [99], False)],
)
def test_task_failed(max_retry: int, restarts: list[int], failed: bool):
    pods = [a_pod(f"w-{index}", "Running", restarts=number) for index, number in enumerate(restarts)]
    cache = a_cache(a_job(task("w*3", max_retry=max_retry)), *pods)

    assert cache.task_failed("ns/j", "w") is failed
    assert not cache.task_failed("ns/j", "v")


def test_restarts_of_init_containers_count_and_those_of_finished_pods_do_not():
    init = a_pod("w-0", "Pending", initContainerStatuses=[{"restartCount": 3}])
    cache = a_cache(a_job("w*1"), init)

    assert cache.task_failed("ns/j", "w")
    cache.update_pod(identity_of(init), {**init, "status": {**init["status"], "phase": "Failed"}})
    assert not cache.task_failed("ns/j", "w")


def test_upstream_restarts_of_a_pod_that_is_going_count():
    going = a_pod("w-0", "Running", restarts=3, terminating=True)
    for count_going in (True, False):
        cache = JobCache(count_going=count_going)
        cache.add(a_job("w*1"))
        put(cache, going)
        assert cache.task_failed("ns/j", "w") is count_going


def test_the_spec_is_parsed_once_per_generation():
    job = a_job("w*1")
    cache = a_cache(job)
    info = cache.get("ns/j")
    spec = info.spec

    cache.update({**job, "metadata": {**job["metadata"], "resourceVersion": "2"}, "status": {"version": 1}})
    assert info.spec is spec
    cache.update(a_job("w*1", version=3, minAvailable=0))
    assert info.spec is not spec
    assert info.spec.min_available == 0


def test_q2_upstream_bumps_the_version_in_the_cache_alone():
    job = a_job("w*1", status={"version": 4})
    cache = a_cache(job)

    cache.bump_version(cache.get("ns/j"))

    assert cache.get("ns/j").job["status"]["version"] == 5
    assert job["status"]["version"] == 4
