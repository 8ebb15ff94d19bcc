"""``load.why()``: one sentence, a few facts, what to do next; for every state."""

import pytest

import vcnb
from vcnb.cache.api import CacheJobState, CacheProgress, JobFacts
from vcnb.cache.jobs.record import FailedFile
from vcnb.cache.protocol import FailureCode, JobType
from vcnb.client.cache.why import Situation, why

MIB = 1 << 20


def situation(state, told=None, numbers=None, **more):
    facts = JobFacts(
        "u", JobType.LOAD, "s3://b/d", CacheJobState(state), submitted=100.0, started=100.0, ended=107.0, **(told or {})
    )
    values = {
        "scanned_files": 10,
        "loaded_files": 6,
        "total_bytes": 10 * MIB,
        "loaded_bytes": 6 * MIB,
        "total_known": True,
    }
    return Situation(facts, CacheProgress(CacheJobState(state), **{**values, **(numbers or {})}), now=105.0, **more)


def test_a_job_that_nobody_works_on():
    assert why(situation("WAITING", working=False)) == (
        "load s3://b/d waits in the queue for 5.0s, and nobody works on it here.\n"
        "Next: open the cluster in a notebook, or submit with --wait"
    )


def test_a_job_in_a_queue():
    said = why(situation("WAITING", working=True, ahead=3, running=100, capacity=100, workers=0, coordinators=0))

    assert said.splitlines()[1:] == [
        "- no coordinator is up: vcnb coordinator --etcd ...",
        "- no worker can be reached",
        "- 3 jobs wait before it",
        "- 100 jobs run, which is all that may run at once",
    ]


def test_a_job_that_is_slow():
    told, numbers = {"options": {"bandwidth": MIB}}, {"total_known": False, "retrying": 2, "retried_units": 5}

    said = why(situation("RUNNING", told, numbers, failures=[FailedFile("s3://b/d/x", "UNAVAILABLE", "503")]))

    assert "load s3://b/d runs: 6 files done" in said
    assert "- its source is still being listed, so the total is not known" in said
    assert "- each worker reads at most 1.0 MiB/s, as was asked" in said
    assert "- 2 parts wait to be tried again" in said
    assert "- 5 retries so far" in said
    assert "- 1 file failed, UNAVAILABLE: s3://b/d/x 503" in said


def test_a_job_that_failed():
    files = [FailedFile(f"s3://b/d/{number}", "PERMISSION_DENIED", "403") for number in range(3)]
    told = {"reason": "PERMISSION_DENIED", "message": "Job partially failed."}

    said = why(situation("FAILED", told, {"failed_files": 3}, failures=files)).splitlines()

    assert said[0] == "load s3://b/d failed, PERMISSION_DENIED: Job partially failed."
    assert said[1] == "- 3 files failed, PERMISSION_DENIED: s3://b/d/0 403"
    assert said[2].startswith("Next: check who may read the source")
    assert said[2].endswith("handle.failures().to_pandas()")


def test_the_other_ends():
    assert why(situation("STOPPED")).endswith("Next: submit it again with skip_if_exists=True, and it goes on")
    assert why(situation("SUCCEEDED")).startswith("load s3://b/d succeeded in 7.0s: 6 files loaded")
    assert "does not know: {'state': 'ODD'}" in why(situation("UNKNOWN", {"raw": {"state": "ODD"}}))


@pytest.mark.parametrize("code", list(FailureCode))
def test_every_reason_says_something_to_do_or_what_is_left(code):
    said = why(situation("FAILED", {"reason": code.value}, {"failed_files": 1}))

    assert "\nNext: " in said


def test_a_waiting_job_of_a_cluster_that_is_only_looked_at():
    with vcnb.connect("memory://", controllers="off") as cluster:
        cluster.cache._works = False
        cluster.cache.load("s3://b/first")
        load = cluster.cache.load("s3://b/second")

        assert "nobody works on it here" in load.why()
