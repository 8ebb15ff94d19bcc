"""The table of transitions: what it allows, and that nothing else is."""

from __future__ import annotations

from uuid import UUID

import pytest
from msgspec.structs import replace

from unit.cache_jobs.job_stores import asked
from vcnb.cache.jobs import transitions as t
from vcnb.cache.jobs.record import JobState
from vcnb.cache.jobs.request import Request, job_path, new_id, normalise, review
from vcnb.cache.protocol import JobType
from vcnb.errors import InvalidObject, InvalidState

W, R, V, S, F, X = JobState

LEGAL = {
    (None, W), (S, W), (F, W), (X, W), (W, R), (R, V), (R, S), (R, F), (V, S), (V, F), (W, X), (R, X), (V, X),
    (R, W), (V, W), (S, None), (F, None), (X, None),
}  # fmt: skip


def test_the_table_has_the_transitions_of_the_reference_and_no_other() -> None:
    assert {(source, rule.target) for rule in t.TABLE.values() for source in rule.sources} == LEGAL
    assert list(t.TABLE) == [f"T{number}" for number in range(1, 14)]


@pytest.mark.parametrize("rule", list(t.TABLE))
def test_every_other_move_is_refused(rule: str) -> None:
    for source in (None, *JobState):
        for target in (None, *JobState):
            if source in t.TABLE[rule].sources and target == t.TABLE[rule].target:
                continue
            before = replace(asked(), state=source, owner="me") if source else None
            after = replace(asked(), state=target, owner="me", version=1) if target else None
            with pytest.raises(InvalidState):
                t.check(t.Move(rule, before, after, owner="me"))


def test_only_the_owner_ends_a_job() -> None:
    record = replace(asked(), state=R, owner="me", epoch=1, version=1)
    move = t.succeed(record, 1)
    t.check(move)
    with pytest.raises(InvalidState, match="does not own"):
        t.check(t.Move("T5", record, replace(move.after, owner="you"), owner="you"))  # type: ignore[arg-type]
    with pytest.raises(InvalidState, match="move of the owner"):
        t.check(t.Move("T5", record, move.after))


def test_a_duplicate_names_the_options_that_were_not_applied() -> None:
    for state in (W, R, V):
        existing = replace(asked(), state=state)
        answer = t.submit(existing, asked(uuid="u2", replicas=3, skip_if_exists=True), 5)
        assert answer == t.Duplicate(existing, ("replicas", "skip_if_exists"))


def test_reclaims_are_counted_until_the_checkpoint_moves() -> None:
    record = replace(asked(), state=R, owner="me", epoch=1, version=1)
    counts = []
    for mark in ("a", "a", "a", "b", "b"):
        move = t.reclaim(record, mark)
        assert move.after is not None
        counts.append(move.after.reclaims)
        record = replace(move.after, state=R, owner="me")
    assert counts == [1, 2, 3, 1, 2]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (" s3://b/d/ ", "s3://b/d"),
        ("s3://b//d//", "s3://b//d"),
        ("s3://", "s3://"),
        ("/", "/"),
        ("file:///", "file:///"),
        ("s3a://b/d", "s3a://b/d"),
        ("s3://b/a%2Fb/../c", "s3://b/a%2Fb/../c"),
    ],
)
def test_paths_are_normalised_and_otherwise_left_alone(given: str, expected: str) -> None:
    assert normalise(given) == expected


def test_copy_and_index_files_have_addresses_of_their_own() -> None:
    assert job_path(JobType.COPY, "", "s3://a/", "s3://b/") == "s3://a:s3://b"
    assert job_path(JobType.LOAD, "x", index_file="s3://b/list ") == "s3://b/list"


@pytest.mark.parametrize("path", ["s3://b/*.csv", "s3://b/a?", "", "  ", "s3://b/\0"])
def test_row_19_paths_that_are_refused(path: str) -> None:
    with pytest.raises(InvalidObject):
        review(Request(JobType.LOAD, path), 1, batch_size=200)


def test_a_path_that_really_has_a_star() -> None:
    assert review(Request(JobType.LOAD, "s3://b/*", escape=True), 1, batch_size=200).path == "s3://b/*"


def test_rows_29_and_31_options_that_are_refused() -> None:
    options = asked().options
    wrongs = [{"replicas": 0}, {"bandwidth": 0}, {"batch_size": 0}, {"file_filter": "("}, {"max_retries": -1}]
    for wrong in [replace(options, **change) for change in wrongs]:
        with pytest.raises(InvalidObject):
            review(Request(JobType.LOAD, "s3://b/d", options=wrong), 1, batch_size=200)


def test_secrets_do_not_show() -> None:
    options = replace(asked().options, storage_options={"key": "AKIA", "secret": "hush"})
    assert "hush" not in repr(options)
    assert "AKIA" not in str(options.public())


def test_ids_sort_in_the_order_they_were_made() -> None:
    made = [new_id(1_700_000_000_000 + n // 100) for n in range(1000)]
    assert made == sorted(made)
    assert len(set(made)) == 1000
    assert UUID(made[0]).version == 7
