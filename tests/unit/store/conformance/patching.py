"""JSON merge patch and JSON patch."""

from __future__ import annotations

import pytest

from unit.store.conformance.objects import check, config, job, podgroup, version
from vcnb.errors import Conflict, InvalidObject, NotFound
from vcnb.resources.kinds import CONFIGMAP, JOB, PODGROUP
from vcnb.store.protocol import ObjectStore


@check
async def a_merge_patch_merges_objects_and_removes_with_none(store: ObjectStore, namespace: str) -> None:
    await store.create(config("a", namespace, x="1", y="2"))
    after = await store.patch(CONFIGMAP, "a", namespace, {"data": {"x": None, "z": "3"}})
    assert after["data"] == {"y": "2", "z": "3"}


@check
async def a_merge_patch_replaces_lists(store: ObjectStore, namespace: str) -> None:
    made = await store.create(job("a", namespace))
    task = {**made["spec"]["tasks"][0], "name": "other"}
    after = await store.patch(JOB, "a", namespace, {"spec": {"tasks": [task]}})
    assert [item["name"] for item in after["spec"]["tasks"]] == ["other"]


@check
async def a_patch_that_changes_nothing_is_no_version(store: ObjectStore, namespace: str) -> None:
    made = await store.create(config("a", namespace, x="1"))
    assert version(await store.patch(CONFIGMAP, "a", namespace, {"data": {"x": "1", "y": None}})) == version(made)
    same = [{"op": "replace", "path": "/data/x", "value": "1"}]
    assert version(await store.patch(CONFIGMAP, "a", namespace, same, type="json")) == version(made)


@check
async def a_version_in_a_merge_patch_is_a_precondition(store: ObjectStore, namespace: str) -> None:
    made = await store.create(config("a", namespace))
    patch = {"metadata": {"resourceVersion": version(made)}, "data": {"x": "1"}}
    await store.patch(CONFIGMAP, "a", namespace, patch)
    with pytest.raises(Conflict):
        await store.patch(CONFIGMAP, "a", namespace, {**patch, "data": {"x": "2"}})


@check
async def a_patch_without_a_version_always_fits(store: ObjectStore, namespace: str) -> None:
    await store.create(config("a", namespace))
    await store.patch(CONFIGMAP, "a", namespace, {"data": {"x": "1"}})
    after = await store.patch(CONFIGMAP, "a", namespace, {"data": {"y": "2"}})
    assert after["data"] == {"x": "1", "y": "2"}


@check
async def a_patch_of_nothing_is_not_found(store: ObjectStore, namespace: str) -> None:
    with pytest.raises(NotFound):
        await store.patch(CONFIGMAP, "a", namespace, {"data": {"x": "1"}})


@check
async def a_patch_leaves_status_alone_where_it_is_a_subresource(store: ObjectStore, namespace: str) -> None:
    await store.create(job("a", namespace))
    await store.patch(JOB, "a", namespace, {"status": {"running": 2}}, subresource="status")
    after = await store.patch(JOB, "a", namespace, {"status": {"running": 9}, "spec": {"maxRetry": 4}})
    assert after["status"]["running"] == 2
    assert after["spec"]["maxRetry"] == 4


@check
async def a_status_patch_changes_status_alone(store: ObjectStore, namespace: str) -> None:
    made = await store.create(job("a", namespace))
    patch = {"status": {"running": 2}, "spec": {"maxRetry": 9}}
    after = await store.patch(JOB, "a", namespace, patch, subresource="status")
    assert after["status"]["running"] == 2
    assert after["spec"] == made["spec"]


@check
async def a_kind_without_status_subresource_has_its_status_patched_as_the_rest(
    store: ObjectStore, namespace: str
) -> None:
    await store.create(podgroup("a", namespace, phase="Pending"))
    after = await store.patch(PODGROUP, "a", namespace, {"status": {"phase": "Inqueue"}})
    assert after["status"]["phase"] == "Inqueue"
    with pytest.raises(NotFound):
        await store.patch(PODGROUP, "a", namespace, {"status": {"phase": "Running"}}, subresource="status")


@check
async def a_json_patch_applies_its_operations_in_order(store: ObjectStore, namespace: str) -> None:
    await store.create(config("a", namespace, x="1", y="2"))
    operations = [
        {"op": "test", "path": "/data/x", "value": "1"},
        {"op": "replace", "path": "/data/x", "value": "3"},
        {"op": "remove", "path": "/data/y"},
        {"op": "add", "path": "/metadata/labels", "value": {}},
        {"op": "add", "path": "/metadata/labels/vcnb.io~1note", "value": "n"},
        {"op": "copy", "from": "/data/x", "path": "/data/z"},
    ]
    after = await store.patch(CONFIGMAP, "a", namespace, operations, type="json")
    assert after["data"] == {"x": "3", "z": "3"}
    assert after["metadata"]["labels"] == {"vcnb.io/note": "n"}


@check
async def a_json_patch_reaches_into_lists(store: ObjectStore, namespace: str) -> None:
    made = await store.create(job("a", namespace))
    task = made["spec"]["tasks"][0]
    operations = [
        {"op": "add", "path": "/spec/tasks/-", "value": {**task, "name": "last"}},
        {"op": "add", "path": "/spec/tasks/0", "value": {**task, "name": "first"}},
        {"op": "replace", "path": "/spec/tasks/1/replicas", "value": 4},
    ]
    after = await store.patch(JOB, "a", namespace, operations, type="json")
    found = [(item["name"], item["replicas"]) for item in after["spec"]["tasks"]]
    assert found == [("first", 1), ("main", 4), ("last", 1)]


@check
async def a_json_patch_whose_test_fails_changes_nothing(store: ObjectStore, namespace: str) -> None:
    made = await store.create(config("a", namespace, x="1"))
    operations = [
        {"op": "replace", "path": "/data/x", "value": "2"},
        {"op": "test", "path": "/data/x", "value": "1"},
    ]
    with pytest.raises(InvalidObject):
        await store.patch(CONFIGMAP, "a", namespace, operations, type="json")
    assert await store.get(CONFIGMAP, "a", namespace) == made
