"""A cache job as a scene: every state said by shape, word and colour; numbers that add up; nothing unescaped."""

import re
from html.parser import HTMLParser

import pytest

from vcnb.cache.api import CacheJobState, CacheProgress, JobFacts
from vcnb.cache.jobs.record import FailedFile
from vcnb.cache.protocol import JobType
from vcnb.cache.words import bytes_words, progress_words
from vcnb.scene.cache import (
    SECTIONS,
    CacheSnapshot,
    html,
    jobs_html,
    jobs_text,
    line,
    sections,
    text,
)

MIB = 1 << 20


def snapshot(state="RUNNING", type=JobType.LOAD, failures=(), samples=(), told=None, **numbers):
    values = {
        "scanned_files": 10,
        "loaded_files": 6,
        "total_bytes": 30 * MIB,
        "loaded_bytes": 18 * MIB,
        "total_known": True,
        "percent": 60.0,
        "current_throughput": 12.1 * MIB,
        "eta": 1.0,
        **numbers,
    }
    facts = JobFacts("u-1", type, "s3://b/d", CacheJobState(state), submitted=100.0, started=101.0, **(told or {}))
    return CacheSnapshot(facts, CacheProgress(CacheJobState(state), **values), failures, 111.0, samples)


@pytest.mark.parametrize(
    ("amount", "said"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1.0 KiB"),
        (30 * MIB, "30.0 MiB"),
        (5 << 40, "5.0 TiB"),
        (5 << 52, "20480.0 TiB"),
    ],
)
def test_bytes_are_said_in_binary_units(amount, said):
    assert bytes_words(amount) == said


def test_a_running_job_in_one_line():
    assert line(snapshot()) == (
        "▶ load s3://b/d: RUNNING  6 of 10 files, 18.0 MiB of 30.0 MiB (60.0%), 12.1 MiB/s, 1s left"
    )


def test_before_the_listing_has_ended_there_is_no_total():
    words = progress_words(snapshot(total_known=False, percent=None, eta=None, total_bytes=0).progress)

    assert words == "6 files done, 10 found so far, 18.0 MiB, 12.1 MiB/s"
    assert "%" not in words


def test_a_finished_job_says_its_average():
    words = progress_words(snapshot("SUCCEEDED", average_throughput=2.0 * MIB, percent=100.0).progress)

    assert words.endswith("(100.0%), 2.0 MiB/s")


def test_text_names_reason_warnings_and_failures():
    files = [FailedFile(f"s3://b/d/{number}", "PERMISSION_DENIED", "403", 1) for number in range(7)]
    told = {"reason": "PERMISSION_DENIED", "message": "7 of 10 files failed", "warnings": ("CACHE_TOO_SMALL",)}

    said = text(snapshot("FAILED", failures=files, told=told, failed_files=7, loaded_files=3)).splitlines()

    assert said[1:3] == ["  PERMISSION_DENIED: 7 of 10 files failed", "  warning: CACHE_TOO_SMALL"]
    assert said[3] == "  ✘ s3://b/d/0: PERMISSION_DENIED 403 (tried once)"
    assert said[-2:] == ["  ... and 2 more failed files: .failures()", "  id u-1"]


@pytest.mark.parametrize("live", [True, False])
@pytest.mark.parametrize("state", list(CacheJobState))
def test_every_state_is_a_word_and_a_shape(state, live):
    shown = sections(snapshot(state.value), live=live)

    assert tuple(shown) == SECTIONS
    assert state.value in shown["head"]
    assert re.search(r"[▶◔◕✔✘■?]", shown["head"])


@pytest.mark.parametrize(
    ("type", "word"), [("LOAD", "loaded"), ("FREE", "freed"), ("COPY", "copied"), ("MOVE", "moved")]
)
def test_what_is_done_has_the_word_of_its_type(type, word):
    shown = sections(snapshot(type=JobType(type)), live=True)

    assert f"{word} 6" in shown["progress"]
    assert f">{word}<" in shown["numbers"]


def test_the_figure_says_the_same_in_words():
    live, static = sections(snapshot(), live=True)["progress"], sections(snapshot(), live=False)["progress"]

    assert 'aria-label="RUNNING: 6 of 10 files, 18.0 MiB of 30.0 MiB (60.0%)' in live
    assert '<img alt="RUNNING: 6 of 10 files' in static
    assert "<svg" not in static


def test_a_bar_is_never_longer_than_its_frame():
    shown = sections(
        snapshot(total_bytes=100, loaded_bytes=90, skipped_bytes=90, failed_bytes=90, skipped_files=1, failed_files=1),
        live=True,
    )["progress"]

    ends = [
        float(x) + float(width) for x, width in re.findall(r'vf-\w+" x="([\d.]+)" y="[\d.]+" width="([\d.]+)"', shown)
    ]
    assert ends
    assert max(ends) <= 560


def test_the_speed_is_drawn_when_it_was_seen_to_change():
    still = sections(snapshot(samples=[(0.0, 0.0), (1.0, 5.0)]), live=True)["progress"]
    moving = sections(snapshot(samples=[(float(n), n * n * float(MIB)) for n in range(6)]), live=True)["progress"]

    assert "polyline" not in still
    assert "polyline" in moving
    assert "6.0 MiB/s" in moving  # over the last four samples


def test_the_frame_is_dashed_while_the_total_is_not_known():
    assert 'class="vn vd"' in sections(snapshot(total_known=False, percent=None), live=True)["progress"]
    assert 'class="vn vd"' not in sections(snapshot(), live=True)["progress"]


def test_names_are_escaped_everywhere():
    evil = "s3://b/<img src=x onerror=alert(1)>"
    facts = JobFacts(
        "<u>", JobType.LOAD, evil, CacheJobState.FAILED, message="<script>", options={"file_filter": "<i>"}
    )
    shot = CacheSnapshot(
        facts, CacheProgress(CacheJobState.FAILED, failed_files=1), [FailedFile(evil, "<b>", "<u>")], 1.0
    )
    tags = []

    class Tags(HTMLParser):
        def handle_starttag(self, tag, attrs):
            tags.append(tag)

    Tags().feed(html(shot) + jobs_html([(facts, shot.progress)], 1.0))

    assert not {"script", "i", "b", "u"} & set(tags) - {"b"}
    assert tags.count("img") == 1  # the figure


def test_failures_are_cut_short_with_how_many_there_are():
    files = [FailedFile(f"f{number}", "TIMEOUT") for number in range(20)]

    shown = sections(snapshot("FAILED", failures=files, failed_files=1_234), live=True)["failures"]

    assert "failed files (1,234)" in shown
    assert "and 1,214 more" in shown


def test_lists_of_jobs():
    jobs = [(snapshot(told={"owner": "host-1#abc"}).facts, snapshot().progress)] * 61

    said, shown = jobs_text(jobs), jobs_html(jobs, 111.0)

    assert said.splitlines()[0].split()[:3] == ["JOBID", "TYPE", "STATE"]
    assert "1970-01-01 00:01:40" in said
    assert "host-1 " in said
    assert said.endswith("... and 1 more")
    assert "and 1 more" in shown
    assert jobs_text([]) == "no cache jobs"
    assert "no cache jobs" in jobs_html([], 0.0)
