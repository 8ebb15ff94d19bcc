"""Patches as functions of values."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vcnb.errors import InvalidObject
from vcnb.store.patch import json_patch, merge_diff, merge_patch

# The examples of RFC 7386, appendix A, that begin with an object and patch with one.
RFC_7386 = [
    ({"a": "b"}, {"a": "c"}, {"a": "c"}),
    ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
    ({"a": "b"}, {"a": None}, {}),
    ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
    ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
    ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
    ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
    ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
    ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
    ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
    ({"a": "b"}, {"a": {"c": None, "d": 1}}, {"a": {"d": 1}}),
]


@pytest.mark.parametrize(("target", "patch", "expected"), RFC_7386)
def test_merge_patch(target: dict[str, Any], patch: dict[str, Any], expected: dict[str, Any]) -> None:
    assert merge_patch(target, patch) == expected


def test_a_merge_patch_changes_neither_target_nor_patch() -> None:
    target = {"a": {"b": [1]}, "c": {"d": 1}}
    patch = {"a": {"e": [2]}}
    after = merge_patch(target, patch)
    after["a"]["e"].append(3)
    assert target == {"a": {"b": [1]}, "c": {"d": 1}}
    assert patch == {"a": {"e": [2]}}
    assert after["c"] is target["c"]
    assert after["a"]["b"] is target["a"]["b"]


def test_a_merge_patch_that_changes_nothing_gives_the_target_itself() -> None:
    target = {"a": {"b": [1, {"c": 2}]}, "d": 1}
    assert merge_patch(target, {"a": {"b": [1, {"c": 2}], "x": None}, "d": 1}) is target


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text("ab", max_size=2),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("abc", min_size=1, max_size=1), inner),
    max_leaves=12,
)


def without_none(value: Any) -> Any:
    """What a merge patch can say: no None as a member's value."""
    if isinstance(value, dict):
        return {key: without_none(item) for key, item in value.items() if item is not None}
    return value


OBJECTS = st.dictionaries(st.text("abc", min_size=1, max_size=1), JSON).map(without_none)


@given(OBJECTS, OBJECTS)
def test_merge_diff_is_the_way_from_one_to_the_other(old: dict[str, Any], new: dict[str, Any]) -> None:
    patch = merge_diff(old, new)
    assert merge_patch(old, patch) == new
    assert merge_diff(old, old) == {}


# RFC 6902, appendix A.
RFC_6902: list[tuple[Any, list[dict[str, Any]], Any]] = [
    ({"foo": "bar"}, [{"op": "add", "path": "/baz", "value": "qux"}], {"baz": "qux", "foo": "bar"}),
    ({"foo": ["bar", "baz"]}, [{"op": "add", "path": "/foo/1", "value": "qux"}], {"foo": ["bar", "qux", "baz"]}),
    ({"baz": "qux", "foo": "bar"}, [{"op": "remove", "path": "/baz"}], {"foo": "bar"}),
    ({"foo": ["bar", "qux", "baz"]}, [{"op": "remove", "path": "/foo/1"}], {"foo": ["bar", "baz"]}),
    ({"baz": "qux"}, [{"op": "replace", "path": "/baz", "value": "boo"}], {"baz": "boo"}),
    (
        {"foo": {"bar": "baz", "waldo": "fred"}, "qux": {"corge": "grault"}},
        [{"op": "move", "from": "/foo/waldo", "path": "/qux/thud"}],
        {"foo": {"bar": "baz"}, "qux": {"corge": "grault", "thud": "fred"}},
    ),
    (
        {"foo": ["all", "grass", "cows", "eat"]},
        [{"op": "move", "from": "/foo/1", "path": "/foo/3"}],
        {"foo": ["all", "cows", "eat", "grass"]},
    ),
    (
        {"baz": "qux", "foo": ["a", 2, "c"]},
        [{"op": "test", "path": "/baz", "value": "qux"}, {"op": "test", "path": "/foo/1", "value": 2}],
        {"baz": "qux", "foo": ["a", 2, "c"]},
    ),
    ({"foo": "bar"}, [{"op": "add", "path": "/child", "value": {"x": {}}}], {"foo": "bar", "child": {"x": {}}}),
    ({"/": 9, "~1": 10}, [{"op": "test", "path": "/~01", "value": 10}], {"/": 9, "~1": 10}),
    ({"a/b": 1}, [{"op": "replace", "path": "/a~1b", "value": 2}], {"a/b": 2}),
    ({"foo": ["bar"]}, [{"op": "add", "path": "/foo/-", "value": ["abc", "def"]}], {"foo": ["bar", ["abc", "def"]]}),
    ({"a": {"b": 1}}, [{"op": "copy", "from": "/a", "path": "/c"}], {"a": {"b": 1}, "c": {"b": 1}}),
    ({"a": 1}, [{"op": "add", "path": "", "value": {"b": 2}}], {"b": 2}),
    ({"a": None}, [{"op": "test", "path": "/a", "value": None}], {"a": None}),
]


@pytest.mark.parametrize(("target", "operations", "expected"), RFC_6902)
def test_json_patch(target: Any, operations: list[dict[str, Any]], expected: Any) -> None:
    before = repr(target)
    assert json_patch(target, operations) == expected
    assert repr(target) == before


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "test", "path": "/baz", "value": "bar"},
        {"op": "test", "path": "/one", "value": True},
        {"op": "add", "path": "/missing/bat", "value": "qux"},
        {"op": "remove", "path": "/missing"},
        {"op": "replace", "path": "/missing", "value": 1},
        {"op": "add", "path": "/list/3", "value": 1},
        {"op": "add", "path": "/list/01", "value": 1},
        {"op": "add", "path": "/list/-1", "value": 1},
        {"op": "remove", "path": "/list/-"},
        {"op": "remove", "path": ""},
        {"op": "replace", "path": "/one/x", "value": 1},
        {"op": "add", "path": "/one/x", "value": 1},
        {"op": "add", "path": "x", "value": 1},
        {"op": "add", "path": "/x"},
        {"op": "move", "from": "/deep", "path": "/deep/er"},
        {"op": "frobnicate", "path": "/x"},
        {"path": "/x"},
        "add",
    ],
)
def test_an_operation_that_cannot_be_done_is_refused(operation: Any) -> None:
    target = {"baz": "qux", "one": 1, "list": [1, 2], "deep": {"er": {}}}
    with pytest.raises(InvalidObject, match="operation 0"):
        json_patch(target, [operation])


def test_a_patched_object_shares_nothing_with_the_patch() -> None:
    value = {"x": [1]}
    after = json_patch({}, [{"op": "add", "path": "/a", "value": value}])
    value["x"].append(2)
    assert after == {"a": {"x": [1]}}
