"""get and list: scope, order, selectors."""

from __future__ import annotations

import pytest

from unit.store.conformance.objects import check, config, labelled, pod
from vcnb.errors import InvalidObject, NotFound
from vcnb.resources.kinds import CONFIGMAP, POD, PRIORITYCLASS
from vcnb.store.protocol import ObjectStore


def names(items: object) -> list[str]:
    return [item["metadata"]["name"] for item in items]  # type: ignore[attr-defined]


@check
async def what_is_missing_is_not_found(store: ObjectStore, namespace: str) -> None:
    with pytest.raises(NotFound) as caught:
        await store.get(CONFIGMAP, "a", namespace)
    assert caught.value.ref is not None
    assert caught.value.ref.name == "a"


@check
async def the_namespace_is_default_when_none_is_given(store: ObjectStore, namespace: str) -> None:
    sent = config(f"in-{namespace}", namespace)
    del sent["metadata"]["namespace"]
    made = await store.create(sent)
    assert made["metadata"]["namespace"] == "default"
    assert await store.get(CONFIGMAP, f"in-{namespace}") == made
    await store.delete(CONFIGMAP, f"in-{namespace}", "default")


@check
async def a_cluster_scoped_object_has_no_namespace(store: ObjectStore, namespace: str) -> None:
    name = f"of-{namespace}"
    sent = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}, "value": 1}
    made = await store.create(sent)
    assert "namespace" not in made["metadata"]
    assert (await store.get(PRIORITYCLASS, name))["value"] == 1
    await store.delete(PRIORITYCLASS, name)


@check
async def a_list_is_ordered_by_namespace_and_name(store: ObjectStore, namespace: str) -> None:
    for name in ("c", "a", "b"):
        await store.create(config(name, namespace))
    await store.delete(CONFIGMAP, "b", namespace)
    await store.create(config("aa", namespace))
    await store.create(config("b", namespace))
    assert names((await store.list(CONFIGMAP, namespace)).items) == ["a", "aa", "b", "c"]
    everywhere = (await store.list(CONFIGMAP)).items
    keys = [(item["metadata"]["namespace"], item["metadata"]["name"]) for item in everywhere]
    assert keys == sorted(keys)
    assert (namespace, "aa") in keys


@check
async def a_list_is_of_one_kind_and_namespace(store: ObjectStore, namespace: str) -> None:
    await store.create(config("a", namespace))
    await store.create(pod("b", namespace, schedulerName="nobody"))
    assert names((await store.list(CONFIGMAP, namespace)).items) == ["a"]
    assert (await store.list(CONFIGMAP, "elsewhere")).items == []


@check
async def labels_select(store: ObjectStore, namespace: str) -> None:
    await store.create(labelled("a", namespace, app="web", tier="front"))
    await store.create(labelled("b", namespace, app="web"))
    await store.create(labelled("c", namespace, app="db", tier="back"))
    await store.create(config("d", namespace))
    for selector, expected in {
        "": "abcd",
        "app=web": "ab",
        "app==web,tier=front": "a",
        "app!=web": "cd",
        "app in (web, db)": "abc",
        "tier notin (front)": "bcd",
        "tier": "ac",
        "!tier": "bd",
        "app,tier!=front": "bc",
    }.items():
        found = await store.list(CONFIGMAP, namespace, label_selector=selector)
        assert "".join(names(found.items)) == expected, selector


@check
async def fields_select(store: ObjectStore, namespace: str) -> None:
    await store.create(pod("a", namespace, nodeName="nowhere"))
    await store.create(pod("b", namespace, schedulerName="nobody"))
    await store.patch(POD, "a", namespace, {"status": {"phase": "Running"}}, subresource="status")
    for selector, expected in {
        "metadata.name=a": "a",
        "metadata.name!=a": "b",
        f"metadata.namespace={namespace}": "ab",
        "metadata.namespace=elsewhere": "",
        "spec.nodeName==nowhere": "a",
        "spec.nodeName=": "b",
        "status.phase=Running": "a",
        "status.phase!=Running,spec.nodeName!=nowhere": "b",
    }.items():
        found = await store.list(POD, namespace, field_selector=selector)
        assert "".join(names(found.items)) == expected, selector
    await store.delete(POD, "a", namespace, grace_period_seconds=0)


@check
async def a_selector_that_cannot_be_read_is_refused(store: ObjectStore, namespace: str) -> None:
    for selector in ("a=b=c", "in (", "a in b", "=", "a,,b"):
        with pytest.raises(InvalidObject):
            await store.list(CONFIGMAP, namespace, label_selector=selector)
    with pytest.raises(InvalidObject):
        await store.list(CONFIGMAP, namespace, field_selector="metadata.name")
