"""Deletion: preconditions, finalizers, propagation, and the grace of a bound pod."""

from __future__ import annotations

import pytest

from unit.store.conformance.objects import changed, check, config, events, job, pod, told, version
from vcnb.errors import Conflict, InvalidObject, NotFound
from vcnb.resources.kinds import CONFIGMAP, JOB, POD
from vcnb.store.protocol import ObjectStore


@check
async def a_deleted_object_is_gone(store: ObjectStore, namespace: str) -> None:
    await store.create(config("a", namespace))
    await store.delete(CONFIGMAP, "a", namespace)
    with pytest.raises(NotFound):
        await store.get(CONFIGMAP, "a", namespace)
    with pytest.raises(NotFound):
        await store.delete(CONFIGMAP, "a", namespace)


@check
async def a_name_can_be_used_again(store: ObjectStore, namespace: str) -> None:
    first = await store.create(config("a", namespace))
    await store.delete(CONFIGMAP, "a", namespace)
    second = await store.create(config("a", namespace))
    assert second["metadata"]["uid"] != first["metadata"]["uid"]
    assert int(version(second)) > int(version(first))


@check
async def deletion_has_preconditions(store: ObjectStore, namespace: str) -> None:
    first = await store.create(config("a", namespace))
    made = await store.update({**first, "data": {"x": "1"}})
    with pytest.raises(Conflict):
        await store.delete(CONFIGMAP, "a", namespace, uid="11111111-1111-4111-8111-111111111111")
    with pytest.raises(Conflict):
        await store.delete(CONFIGMAP, "a", namespace, resource_version=version(first))
    await store.delete(CONFIGMAP, "a", namespace, uid=made["metadata"]["uid"], resource_version=version(made))


@check
async def a_finalizer_keeps_a_deleted_object(store: ObjectStore, namespace: str) -> None:
    sent = config("a", namespace)
    sent["metadata"]["finalizers"] = ["vcnb.io/keep"]
    await store.create(sent)
    marked = await store.delete(CONFIGMAP, "a", namespace)
    assert marked["metadata"]["deletionTimestamp"]
    again = await store.delete(CONFIGMAP, "a", namespace)
    assert again["metadata"]["deletionTimestamp"] == marked["metadata"]["deletionTimestamp"]
    await store.patch(CONFIGMAP, "a", namespace, {"metadata": {"finalizers": None}})
    with pytest.raises(NotFound):
        await store.get(CONFIGMAP, "a", namespace)


@check
async def a_deletion_is_a_change_of_the_wish(store: ObjectStore, namespace: str) -> None:
    sent = job("a", namespace)
    sent["metadata"]["finalizers"] = ["vcnb.io/keep"]
    await store.create(sent)
    marked = await store.delete(JOB, "a", namespace)
    assert marked["metadata"]["generation"] == 2
    again = await store.delete(JOB, "a", namespace)
    assert again["metadata"]["generation"] == 2


@check
async def what_goes_at_once_goes_as_it_was(store: ObjectStore, namespace: str) -> None:
    made = await store.create(job("a", namespace))
    watch = await store.watch(JOB, namespace, resource_version=version(made))
    await store.delete(JOB, "a", namespace)
    (event,) = await events(watch, 1)
    assert told([event]) == [("DELETED", "a")]
    assert "deletionTimestamp" not in event.object["metadata"]
    assert event.object["metadata"]["generation"] == 1
    await watch.close()


@check
async def the_write_that_takes_the_last_finalizer_is_never_stored(store: ObjectStore, namespace: str) -> None:
    sent = job("a", namespace, maxRetry=3)
    sent["metadata"]["finalizers"] = ["vcnb.io/keep"]
    await store.create(sent)
    marked = await store.delete(JOB, "a", namespace)
    watch = await store.watch(JOB, namespace, resource_version=version(marked))
    after = await store.patch(JOB, "a", namespace, {"metadata": {"finalizers": None}, "spec": {"maxRetry": 4}})
    assert (after["spec"]["maxRetry"], after["metadata"].get("finalizers")) == (4, None)
    (event,) = await events(watch, 1)
    assert told([event]) == [("DELETED", "a")]
    assert event.object["spec"]["maxRetry"] == 3
    assert event.object["metadata"]["finalizers"] == ["vcnb.io/keep"]
    await watch.close()


@check
async def a_deletion_cannot_be_taken_back(store: ObjectStore, namespace: str) -> None:
    sent = config("a", namespace)
    sent["metadata"]["finalizers"] = ["vcnb.io/keep"]
    await store.create(sent)
    marked = await store.delete(CONFIGMAP, "a", namespace)
    metadata = {key: value for key, value in marked["metadata"].items() if key != "deletionTimestamp"}
    after = await store.update({**marked, "metadata": metadata, "data": {"x": "1"}})
    assert after["metadata"]["deletionTimestamp"] == marked["metadata"]["deletionTimestamp"]


@check
async def no_finalizer_comes_to_a_deleted_object(store: ObjectStore, namespace: str) -> None:
    sent = config("a", namespace)
    sent["metadata"]["finalizers"] = ["vcnb.io/keep"]
    await store.create(sent)
    await store.delete(CONFIGMAP, "a", namespace)
    with pytest.raises(InvalidObject):
        await store.patch(CONFIGMAP, "a", namespace, {"metadata": {"finalizers": ["vcnb.io/keep", "vcnb.io/more"]}})


@check
async def only_a_deletion_marks_an_object_deleted(store: ObjectStore, namespace: str) -> None:
    made = await store.create(config("a", namespace))
    metadata = {**changed(made)["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z"}
    with pytest.raises(InvalidObject):
        await store.update({**made, "metadata": metadata})
    assert await store.get(CONFIGMAP, "a", namespace) == made


@check
async def foreground_deletion_waits_for_the_garbage_collector(store: ObjectStore, namespace: str) -> None:
    sent = job("a", namespace)
    sent["metadata"]["finalizers"] = ["vcnb.io/keep"]
    await store.create(sent)
    marked = await store.delete(JOB, "a", namespace, propagation="Foreground")
    assert sorted(marked["metadata"]["finalizers"]) == ["foregroundDeletion", "vcnb.io/keep"]
    assert marked["metadata"]["deletionTimestamp"]


@check
async def orphaning_waits_for_the_garbage_collector(store: ObjectStore, namespace: str) -> None:
    sent = job("a", namespace)
    sent["metadata"]["finalizers"] = ["vcnb.io/keep"]
    await store.create(sent)
    marked = await store.delete(JOB, "a", namespace, propagation="Orphan")
    assert sorted(marked["metadata"]["finalizers"]) == ["orphan", "vcnb.io/keep"]


@check
async def a_pod_that_is_not_bound_goes_at_once(store: ObjectStore, namespace: str) -> None:
    made = await store.create(pod("a", namespace, schedulerName="nobody"))
    watch = await store.watch(POD, namespace, resource_version=version(made))
    await store.delete(POD, "a", namespace)
    found = await events(watch, 2)
    assert told(found) == [("MODIFIED", "a"), ("DELETED", "a")]
    assert found[0].object["metadata"]["deletionTimestamp"]
    assert found[0].object["metadata"]["deletionGracePeriodSeconds"] == 0
    with pytest.raises(NotFound):
        await store.get(POD, "a", namespace)
    await watch.close()


@check
async def a_finished_pod_goes_at_once(store: ObjectStore, namespace: str) -> None:
    for phase in ("Succeeded", "Failed"):
        await store.create(pod("a", namespace, nodeName="nowhere"))
        await store.patch(POD, "a", namespace, {"status": {"phase": phase}}, subresource="status")
        await store.delete(POD, "a", namespace)
        with pytest.raises(NotFound):
            await store.get(POD, "a", namespace)


@check
async def a_bound_pod_has_its_grace(store: ObjectStore, namespace: str) -> None:
    made = await store.create(pod("a", namespace, nodeName="nowhere", terminationGracePeriodSeconds=40))
    watch = await store.watch(POD, namespace, resource_version=version(made))
    marked = await store.delete(POD, "a", namespace)
    assert marked["metadata"]["deletionGracePeriodSeconds"] == 40
    assert (await store.get(POD, "a", namespace))["metadata"]["deletionTimestamp"]
    shorter = await store.delete(POD, "a", namespace, grace_period_seconds=10)
    assert shorter["metadata"]["deletionGracePeriodSeconds"] == 10
    longer = await store.delete(POD, "a", namespace, grace_period_seconds=60)
    assert longer["metadata"]["deletionGracePeriodSeconds"] == 10
    unsaid = await store.delete(POD, "a", namespace)
    assert unsaid["metadata"]["deletionGracePeriodSeconds"] == 10
    await store.delete(POD, "a", namespace, grace_period_seconds=0)
    found = await events(watch, 4)
    assert [event.type for event in found] == ["MODIFIED", "MODIFIED", "MODIFIED", "DELETED"]
    assert found[2].object["metadata"]["deletionGracePeriodSeconds"] == 0
    with pytest.raises(NotFound):
        await store.get(POD, "a", namespace)
    await watch.close()


@check
async def a_bound_pod_has_thirty_seconds_by_default(store: ObjectStore, namespace: str) -> None:
    await store.create(pod("a", namespace, nodeName="nowhere"))
    marked = await store.delete(POD, "a", namespace)
    assert marked["metadata"]["deletionGracePeriodSeconds"] == 30
    await store.delete(POD, "a", namespace, grace_period_seconds=0)


@check
async def a_second_deletion_that_names_no_grace_changes_nothing(store: ObjectStore, namespace: str) -> None:
    await store.create(pod("a", namespace, nodeName="nowhere"))
    await store.delete(POD, "a", namespace, grace_period_seconds=60)
    again = await store.delete(POD, "a", namespace)
    assert again["metadata"]["deletionGracePeriodSeconds"] == 60
    await store.patch(POD, "a", namespace, {"status": {"phase": "Succeeded"}}, subresource="status")
    await store.delete(POD, "a", namespace)
    assert (await store.get(POD, "a", namespace))["metadata"]["deletionGracePeriodSeconds"] == 60
    await store.delete(POD, "a", namespace, grace_period_seconds=0)


@check
async def a_terminating_pod_can_still_report(store: ObjectStore, namespace: str) -> None:
    await store.create(pod("a", namespace, nodeName="nowhere"))
    await store.delete(POD, "a", namespace)
    after = await store.patch(POD, "a", namespace, {"status": {"phase": "Failed"}}, subresource="status")
    assert after["status"]["phase"] == "Failed"
    assert (await store.get(POD, "a", namespace))["metadata"]["deletionTimestamp"]
    await store.delete(POD, "a", namespace, grace_period_seconds=0)


@check
async def a_finalizer_keeps_a_pod_beyond_its_grace(store: ObjectStore, namespace: str) -> None:
    sent = pod("a", namespace, nodeName="nowhere")
    sent["metadata"]["finalizers"] = ["vcnb.io/keep"]
    await store.create(sent)
    await store.delete(POD, "a", namespace, grace_period_seconds=0)
    assert (await store.get(POD, "a", namespace))["metadata"]["deletionTimestamp"]
    await store.patch(POD, "a", namespace, {"metadata": {"finalizers": []}})
    with pytest.raises(NotFound):
        await store.get(POD, "a", namespace)
