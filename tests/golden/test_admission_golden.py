"""What the API server with Volcano's webhooks answered to 187 manifests, and 17 updates, against our answers.

The default (strict) judgement is compared. Where it refuses what upstream accepts, the case stands in MISTAKES with its
reason, and in docs/differences-admission.md.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from vcnb.admission import Review, Rules, review

HERE = Path(__file__).parent
CASES: list[dict[str, Any]] = json.loads((HERE / "admission.json").read_text())
DIFFERENCES = HERE.parent.parent / "docs" / "differences-admission.md"

MISTAKES = {
    "exit-action-SyncJob": "an internal action in an exit-code policy",
    "exit-action-SyncQueue": "an internal action in an exit-code policy",
    "exit-action-OpenQueue": "an internal action in an exit-code policy",
    "exit-action-CloseQueue": "an internal action in an exit-code policy",
    "exit-action-Nonsense": "an unknown action in an exit-code policy",
    "exit-action-empty": "no action in an exit-code policy",
    "timeout-negative": "a negative timeout",
    "plugins-env-0 (null)": "a plugin with nothing behind it, which would be off",
    "depends-iteration": "an iteration that is neither any nor all",
    "unknown-field": "an unknown field",
    "unknown-task-field": "an unknown field",
    "flow-duplicate": "two nodes of one name",
    "template-bad": "a template whose job can never be admitted",
}
NOT_UPSTREAM = {"unknown-field", "unknown-task-field"}
"""Refused even when a controller wrote it; upstream drops the field."""


def name_of(case: Mapping[str, Any]) -> str:
    null = case["object"]["kind"] == "Job" and None in (case["object"]["spec"].get("plugins") or {}).values()
    return f"{case['name']} (null)" if null else str(case["name"])


def _queue(name: str, state: str = "Open", **spec: Any) -> dict[str, Any]:
    return {"kind": "Queue", "metadata": {"name": name}, "spec": {"weight": 1, **spec}, "status": {"state": state}}


class RecordedWorld:
    """The queues that existed when the answers were recorded."""

    _queues = {  # noqa: RUF012 - never changed
        queue["metadata"]["name"]: queue
        for queue in (
            *map(_queue, ("root", "default", "other", "parent")),
            _queue("child", parent="parent"),
            _queue("closed", "Closed"),
        )
    }

    def queue(self, name: str) -> Any:
        return self._queues.get(name)

    def queues(self) -> list[Any]:
        return list(self._queues.values())

    def namespace(self, name: str) -> Any:
        return None

    def template(self, namespace: str, name: str) -> Any:
        return None

    def priority_class(self, name: str) -> Any:
        return None


def judge(case: Mapping[str, Any], *, strict: bool) -> Review:
    rules = Rules() if strict else Rules.upstream()
    return review("CREATE", case["object"], None, RecordedWorld(), strict=strict, rules=rules)


def test_every_case_is_there() -> None:
    assert len(CASES) == 187
    assert sum("update" in case for case in CASES) == 17
    assert MISTAKES.keys() <= set(map(name_of, CASES))


@pytest.mark.parametrize("case", CASES, ids=name_of)
def test_the_answer_is_upstreams_or_a_listed_mistake(case: dict[str, Any]) -> None:
    answer = judge(case, strict=True)

    if name_of(case) in MISTAKES:
        assert case["accepted"]
        assert answer.problems
    else:
        assert (not answer.problems) == case["accepted"], answer.problems
    if not answer.problems:
        assert answer.object["spec"] == case["stored"]


@pytest.mark.parametrize("case", [case for case in CASES if name_of(case) not in NOT_UPSTREAM], ids=name_of)
def test_what_controllers_write_is_judged_as_upstream_does(case: dict[str, Any]) -> None:
    answer = judge(case, strict=False)

    assert (not answer.problems) == case["accepted"], answer.problems
    assert not answer.warnings
    if case["accepted"]:
        assert answer.object["spec"] == case["stored"]


@pytest.mark.parametrize("strict", [True, False], ids=["strict", "lenient"])
@pytest.mark.parametrize("case", [case for case in CASES if "update" in case], ids=name_of)
def test_updates(case: dict[str, Any], strict: bool) -> None:
    old = {**case["object"], "spec": case["stored"]}
    new = {**case["object"], "spec": case["updated"]}

    answer = review("UPDATE", new, old, RecordedWorld(), strict=strict)

    assert (not answer.problems) == case["update_accepted"], answer.problems
    if case["update_accepted"]:
        assert answer.object["spec"] == case["updated"]


@pytest.mark.parametrize("case", [case for case in CASES if case["accepted"]], ids=name_of)
def test_what_is_stored_can_be_submitted_again_unchanged(case: dict[str, Any]) -> None:
    if name_of(case) in MISTAKES:
        return
    again = {**case["object"], "spec": case["stored"]}

    answer = review("CREATE", again, None, RecordedWorld())

    assert not answer.problems
    assert answer.object["spec"] == case["stored"]


@pytest.mark.parametrize("case", CASES, ids=name_of)
def test_each_refusal_names_a_field_and_says_why(case: dict[str, Any]) -> None:
    for problem in judge(case, strict=True).problems:
        assert problem.path.startswith(("spec", "metadata"))
        assert problem.line is None
        assert len(problem.message) > 8


@pytest.mark.parametrize("name", MISTAKES)
def test_each_mistake_is_documented(name: str) -> None:
    assert f"`{name}`" in DIFFERENCES.read_text()
