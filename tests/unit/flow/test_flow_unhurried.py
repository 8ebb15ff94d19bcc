"""Conditions that may take long: 1 s per evaluation in a worker (jobflow.md 14.3)."""

from __future__ import annotations

import pytest

from vcnb.controllers.flow import unhurried
from vcnb.controllers.flow.expressions import ConditionError, evaluate

LONG = {"params": {"items": list(range(100_000))}}
SHORT = {"params": {"items": list(range(100))}}


@pytest.mark.parametrize(
    ("expression", "variables", "quick"),
    [
        ("params.items.size() > 3", LONG, True),
        ("params.items.all(x, x >= 0)", LONG, True),
        ("params.items.map(x, x * 2).size() > 3", SHORT, True),
        ("params.items.map(x, x * 2).size() > 3", LONG, False),
        ("params.items.exists(x, params.items.exists(y, x == -y))", LONG, False),
        ("params.items.all(x, params.items.all(y, x * y >= 0))", SHORT, True),
        ("(params.items + params.items).map(x, (params.items + params.items).map(y, x))", SHORT, False),
        ("'.map(' == params.items[0]", LONG, True),
    ],
)
def test_what_is_quick_is_seen_in_loops_and_lengths(expression, variables, quick):
    assert unhurried.is_quick(expression, variables) is quick


def test_what_takes_longer_than_a_second_is_an_error():
    with pytest.raises(ConditionError, match="takes longer than 1 s"):
        evaluate("params.items.map(x, x * 2).size() > 3", LONG)


def test_what_is_ready_in_a_second_has_its_value():
    variables = {"params": {"items": list(range(1500))}}
    expression = "params.items.filter(x, x % 500 == 0)"
    assert not unhurried.is_quick(expression, variables)

    assert evaluate(expression, variables) == [0, 500, 1000]


def test_a_mistake_is_told_as_in_this_process():
    variables = {"params": {"items": list(range(1500))}}

    with pytest.raises(ConditionError, match="there is no key 'missing'"):
        evaluate("params.items.map(x, params.missing)", variables)


def test_a_process_that_cannot_be_started_is_an_error_of_the_condition(monkeypatch):
    monkeypatch.setattr("vcnb.controllers.flow.unhurried.sys.executable", "/no/such/python")

    with pytest.raises(ConditionError, match="could not be evaluated in a process of its own"):
        evaluate("params.items.map(x, x * 2).size() > 3", LONG)
