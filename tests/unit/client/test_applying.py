"""apply: what is written is laid over what is there, as kubectl does it."""

import json

from vcnb.client.applying import LAST_APPLIED, merged, with_last_applied


def queue(spec, **meta):
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Queue",
        "metadata": {"name": "q", **meta},
        "spec": spec,
    }


def test_a_written_field_changes_and_a_controllers_field_stays():
    old = with_last_applied(queue({"weight": 1, "parent": "root"}), queue({"weight": 1}))
    written = queue({"weight": 2})

    new = merged(old, written)

    assert new["spec"] == {"weight": 2, "parent": "root"}


def test_a_field_taken_out_of_the_manifest_is_taken_out_of_the_object():
    old = with_last_applied(
        queue({"weight": 1, "capability": {"cpu": "2", "memory": "1Gi"}}),
        queue({"capability": {"cpu": "2", "memory": "1Gi"}}),
    )
    written = queue({"capability": {"cpu": "2"}})

    new = merged(old, written)

    assert new["spec"] == {"weight": 1, "capability": {"cpu": "2"}}


def test_labels_are_merged_and_removed_like_fields():
    old = with_last_applied(
        queue({}, labels={"a": "1", "b": "1", "other": "x"}), queue({}, labels={"a": "1", "b": "1"})
    )
    written = queue({}, labels={"a": "2"})

    new = merged(old, written)

    assert new["metadata"]["labels"] == {"a": "2", "other": "x"}


def test_what_was_written_is_remembered_in_kubectls_annotation():
    new = with_last_applied(queue({"weight": 1}), queue({"weight": 1}))

    assert json.loads(new["metadata"]["annotations"][LAST_APPLIED])["spec"] == {"weight": 1}


def test_a_broken_annotation_is_as_none():
    old = queue({"weight": 3}, annotations={LAST_APPLIED: "{not json"})

    assert merged(old, queue({}))["spec"] == {"weight": 3}
