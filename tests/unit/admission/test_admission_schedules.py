"""CronJobs and the schedules they accept: exactly those of robfig/cron's standard parser."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from unit.admission.samples import create, cronjob, job, only, paths, task, update, warned
from vcnb.admission.schedule import ScheduleError, parse_schedule

NEW_YORK = ZoneInfo("America/New_York")
UTC = ZoneInfo("UTC")


def after(schedule: str, moment: str, zone: ZoneInfo = UTC) -> str | None:
    """The next slot later than a local moment, as local text with its offset."""
    found = parse_schedule(schedule).next(datetime.fromisoformat(moment).replace(tzinfo=zone).timestamp(), zone)
    return None if found is None else datetime.fromtimestamp(found, zone).isoformat()


@pytest.mark.parametrize(
    "schedule",
    [
        "* * * * *",
        "*/5 * * * *",
        "0 0 1 1 *",
        "? ? ? ? ?",
        "0,30 8-18/2 * JAN-jun Mon,WED,fri",
        "5/15 * * * *",
        "*-5 * * * *",
        "1,,2 * * * *",
        "+5 * * * *",
        "  0  12 * * 0 ",
        "*/70 * * * *",
        "@yearly",
        "@annually",
        "@monthly",
        "@weekly",
        "@daily",
        "@midnight",
        "@hourly",
        "@every 90s",
        "@every 1h30m",
        "@every -5s",
        "@every 1ms",
    ],
)
def test_accepted(schedule: str) -> None:
    assert parse_schedule(schedule).text == schedule


@pytest.mark.parametrize(
    ("schedule", "words"),
    [
        ("", "0 fields"),
        ("every day", "2 fields"),
        ("* * * *", "4 fields"),
        ("0 * * * * *", "6 fields"),
        ("60 * * * *", "minute"),
        ("* 24 * * *", "hour"),
        ("* * 0 * *", "day of the month"),
        ("* * 32 * *", "day of the month"),
        ("* * * 13 *", "month"),
        ("* * * FOO *", "'FOO'"),
        ("* * * * 7", "Sunday is 0"),
        ("* * * * MON-8", "day of the week"),
        ("* * L * *", "'L'"),
        ("* * 15W * *", "'15W'"),
        ("* * * * 1#2", "'1#2'"),
        ("* * * * 5L", "'5L'"),
        ("30-10 * * * *", "backwards"),
        ("FRI * * * *", "'FRI'"),
        ("*/0 * * * *", "step 0"),
        ("1/2/3 * * * *", "more than one '/'"),
        ("1-2-3 * * * *", "more than one '-'"),
        ("-5 * * * *", "minute"),
        ("1- * * * *", "minute"),
        ("*/x * * * *", "'x'"),
        ("*/-1 * * * *", "'-1'"),
        ("1_0 * * * *", "'1_0'"),
        ("\u0661 * * * *", "no number"),
        ("@reboot", "@every"),
        ("@Hourly", "@hourly"),
        ("@every", "@every"),
        ("@every 5", "did you mean '5s'?"),
        ("@every soon", "no duration"),
    ],
)
def test_refused(schedule: str, words: str) -> None:
    with pytest.raises(ScheduleError) as caught:
        parse_schedule(schedule)

    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("schedule", "moment", "slot"),
    [
        ("*/15 * * * *", "2026-07-09T14:45:00", "2026-07-09T15:00:00+00:00"),
        ("*/15 * * * *", "2026-07-09T14:59:59", "2026-07-09T15:00:00+00:00"),
        ("20-35/15 * * * *", "2026-07-09T14:46:00", "2026-07-09T15:20:00+00:00"),
        ("0 0 29 2 *", "2026-03-01T00:00:00", "2028-02-29T00:00:00+00:00"),
        ("0 0 * Feb Mon", "2026-07-09T00:00:00", "2027-02-01T00:00:00+00:00"),
        ("0 0 1 * Mon", "2026-07-09T00:00:00", "2026-07-13T00:00:00+00:00"),  # either day
        ("0 0 1 * *", "2026-07-09T00:00:00", "2026-08-01T00:00:00+00:00"),
        ("0 0 ? * 1", "2026-07-09T00:00:00", "2026-07-13T00:00:00+00:00"),
        ("0 0 */2 * 1", "2026-07-09T00:00:00", "2026-07-11T00:00:00+00:00"),  # a step restricts: either day
        ("0 0 */1 * 1", "2026-07-09T00:00:00", "2026-07-13T00:00:00+00:00"),  # a step of one does not
        ("0 0 1,* * 1", "2026-07-09T00:00:00", "2026-07-13T00:00:00+00:00"),
        ("@weekly", "2026-07-09T00:00:00", "2026-07-12T00:00:00+00:00"),
        ("@every 90s", "2026-07-09T00:00:00", "2026-07-09T00:01:30+00:00"),
        ("@every 90s", "2026-07-09T00:00:00.700", "2026-07-09T00:01:30+00:00"),
        ("@every 1ms", "2026-07-09T00:00:00", "2026-07-09T00:00:01+00:00"),
        ("0 0 30 2 *", "2026-07-09T00:00:00", None),
        (", * * * *", "2026-07-09T00:00:00", None),
    ],
)
def test_the_next_slot(schedule: str, moment: str, slot: str | None) -> None:
    assert after(schedule, moment) == slot


def test_a_slot_that_spring_skips_does_not_happen() -> None:
    assert after("30 2 * * *", "2026-03-08T00:00:00", NEW_YORK) == "2026-03-09T02:30:00-04:00"
    assert after("0 * * * *", "2026-03-08T01:00:00", NEW_YORK) == "2026-03-08T03:00:00-04:00"


def test_a_slot_that_autumn_repeats_happens_twice() -> None:
    schedule = parse_schedule("30 1 * * *")
    first = schedule.next(datetime(2026, 11, 1, tzinfo=NEW_YORK).timestamp(), NEW_YORK)
    assert first is not None
    second = schedule.next(first, NEW_YORK)

    assert second is not None
    assert second - first == 3600


def test_zones_shift_the_slot() -> None:
    assert after("0 9 * * *", "2026-07-09T10:00:00", ZoneInfo("Europe/Berlin")) == "2026-07-10T09:00:00+02:00"


@pytest.mark.parametrize(
    ("obj", "path", "words"),
    [
        (cronjob(""), "spec.schedule", ""),
        (cronjob("every day"), "spec.schedule", "no cron expression"),
        (cronjob("TZ=UTC 0 20 * * *"), "spec.schedule", "spec.timeZone"),
        (cronjob("CRON_TZ=UTC 0 20 * * *"), "spec.schedule", "spec.timeZone"),
        (cronjob(timeZone=""), "spec.timeZone", "is empty"),
        (cronjob(timeZone="lOcAl"), "spec.timeZone", "cannot be Local"),
        (cronjob(timeZone="New York"), "spec.timeZone", "did you mean 'America/New_York'?"),
        (cronjob(timeZone="Europe/Berln"), "spec.timeZone", "did you mean 'Europe/Berlin'?"),
        (cronjob(timeZone="America"), "spec.timeZone", "no time zone"),
        (cronjob(timeZone="Mars/" + "x" * 15), "spec.timeZone", "no name of a time zone"),
        (cronjob(timeZone="../etc/passwd"), "spec.timeZone", "no name of a time zone"),
        (cronjob(name="c" * 53), "metadata.name", "at most 52"),
    ],
)
def test_refused_cronjobs(obj: Any, path: str, words: str) -> None:
    for strict in (True, False):
        answer = create(obj, strict=strict)
        assert paths(answer) == [path]
        assert words in answer.problems[0].message


def test_cronjobs_are_judged_on_update_too() -> None:
    old = cronjob()

    assert update(cronjob("@daily"), old).allowed
    assert not update(cronjob("nonsense"), old).allowed


def test_the_embedded_job_is_judged_for_people() -> None:
    bad = cronjob(job_spec={"minAvailable": 9, "tasks": [task()]})

    assert only(create(bad))[0] == "spec.jobTemplate.spec.minAvailable"
    assert create(bad, strict=False).allowed


def test_its_queue_may_be_made_later() -> None:
    assert warned(create(cronjob(job_spec={**job()["spec"], "queue": "later"}))) == ["spec.jobTemplate.spec.queue"]


def test_a_schedule_that_never_comes() -> None:
    assert "never comes" in only(create(cronjob("0 0 30 2 *")))[1]
    assert create(cronjob("0 0 30 2 *"), strict=False).allowed


def test_slots_closer_than_a_minute() -> None:
    assert warned(create(cronjob("@every 30s"))) == ["spec.schedule"]


def test_labels_of_the_jobs_to_come() -> None:
    obj = cronjob()
    obj["spec"]["jobTemplate"]["metadata"] = {"labels": {"a b": "c"}}

    assert only(create(obj))[0] == 'spec.jobTemplate.metadata.labels["a b"]'
