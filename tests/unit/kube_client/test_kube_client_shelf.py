"""Flows that are kept in ConfigMaps look like JobFlows to whoever reads through the shelf."""

from __future__ import annotations

import asyncio
import json

import pytest

from vcnb.client.flows.parts import KEPT_IN, keeper_of
from vcnb.client.kube.shelf import LABEL, ShelfStore, is_shelved, shelved, taken_down
from vcnb.clock import VirtualClock
from vcnb.errors import Conflict, NotFound
from vcnb.resources.kinds import CONFIGMAP, JOB, JOBFLOW
from vcnb.store.informer import Informer
from vcnb.store.memory import MemoryStore


def flow(name: str, **spec) -> dict:
    return {
        "apiVersion": JOBFLOW.api_version,
        "kind": "JobFlow",
        "metadata": {"name": name, "namespace": "default", "labels": {"team": "a"}},
        "spec": {"flows": [{"name": "a"}], **spec},
    }


async def decides(obj) -> bool:
    return "params" in obj["spec"]


@pytest.fixture
def server() -> MemoryStore:
    return MemoryStore(VirtualClock())


@pytest.fixture
def store(server: MemoryStore) -> ShelfStore:
    return ShelfStore(server, decides)


def test_a_flow_survives_the_way_to_a_configmap_and_back():
    before = {**flow("f", params={"x": 1}), "status": {"state": {"phase": "Running"}}}

    after = taken_down(shelved(before))

    assert {**after, "metadata": {**after["metadata"], "annotations": {}}} == {
        **before,
        "metadata": {**before["metadata"], "annotations": {}},
    }
    assert is_shelved(after)
    assert not is_shelved(before)


def test_only_flows_that_must_be_are_kept_in_configmaps(server: MemoryStore, store: ShelfStore):
    asyncio.run(store.create(flow("plain")))
    made = asyncio.run(store.create(flow("decides", params={"x": 1})))

    assert [obj["metadata"]["name"] for obj in server.peek_all(JOBFLOW)] == ["plain"]
    (kept,) = server.peek_all(CONFIGMAP)
    assert kept["metadata"]["name"] == "vcnb-flow-decides"
    assert kept["metadata"]["labels"] == {"team": "a", LABEL: "JobFlow"}
    assert json.loads(kept["data"]["spec"])["params"] == {"x": 1}
    assert made["metadata"]["uid"] == kept["metadata"]["uid"]
    assert KEPT_IN not in kept["metadata"].get("annotations", {})


def test_both_are_listed_and_found_under_their_names(store: ShelfStore):
    asyncio.run(store.create(flow("b")))
    asyncio.run(store.create(flow("a", params={})))
    found = asyncio.run(store.list(JOBFLOW, "default"))

    assert [obj["metadata"]["name"] for obj in found.items] == ["a", "b"]
    assert asyncio.run(store.get(JOBFLOW, "a", "default"))["kind"] == "JobFlow"
    assert [
        obj["metadata"]["name"] for obj in asyncio.run(store.list(JOBFLOW, "default", label_selector="team=a")).items
    ] == ["a", "b"]
    with pytest.raises(NotFound):
        asyncio.run(store.get(JOBFLOW, "c", "default"))


def test_a_configmap_of_somebody_else_is_no_flow(server: MemoryStore, store: ShelfStore):
    other = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "vcnb-flow-x", "namespace": "default"},
        "data": {},
    }
    asyncio.run(server.create(other))

    with pytest.raises(NotFound):
        asyncio.run(store.get(JOBFLOW, "x", "default"))


def test_spec_and_status_are_written_apart(store: ShelfStore):
    made = asyncio.run(store.create(flow("f", params={})))
    running = asyncio.run(store.update_status({**made, "status": {"state": {"phase": "Running"}}}))
    changed = asyncio.run(
        store.update({**made, "metadata": running["metadata"], "spec": {"flows": [], "params": {"y": 2}}})
    )
    paused = asyncio.run(store.patch(JOBFLOW, "f", "default", {"spec": {"suspend": True}, "status": {"state": None}}))

    assert running["spec"] == made["spec"]
    assert changed["status"] == {"state": {"phase": "Running"}}
    assert paused["spec"] == {"flows": [], "params": {"y": 2}, "suspend": True}
    assert paused["status"] == {"state": {"phase": "Running"}}


def test_an_old_version_is_refused(store: ShelfStore):
    made = asyncio.run(store.create(flow("f", params={})))
    asyncio.run(store.update_status({**made, "status": {"x": 1}}))

    with pytest.raises(Conflict):
        asyncio.run(store.update_status({**made, "status": {"x": 2}}))
    change = {"metadata": {"resourceVersion": made["metadata"]["resourceVersion"]}, "spec": {"suspend": True}}
    with pytest.raises(Conflict):
        asyncio.run(store.patch(JOBFLOW, "f", "default", change))


def test_a_finalizer_keeps_a_flow_until_it_is_taken_off(store: ShelfStore):
    asyncio.run(store.create(flow("f", params={})))
    asyncio.run(store.patch(JOBFLOW, "f", "default", {"metadata": {"finalizers": ["vcnb/jobflow"]}}))
    asyncio.run(store.delete(JOBFLOW, "f", "default"))
    going = asyncio.run(store.get(JOBFLOW, "f", "default"))
    asyncio.run(store.patch(JOBFLOW, "f", "default", {"metadata": {"finalizers": None}}))

    assert going["metadata"]["deletionTimestamp"]
    with pytest.raises(NotFound):
        asyncio.run(store.get(JOBFLOW, "f", "default"))


def test_a_view_follows_flows_of_both_kinds(store: ShelfStore):
    async def follow() -> list[tuple[str, str]]:
        seen: list[tuple[str, str]] = []
        gone = asyncio.Event()

        def deleted(obj) -> None:
            seen.append(("-", obj["metadata"]["name"]))
            gone.set()

        view = Informer(store, JOBFLOW)
        view.subscribe(
            lambda obj: seen.append(("+", obj["metadata"]["name"])),
            lambda _, obj: seen.append(("~", obj["metadata"]["name"])),
            deleted,
        )
        await view.start()
        await view.wait_synced()
        plain = await store.create(flow("plain"))
        kept = await store.create(flow("kept", params={}))
        await store.update_status({**kept, "status": {"x": 1}})
        await store.update_status({**plain, "status": {"x": 1}})
        await store.delete(JOBFLOW, "kept", "default")
        await gone.wait()
        await view.stop()
        return seen

    seen = asyncio.run(follow())

    assert ("+", "plain") in seen
    kept = [what for what, name in seen if name == "kept"]
    assert kept[:2] == ["+", "~"]
    assert kept[-1] == "-"


def test_a_controller_of_kept_flows_sees_no_others(server: MemoryStore, store: ShelfStore):
    asyncio.run(store.create(flow("plain")))
    asyncio.run(store.create(flow("kept", params={})))
    only = ShelfStore(server, only=True)

    assert [obj["metadata"]["name"] for obj in asyncio.run(only.list(JOBFLOW)).items] == ["kept"]
    with pytest.raises(NotFound):
        asyncio.run(only.get(JOBFLOW, "plain", "default"))


def test_other_kinds_are_the_servers(server: MemoryStore, store: ShelfStore):
    job = {"apiVersion": JOB.api_version, "kind": "Job", "metadata": {"name": "j", "namespace": "default"}, "spec": {}}
    asyncio.run(store.create(job))

    assert server.peek(JOB, "j", "default") is not None
    assert asyncio.run(store.get(JOB, "j", "default"))["kind"] == "Job"


def test_what_belongs_to_a_kept_flow_is_owned_by_its_configmap(store: ShelfStore):
    kept = asyncio.run(store.create(flow("kept", params={})))
    plain = asyncio.run(store.create(flow("plain")))

    assert keeper_of(kept) == {"apiVersion": "v1", "kind": "ConfigMap", "name": "vcnb-flow-kept"}
    assert keeper_of(plain) == {"apiVersion": JOBFLOW.api_version, "kind": "JobFlow", "name": "plain"}
