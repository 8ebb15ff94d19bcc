"""A CronJob: its schedule, time zone and name, and (for a person) the Job that it will make."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final
from zoneinfo import ZoneInfo

from vcnb.admission.defaults import cronjob_defaults
from vcnb.admission.findings import Findings, near
from vcnb.admission.jobtemplate import check_later_job
from vcnb.admission.reading import Draft, mapping, text
from vcnb.admission.schedule import ScheduleError, parse_schedule
from vcnb.admission.template import check_labels
from vcnb.admission.usable import name_of
from vcnb.admission.world import World

__all__ = ["check_time_zone", "review_cronjob"]

_MAX_NAME: Final = 52
_MAX_PART: Final = 14
_ZONE: Final = re.compile(r"[A-Za-z0-9_+-]+(/[A-Za-z0-9_+-]+)*")
_SAMPLE: Final = 1_767_225_600.0
"""Any moment will do to see whether a schedule has a next slot: the start of 2026."""


def review_cronjob(cronjob: Draft, raw: Mapping[str, Any], world: World, findings: Findings) -> Draft:
    """The CronJob as it would be stored (on create and update)."""
    spec = dict(mapping(cronjob.get("spec")))
    _check_schedule(spec.get("schedule"), findings)
    if spec.get("timeZone") is not None:
        check_time_zone(spec["timeZone"], "spec.timeZone", findings)
    name = name_of(cronjob)
    if len(name) > _MAX_NAME:
        findings.refuse(
            "metadata.name",
            f"{name!r} has {len(name)} characters; at most {_MAX_NAME} leave room for the time in its jobs' names",
        )
    if findings.strict:
        template = mapping(spec.get("jobTemplate"))
        check_labels(mapping(template.get("metadata")), "spec.jobTemplate.metadata", findings)
        written = mapping(mapping(mapping(raw.get("spec")).get("jobTemplate")).get("spec"))
        job = f"{name}-{int(_SAMPLE) // 60}" if name and len(name) <= _MAX_NAME else ""
        check_later_job(dict(mapping(template.get("spec"))), written, "spec.jobTemplate.spec", world, findings, job)
    return {**cronjob, "spec": cronjob_defaults(spec)}


def _check_schedule(schedule: Any, findings: Findings) -> None:
    path = "spec.schedule"
    if not text(schedule):
        findings.refuse(path, "is required, such as '*/5 * * * *' or '@hourly'")
        return
    if "TZ" in schedule:
        findings.refuse(path, "must not contain TZ; name the time zone in spec.timeZone")
        return
    try:
        parsed = parse_schedule(schedule)
    except ScheduleError as error:
        findings.refuse(path, f"is no cron expression: {error}")
        return
    if parsed.next(_SAMPLE) is None:
        findings.mistake(path, f"{schedule!r} never comes: no date matches it")
    elif parsed.every is not None and parsed.every < 60:
        findings.warn(
            path, "jobs are named by the minute, so of several slots in one minute only the first makes a job"
        )


def check_time_zone(zone: Any, path: str, findings: Findings) -> None:
    """The zone is one of the IANA database; ``Local`` and the empty text are refused."""
    if not isinstance(zone, str):
        return
    if not zone:
        findings.refuse(path, "is empty; leave it out, or name a zone such as Europe/Berlin")
    elif zone.lower() == "local":
        findings.refuse(
            path, "cannot be Local, which differs from machine to machine; name a zone such as Europe/Berlin"
        )
    elif not _ZONE.fullmatch(zone) or any(len(part) > _MAX_PART for part in zone.split("/")):
        findings.refuse(path, f"{zone!r} is no name of a time zone{_zone_hint(zone)}")
    elif not _is_zone(zone):
        findings.refuse(path, f"{zone!r} is no time zone of the IANA database{_zone_hint(zone)}")


@lru_cache(maxsize=64)
def _is_zone(zone: str) -> bool:
    try:
        ZoneInfo(zone)
    except (OSError, ValueError, KeyError):
        return False
    return True


def _zone_hint(zone: str) -> str:
    import zoneinfo

    hint = near(zone.replace(" ", "_"), zoneinfo.available_timezones())
    if "did you mean" in hint:
        return hint
    city = zone.replace(" ", "_").rpartition("/")[2].lower()
    found = sorted(known for known in zoneinfo.available_timezones() if known.rpartition("/")[2].lower() == city)
    return f"; did you mean {found[0]!r}?" if found else ", such as Europe/Berlin or UTC"
