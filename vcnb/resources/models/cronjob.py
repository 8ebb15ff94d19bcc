"""CronJobs: Jobs by the clock."""

from __future__ import annotations

from typing import Annotated

from vcnb.resources.models.base import Model, NonNegative, NonNegative64, OneOf
from vcnb.resources.models.job import JobSpec
from vcnb.resources.models.meta import Object, ObjectMeta

__all__ = ["CronJob", "CronJobSpec", "CronJobTemplate"]


class CronJobTemplate(Model):
    """Labels, annotations and spec of the Jobs to be made."""

    metadata: ObjectMeta | None = None
    spec: JobSpec | None = None


class CronJobSpec(Model):
    """When and what: ``schedule`` has five fields or is a descriptor such as ``@hourly``."""

    schedule: str
    job_template: CronJobTemplate
    time_zone: str | None = None
    starting_deadline_seconds: NonNegative64 | None = None
    concurrency_policy: Annotated[str, OneOf(("Allow", "Forbid", "Replace"))] | None = None
    suspend: bool | None = None
    successful_jobs_history_limit: NonNegative | None = None
    failed_jobs_history_limit: NonNegative | None = None


class CronJob(Object):
    """A CronJob of Volcano Jobs (batch.volcano.sh/v1alpha1)."""

    spec: CronJobSpec | None = None
