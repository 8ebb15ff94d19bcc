"""create, update and update_status."""

from __future__ import annotations

import re

import pytest

from unit.store.conformance.objects import changed, check, config, job, labelled, pod, podgroup, version
from vcnb.clock import parse_time
from vcnb.errors import AlreadyExists, Conflict, InvalidObject, NotFound
from vcnb.resources.kinds import CONFIGMAP, JOB
from vcnb.store.protocol import ObjectStore


@check
async def create_sets_what_only_the_server_sets(store: ObjectStore, namespace: str) -> None:
    sent = config("a", namespace, x="1")
    sent["metadata"].update(
        uid="mine", creationTimestamp="1999-01-01T00:00:00Z", deletionTimestamp="1999-01-01T00:00:00Z"
    )
    made = await store.create(sent)
    metadata = made["metadata"]
    assert re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", metadata["uid"])
    assert parse_time(metadata["creationTimestamp"]) > parse_time("2020-01-01T00:00:00Z")
    assert metadata["resourceVersion"]
    assert "deletionTimestamp" not in metadata
    assert made["data"] == {"x": "1"}


@check
async def what_was_created_can_be_read(store: ObjectStore, namespace: str) -> None:
    made = await store.create(config("a", namespace, x="1"))
    assert await store.get(CONFIGMAP, "a", namespace) == made


@check
async def a_name_is_taken_once_in_a_namespace(store: ObjectStore, namespace: str) -> None:
    await store.create(config("a", namespace))
    with pytest.raises(AlreadyExists):
        await store.create(config("a", namespace))


@check
async def a_created_object_must_not_carry_a_version(store: ObjectStore, namespace: str) -> None:
    made = await store.create(config("a", namespace))
    copy = {**made, "metadata": {**made["metadata"], "name": "b"}}
    with pytest.raises(InvalidObject):
        await store.create(copy)


@check
async def a_generated_name_is_the_prefix_and_five_characters(store: ObjectStore, namespace: str) -> None:
    sent = config("", namespace)
    sent["metadata"] = {"generateName": "a-", "namespace": namespace}
    first = (await store.create(sent))["metadata"]["name"]
    second = (await store.create(sent))["metadata"]["name"]
    assert re.fullmatch(r"a-[bcdfghjklmnpqrstvwxz2456789]{5}", first)
    assert first != second


@check
async def a_long_prefix_is_cut_for_a_generated_name(store: ObjectStore, namespace: str) -> None:
    sent = config("", namespace)
    sent["metadata"] = {"generateName": "a" * 100, "namespace": namespace}
    assert len((await store.create(sent))["metadata"]["name"]) == 63


@check
async def names_are_dns_names(store: ObjectStore, namespace: str) -> None:
    for name in ("", "A", "a/b", "../a", ".", "..", "a_b", "-a", "a-", "a..b", "a b", "ä", "a\n", "a" * 254):
        with pytest.raises(InvalidObject):
            await store.create(config(name, namespace))
    for name in ("a", "0", "a.b-c.d", "a" * 253):
        assert (await store.create(config(name, namespace)))["metadata"]["name"] == name


@check
async def labels_and_annotations_are_strings(store: ObjectStore, namespace: str) -> None:
    for field in ("labels", "annotations"):
        sent = config("a", namespace)
        sent["metadata"][field] = {"number": 1}
        with pytest.raises(InvalidObject):
            await store.create(sent)


@check
async def an_owner_reference_names_its_owner(store: ObjectStore, namespace: str) -> None:
    sent = config("a", namespace)
    sent["metadata"]["ownerReferences"] = [{"apiVersion": "v1", "kind": "ConfigMap", "name": "owner"}]
    with pytest.raises(InvalidObject):
        await store.create(sent)


@check
async def only_one_owner_is_the_controller(store: ObjectStore, namespace: str) -> None:
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "controller": True}
    sent = config("a", namespace)
    sent["metadata"]["ownerReferences"] = [{**owner, "uid": "1"}, {**owner, "uid": "2"}]
    with pytest.raises(InvalidObject):
        await store.create(sent)


@check
async def a_new_object_has_no_status_where_status_is_a_subresource(store: ObjectStore, namespace: str) -> None:
    made = await store.create({**job("a", namespace), "status": {"running": 7}})
    assert (made.get("status") or {}).get("running") is None


@check
async def a_new_object_keeps_its_status_where_it_is_no_subresource(store: ObjectStore, namespace: str) -> None:
    made = await store.create(podgroup("a", namespace, phase="Inqueue"))
    assert made["status"]["phase"] == "Inqueue"


@check
async def a_new_pod_is_pending(store: ObjectStore, namespace: str) -> None:
    made = await store.create({**pod("a", namespace), "status": {"phase": "Running"}})
    assert made["status"]["phase"] == "Pending"


@check
async def update_replaces_and_raises_the_version(store: ObjectStore, namespace: str) -> None:
    made = await store.create(config("a", namespace, x="1", y="2"))
    after = await store.update({**made, "data": {"x": "3"}})
    assert after["data"] == {"x": "3"}
    assert int(version(after)) > int(version(made))
    assert after["metadata"]["uid"] == made["metadata"]["uid"]


@check
async def update_with_an_old_version_conflicts(store: ObjectStore, namespace: str) -> None:
    made = await store.create(config("a", namespace))
    await store.update({**made, "data": {"x": "1"}})
    with pytest.raises(Conflict):
        await store.update({**made, "data": {"x": "2"}})


@check
async def update_with_another_uid_conflicts(store: ObjectStore, namespace: str) -> None:
    made = await store.create(config("a", namespace))
    metadata = {**made["metadata"], "uid": "11111111-1111-4111-8111-111111111111"}
    with pytest.raises(Conflict):
        await store.update({**made, "metadata": metadata})


@check
async def update_of_nothing_is_not_found(store: ObjectStore, namespace: str) -> None:
    with pytest.raises(NotFound):
        await store.update(config("a", namespace))
    with pytest.raises(NotFound):
        await store.update_status(job("a", namespace))


@check
async def update_cannot_change_what_only_the_server_sets(store: ObjectStore, namespace: str) -> None:
    made = await store.create(config("a", namespace))
    metadata = {**made["metadata"], "labels": {"a": "b"}, "creationTimestamp": "1999-01-01T00:00:00Z", "generation": 99}
    after = await store.update({**made, "metadata": metadata})
    assert after["metadata"]["creationTimestamp"] == made["metadata"]["creationTimestamp"]
    assert after["metadata"].get("generation") == made["metadata"].get("generation")
    assert after["metadata"]["labels"] == {"a": "b"}


@check
async def a_write_that_changes_nothing_is_no_version(store: ObjectStore, namespace: str) -> None:
    made = await store.create(labelled("a", namespace, x="y"))
    assert version(await store.update(made)) == version(made)
    assert version(await store.update(labelled("a", namespace, x="y"))) == version(made)
    started = await store.create(job("a", namespace))
    status = {"state": {"phase": "Running"}}
    first = await store.update_status({**started, "status": status})
    assert version(await store.update_status({**first, "status": {"state": {"phase": "Running"}}})) == version(first)


@check
async def true_is_not_one(store: ObjectStore, namespace: str) -> None:
    made = await store.create(pod("a", namespace, hostNetwork=True))
    group = await store.create(podgroup("a", namespace, running=1))
    assert made["spec"]["hostNetwork"] is True
    assert group["status"]["running"] is not True
    after = await store.update({**group, "status": {"running": 0}})
    assert version(after) != version(group)


@check
async def update_leaves_status_alone_where_it_is_a_subresource(store: ObjectStore, namespace: str) -> None:
    made = await store.create(job("a", namespace))
    running = await store.update_status({**made, "status": {"running": 1}})
    after = await store.update({**changed(running, status={"running": 9}), "spec": {**made["spec"], "maxRetry": 5}})
    assert after["status"]["running"] == 1
    assert after["spec"]["maxRetry"] == 5


@check
async def update_status_changes_status_alone(store: ObjectStore, namespace: str) -> None:
    made = await store.create(job("a", namespace))
    sent = {**made, "spec": {**made["spec"], "maxRetry": 9}, "status": {"running": 1}}
    after = await store.update_status(sent)
    assert after["status"]["running"] == 1
    assert after["spec"] == made["spec"]


@check
async def update_status_with_an_old_version_conflicts(store: ObjectStore, namespace: str) -> None:
    made = await store.create(job("a", namespace))
    await store.update_status({**made, "status": {"running": 1}})
    with pytest.raises(Conflict):
        await store.update_status({**made, "status": {"running": 2}})


@check
async def a_kind_without_status_subresource_has_no_update_status(store: ObjectStore, namespace: str) -> None:
    made = await store.create(podgroup("a", namespace))
    with pytest.raises(NotFound):
        await store.update_status({**made, "status": {"phase": "Inqueue"}})
    assert (await store.update({**made, "status": {"phase": "Inqueue"}}))["status"]["phase"] == "Inqueue"


@check
async def generation_counts_changes_of_the_wish(store: ObjectStore, namespace: str) -> None:
    made = await store.create(job("a", namespace))
    assert made["metadata"]["generation"] == 1
    told = await store.update_status({**made, "status": {"running": 1}})
    marked = await store.patch(JOB, "a", namespace, {"metadata": {"labels": {"x": "y"}}})
    assert told["metadata"]["generation"] == marked["metadata"]["generation"] == 1
    wished = await store.patch(JOB, "a", namespace, {"spec": {"maxRetry": 5}})
    assert wished["metadata"]["generation"] == 2


@check
async def status_is_part_of_the_wish_where_it_is_no_subresource(store: ObjectStore, namespace: str) -> None:
    made = await store.create(podgroup("a", namespace, phase="Pending"))
    after = await store.update({**made, "status": {"phase": "Inqueue"}})
    assert (made["metadata"]["generation"], after["metadata"]["generation"]) == (1, 2)


@check
async def of_nothing_there_is_nothing(store: ObjectStore, namespace: str) -> None:
    sent = config("a", namespace)
    sent["metadata"] |= {"labels": {}, "annotations": {}, "finalizers": [], "ownerReferences": []}
    made = await store.create(sent)
    assert not {"labels", "annotations", "finalizers", "ownerReferences"} & set(made["metadata"])
    patch = {"metadata": {"labels": {}, "annotations": {}, "finalizers": [], "ownerReferences": []}}
    assert version(await store.patch(CONFIGMAP, "a", namespace, patch)) == version(made)


@check
async def a_write_to_the_status_says_nothing_about_the_rest(store: ObjectStore, namespace: str) -> None:
    sent = job("a", namespace)
    sent["metadata"]["finalizers"] = ["vcnb.io/keep"]
    made = await store.create(sent)
    await store.delete(JOB, "a", namespace)
    metadata = {**changed(made)["metadata"], "finalizers": ["vcnb.io/keep", "vcnb.io/more"], "labels": {"x": "y"}}
    after = await store.update_status({**made, "metadata": metadata, "status": {"running": 1}})
    assert after["status"]["running"] == 1
    assert after["metadata"]["finalizers"] == ["vcnb.io/keep"]
    assert "labels" not in after["metadata"]


@check
async def what_was_read_stays_as_it_was(store: ObjectStore, namespace: str) -> None:
    made = await store.create(config("a", namespace, x="1"))
    await store.update({**made, "data": {"x": "2"}})
    assert made["data"] == {"x": "1"}


@check
async def what_the_caller_does_later_changes_nothing(store: ObjectStore, namespace: str) -> None:
    sent = job("a", namespace)
    await store.create(sent)
    sent["spec"]["tasks"][0]["name"] = "other"
    sent["metadata"]["labels"] = {"x": "y"}
    read = await store.get(JOB, "a", namespace)
    assert read["spec"]["tasks"][0]["name"] == "main"
    assert "labels" not in read["metadata"]
    draft = {**read, "spec": {**read["spec"], "plugins": {"env": []}}}
    await store.update(draft)
    draft["spec"]["plugins"]["env"].append("x")
    assert (await store.get(JOB, "a", namespace))["spec"]["plugins"] == {"env": []}


@check
async def an_unknown_kind_is_refused(store: ObjectStore, namespace: str) -> None:
    with pytest.raises(InvalidObject, match=r"apiVersion|kind"):
        await store.create({"apiVersion": "v1", "kind": "Jobb", "metadata": {"name": "a", "namespace": namespace}})
