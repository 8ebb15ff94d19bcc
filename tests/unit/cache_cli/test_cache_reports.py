"""What ``--progress`` prints: Alluxio's TEXT and JSON, line by line (reference 2.3 to 2.6)."""

import json

import pytest

from vcnb.cache.api import CacheJobState, CacheProgress, JobFacts
from vcnb.cache.jobs.record import FailedFile
from vcnb.cache.protocol import JobType
from vcnb.cache.report import failures_text, header, json_report, size, text_report

MIB = 1 << 20
NOON = 1_767_268_800.25


def facts(type=JobType.LOAD, state="RUNNING", **more):
    return JobFacts("u-1", type, "s3://b/d", CacheJobState(state), submitted=NOON, **more)


def progress(**numbers):
    told = {
        "scanned_files": 10,
        "directories": 1,
        "loaded_files": 6,
        "loaded_bytes": 18 * MIB,
        "total_bytes": 30 * MIB,
        "total_known": True,
        "elapsed": 3725.9,
        "average_throughput": 2509.8 * 1024,
        **numbers,
    }
    return CacheProgress(CacheJobState.RUNNING, **told)


@pytest.mark.parametrize(
    ("amount", "printed"),
    [(0, "0B"), (5120, "5120B"), (5121, "5.00KB"), (3 * MIB, "3072.00KB"), (125 * MIB, "125.00MB"), (2 << 30, "2048.00MB"),
     (30 << 40, "30.00TB"), (1 << 60, "1024.00PB")],
)  # fmt: skip
def test_sizes_are_printed_as_alluxio_does(amount, printed):
    assert size(amount) == printed


def test_a_load_that_runs():
    assert header(facts(), "s3://b/d/") == "Progress for loading path 's3://b/d/':"
    assert text_report(facts(), progress()).splitlines() == [
        "\tSettings:\tbandwidth: unlimited\tverify: false\tmetadata-only: false",
        "\tTime Elapsed: 01:02:05",
        "\tJob State: RUNNING",
        "\tInodes Scanned: 11",
        "\tInodes Processed: 7",
        "\tBytes Loaded: 18.00MB out of 30.00MB",
        "\tThroughput: 2509.80KB/s",
        "\tFile Failure rate: 0.00%",
        "\tSubtask Failure rate: 0.00%",
        "\tFiles Failed: 0",
        "\tSubtask Retry rate: 0.00%",
        "\tSubtasks on Retry Dead Letter Queue: 0",
    ]


def test_settings_are_those_of_the_job():
    set_ = facts(options={"bandwidth": 4096, "verify": True, "skip_if_exists": True})

    lines = text_report(set_, progress(skipped_bytes=3 * MIB)).splitlines()

    assert lines[0] == "\tSettings:\tbandwidth: 4096\tverify: true\tmetadata-only: false"
    assert "\tBytes Skipped: 3072.00KB out of 30.00MB" in lines


def test_metadata_only_prints_no_bytes_and_no_throughput():
    text = text_report(facts(options={"metadata_only": True}), progress())

    assert "Bytes Loaded" not in text
    assert "Throughput" not in text


@pytest.mark.parametrize("known", [True, False])
def test_a_total_stands_only_when_it_is_known(known):
    partial = facts(options={"partial_listing": known})

    assert "Bytes Loaded: 18.00MB\n" in text_report(partial, progress(total_known=known))


def test_no_throughput_before_a_whole_second():
    assert "Throughput" not in text_report(facts(), progress(average_throughput=None))


def test_nothing_scanned_prints_no_nan():
    text = text_report(facts(state="SUCCEEDED"), CacheProgress(CacheJobState.SUCCEEDED))

    assert "NaN" not in text
    assert "File Failure rate: 0.00%" in text


def test_verbose_names_stage_reason_and_failures():
    failed = [FailedFile("s3://b/d/x", "PERMISSION_DENIED", "403")]
    ended = facts(state="FAILED", reason="PERMISSION_DENIED", message="1 file failed")

    running = text_report(facts(), progress(retrying=2), verbose=True)
    over = text_report(ended, progress(failed_files=1, failed_units=1, units=8), failed, verbose=True)

    assert "\tStage: RETRYING" in running
    assert "\tJob State: FAILED (PERMISSION_DENIED: 1 file failed)" in over
    assert "\t\t1 file failed" in over
    assert "\tRecent failed subtasks: \n\t\ts3://b/d/x: Reason: PERMISSION_DENIED, message: 403" in over
    assert "\tSubtask Failure rate: 12.50%" in over


def test_json_has_alluxios_members_and_leaves_out_what_has_no_value():
    told = json.loads(json_report(facts(), progress(total_known=False, average_throughput=None)))

    assert told["mJobState"] == "RUNNING"
    assert (told["mLoadedByteCount"], told["mScannedInodesCount"], told["mTimeElapsed"]) == (18 * MIB, 11, 3_725_900)
    assert told["mRunningStage"] == "LOADING"
    assert not told.keys() & {"mTotalByteCount", "mThroughput", "mFailureReason", "mBandwidth"}


def test_json_of_a_failed_load_says_why():
    failed = [FailedFile("s3://b/d/x", "NOT_FOUND", "gone")]
    over = facts(state="FAILED", reason="NOT_FOUND", message="1 file failed")

    told = json.loads(json_report(over, progress(failed_files=1), failed, verbose=True))

    assert told["mFailureReason"] == {"message": "NOT_FOUND: 1 file failed"}
    assert told["mRecentFailedSubtasksWithReasons"] == ["s3://b/d/x: Reason: NOT_FOUND, message: gone"]
    assert told["mFailedFileCount"] == 1


def test_a_free():
    freed = facts(JobType.FREE, "SUCCEEDED", ended=NOON + 1)
    numbers = progress(scanned_files=4, total_bytes=3 * MIB, loaded_files=4, loaded_bytes=3 * MIB)

    assert header(freed, "/x") == "Progress for Free path file '/x':"
    assert text_report(freed, numbers).splitlines() == [
        "\tJob Id: u-1",
        "\tJob Submitted: 01-01-2026 12:00:00:250",
        "\tJob path: s3://b/d",
        "\tJob State: SUCCEEDED, finished at 01-01-2026 12:00:01:250",
        "\tFree Info :\ttotalFile:4 totalByte:3072.00KB",
        "\tFree Files Failed: 0",
        "\tFree Bytes Failed: 0B",
        "\tFree Files Succeeded: 4",
        "\tFree Bytes Succeeded: 3072.00KB",
    ]


def test_copies_and_moves():
    copied = facts(JobType.COPY, src="s3://a", dst="s3://b", options={"check_content": True})
    moved = facts(JobType.MOVE, "SUCCEEDED", src="s3://a", dst="s3://b", ended=NOON)

    copy, move = text_report(copied, progress(skipped_files=3)), text_report(moved, progress())

    assert header(copied, "x") == "Progress for jobId u-1 copying path 's3://a' to 's3://b':"
    assert copy.splitlines()[0] == '\tSettings: "check-content: true"'
    assert "\tFiles qualified so far: 10, 30.00MB\n" in copy
    assert "\tFiles Skipped: 3\n\tFiles Succeeded: 6\n\tBytes Copied: 18.00MB\n" in copy
    assert "moving path" in header(moved, "x")
    assert "\tFiles qualified: 10, 30.00MB\n" in move
    assert "Skipped" not in move
    assert "Bytes Moved: 18.00MB" in move


def test_the_list_of_failed_files():
    assert failures_text([]) == "Failed files:\n\tnone"
    assert failures_text([FailedFile("a b", "TIMEOUT", "60 s")]).endswith("\ta b: Reason: TIMEOUT, message: 60 s")
