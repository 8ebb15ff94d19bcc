"""The judge itself: what counts as equal, and that a difference is found and told."""

from __future__ import annotations

import pytest

from golden.compare import ABSENT, Difference, differences
from golden.replay import Mismatch, scaled


def _job(**fields: object) -> dict[str, object]:
    return {"jobs": {"j": {"phase": "Running", **fields}}}


def test_equal_sections_have_no_difference():
    assert differences(_job(running=2), _job(running=2)) == []


@pytest.mark.parametrize("nothing", [0, "", [], {}, None])
def test_what_is_zero_or_empty_may_be_absent(nothing: object):
    assert differences(_job(), _job(failed=nothing)) == []


def test_a_section_that_is_not_recorded_is_empty():
    assert differences({}, {"others": {"Secret": ["j-ssh"]}}) == [Difference("others/Secret", ABSENT, ["j-ssh"])]


def test_a_difference_names_its_path():
    assert differences(_job(running=2), _job(running=1)) == [Difference("jobs/j/running", 2, 1)]


def test_a_missing_pod_is_a_difference_although_its_version_is_unstable():
    expected = {"pods": {"j-a-0": {"phase": "Running"}}}

    assert differences(expected, {}, ["pods/*/version"]) == [Difference("pods/j-a-0", {"phase": "Running"}, ABSENT)]


@pytest.mark.parametrize(
    ("mask", "hidden"),
    [("jobs/j/running", True), ("jobs/*/running", True), ("jobs", True), ("jobs/k", False), ("jobs/j/failed", False)],
)
def test_unstable_paths_are_passed_over(mask: str, hidden: bool):
    assert (differences(_job(running=2), _job(running=1), [mask]) == []) is hidden


@pytest.mark.parametrize(("amount", "same"), [("1", True), ("1000m", True), ("2", False)])
def test_min_resources_are_compared_by_value(amount: str, same: bool):
    recorded, seen = ({"podgroups": {"j-<uid>": {"minResources": {"cpu": cpu}}}} for cpu in ("1", amount))

    assert (differences(recorded, seen) == []) is same


def test_a_mismatch_reads_as_step_verb_path_and_values():
    mismatch = Mismatch("some-trace", 3, ["reap"], [Difference("jobs/j/phase", "Aborted", "Aborting")], {})

    assert str(mismatch).splitlines() == [
        'some-trace, step 3: ["reap"]',
        "    jobs/j/phase",
        "      expected 'Aborted'",
        "      got      'Aborting'",
    ]


def test_scale_changes_only_what_it_names():
    task = {"name": "a", "replicas": 2, "minAvailable": 2}

    assert scaled(task, 3) == {"name": "a", "replicas": 3, "minAvailable": 2}
    assert scaled(task, {"replicas": 1, "minAvailable": 1}) == {"name": "a", "replicas": 1, "minAvailable": 1}
