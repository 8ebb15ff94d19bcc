"""Names, phases and paths: the words that the rest is made of."""

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vcnb.resources import names, phases
from vcnb.resources.paths import format_path, parse_path
from vcnb.resources.phases import JobAction, JobEvent, JobPhase


def test_every_constant_is_exported_once():
    constants = [name for name in vars(names) if name.isupper()]
    assert sorted(constants) == sorted(names.__all__)


def test_a_phase_is_its_text():
    assert JobPhase.RUNNING == "Running"
    assert f"{JobPhase.ABORTED}" == "Aborted"
    assert JobPhase("") is JobPhase.UNSET


def test_every_job_phase_has_its_class():
    parked = {JobPhase.ABORTED}
    assert phases.ACTIVE | phases.TRANSIENT | phases.FINISHED | parked == set(JobPhase)
    assert not phases.FINISHED & parked


def test_what_policies_may_name():
    assert set(phases.USER_EVENTS) == {
        "*", "PodFailed", "PodEvicted", "PodPending", "Unknown", "TaskCompleted", "TaskFailed", "JobUpdated",
    }  # fmt: skip
    assert {JobEvent.OUT_OF_SYNC, JobEvent.COMMAND_ISSUED, JobEvent.POD_RUNNING} == phases.INTERNAL_EVENTS
    assert set(phases.USER_ACTIONS) == {
        "AbortJob", "RestartJob", "RestartTask", "RestartPod", "RestartPartition", "TerminateJob", "CompleteJob",
        "ResumeJob",
    }  # fmt: skip
    assert set(JobAction) == set(phases.USER_ACTIONS) | phases.INTERNAL_ACTIONS


@pytest.mark.parametrize(
    ("steps", "text"),
    [
        (
            ("spec", "tasks", 0, "template", "spec", "containers", 0, "image"),
            "spec.tasks[0].template.spec.containers[0].image",
        ),
        (("metadata", "labels", "volcano.sh/job-type"), 'metadata.labels["volcano.sh/job-type"]'),
        (("spec", "plugins", "env"), "spec.plugins.env"),
        ((), ""),
        (("items", 2), "items[2]"),
        (("data", "0"), 'data["0"]'),
    ],
)
def test_paths(steps, text):
    assert format_path(steps) == text
    assert parse_path(text) == steps


def test_a_bare_key_in_brackets_is_read():
    assert parse_path("requests[nvidia.com/gpu]") == ("requests", "nvidia.com/gpu")


@given(st.lists(st.one_of(st.text(min_size=1), st.integers(0, 1000))))
def test_any_path_reads_back(steps):
    assert parse_path(format_path(steps)) == tuple(steps)


def test_light_modules_import_nothing_heavy():
    code = (
        "import sys; import vcnb.resources.kinds, vcnb.resources.names, vcnb.resources.phases, vcnb.resources.quantity,"
        "vcnb.resources.duration, vcnb.resources.views, vcnb.resources.builders, vcnb.resources.schema;"
        "print([m for m in ('pydantic', 'yaml', 'pandas', 'kubernetes') if m in sys.modules])"
    )
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert loaded.stdout.strip() == "[]"
