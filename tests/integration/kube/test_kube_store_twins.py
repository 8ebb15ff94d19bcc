"""The store in memory and a real API server are told the same, call by call, and have to say the same.

Random calls on few objects, so that they meet: creates of what is there, updates with old versions and other uids, patches
that change nothing, finalizers, deletions with grace and preconditions. Compared are the error or the object that a call
ends in, and in the end what watches told, of all objects and of those with a label.

Left out is what the protocol leaves open: a write to the status of a Pod changes labels and annotations as well on an API
server, of a custom object it does not.
"""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import Mapping
from typing import Any

import pytest

from kube.apiserver import ApiServer
from unit.store.conformance.objects import config, events, job, pod, podgroup
from vcnb.clock import RealClock
from vcnb.errors import VcnbError
from vcnb.resources.kinds import CONFIGMAP, JOB, POD, PODGROUP, Kind, kind_of
from vcnb.store.kubernetes import open_store
from vcnb.store.memory import MemoryStore
from vcnb.store.protocol import Obj, ObjectStore, Watch

KINDS = (CONFIGMAP, JOB, POD, PODGROUP)
NAMES = ("a", "b")
LABELS = ({}, {"app": "web"}, {"app": "db", "tier": "back"})
FINALIZERS = ([], ["vcnb.io/one"], ["vcnb.io/one", "vcnb.io/two"])
SELECTORS = ("", "app=web")
SEEDS = int(os.environ.get("VCNB_TWIN_SEEDS", "12"))
"""Stories that are played; more of them in a night."""
OTHER_UID = "11111111-1111-4111-8111-111111111111"


class Twin:
    """One of the two stores, and the objects that it has handed out."""

    def __init__(self, store: ObjectStore, namespace: str) -> None:
        self.store = store
        self.namespace = namespace
        self.seen: dict[tuple[Kind, str], list[Obj]] = {}

    async def do(self, call: Mapping[str, Any]) -> Any:
        """Carry out a call; what it ends in, in words that do not depend on the store."""
        try:
            return shown(await getattr(self, call["do"])(**{name: item for name, item in call.items() if name != "do"}))
        except VcnbError as error:
            return type(error).__name__

    async def create(self, kind: Kind, name: str, change: Mapping[str, Any], bound: bool) -> Obj:
        make: dict[Kind, Any] = {CONFIGMAP: config, PODGROUP: podgroup}
        if kind is POD:
            made = pod(name, self.namespace, **({"nodeName": "nowhere"} if bound else {"schedulerName": "nobody"}))
        elif kind is JOB:
            made = job(name, self.namespace, maxRetry=3)
        else:
            made = make[kind](name, self.namespace)
        return self._saw(await self.store.create(merged(made, change)))

    async def update(
        self, kind: Kind, name: str, change: Mapping[str, Any], version: str, uid: str, subresource: str
    ) -> Obj | None:
        seen = self.seen.get((kind, name))
        if not seen:
            return None
        base = seen[0] if version == "old" else seen[-1]
        draft = merged(base, change)
        if version == "none":
            del draft["metadata"]["resourceVersion"]
        if uid == "other":
            draft["metadata"]["uid"] = OTHER_UID
        elif uid == "none":
            del draft["metadata"]["uid"]
        write = self.store.update_status if subresource else self.store.update
        return self._saw(await write(draft))

    async def patch(
        self, kind: Kind, name: str, change: Mapping[str, Any], version: str, subresource: Any
    ) -> Obj | None:
        seen = self.seen.get((kind, name))
        sent = merged({"metadata": {}}, change)
        if version != "none":
            if not seen:
                return None
            sent["metadata"]["resourceVersion"] = seen[0 if version == "old" else -1]["metadata"]["resourceVersion"]
        return self._saw(await self.store.patch(kind, name, self.namespace, sent, subresource=subresource))

    async def operations(self, kind: Kind, name: str, patch: list[dict[str, Any]]) -> Obj:
        return self._saw(await self.store.patch(kind, name, self.namespace, patch, type="json"))

    async def delete(self, kind: Kind, name: str, uid: str, version: str, **options: Any) -> Obj | None:
        seen = self.seen.get((kind, name))
        if uid != "none" or version != "none":
            if not seen:
                return None
            metadata = seen[-1]["metadata"]
            options["uid"] = {"none": None, "other": OTHER_UID, "own": metadata["uid"]}[uid]
            old = seen[0]["metadata"]["resourceVersion"]
            options["resource_version"] = {"none": None, "old": old, "last": metadata["resourceVersion"]}[version]
        await self.store.delete(kind, name, self.namespace, **options)
        return None

    async def get(self, kind: Kind, name: str) -> Obj:
        return self._saw(await self.store.get(kind, name, self.namespace))

    async def list(self, kind: Kind, selector: str) -> list[Obj]:
        return list((await self.store.list(kind, self.namespace, label_selector=selector)).items)

    def _saw(self, obj: Obj) -> Obj:
        self.seen.setdefault((kind_of(obj), obj["metadata"]["name"]), []).append(obj)
        return obj


def merged(obj: Mapping[str, Any], change: Mapping[str, Any]) -> dict[str, Any]:
    """The object with other metadata, data, spec and status, as far as ``change`` has them."""
    result = {**obj, "metadata": {**obj["metadata"], **change.get("metadata", {})}}
    for field in ("data", "spec", "status"):
        if field in change:
            before = obj.get(field) or {}
            result[field] = {**before, **change[field]} if field != "data" else change[field]
    return result


def shown(found: Any) -> Any:
    """What both stores have to agree on: not uids, times, versions, and what a server fills in."""
    if found is None:
        return None
    if isinstance(found, list):
        return [shown(obj) for obj in found]
    kind, metadata = kind_of(found), found["metadata"]
    status = found.get("status") or {}
    told = {
        "name": metadata["name"],
        "labels": metadata.get("labels"),
        "annotations": metadata.get("annotations"),
        "finalizers": metadata.get("finalizers"),
        "deleting": "deletionTimestamp" in metadata,
        "grace": metadata.get("deletionGracePeriodSeconds"),
        "generation": metadata.get("generation") if kind in {JOB, PODGROUP} else None,
        "data": found.get("data"),
        "retries": (found.get("spec") or {}).get("maxRetry") if kind is JOB else None,
        "running": status.get("running"),
        "phase": status.get("phase"),
    }
    return {field: value for field, value in told.items() if value}


def a_change(rng: random.Random, kind: Kind) -> dict[str, Any]:
    """Some other labels, annotations, finalizers, data, wish or status."""
    change: dict[str, Any] = {"metadata": {}}
    if rng.random() < 0.5:
        change["metadata"]["labels"] = rng.choice(LABELS)
    if rng.random() < 0.2:
        change["metadata"]["annotations"] = {"note": rng.choice("xyz")}
    if rng.random() < 0.2:
        change["metadata"]["finalizers"] = rng.choice(FINALIZERS)
    if kind is CONFIGMAP:
        change["data"] = {rng.choice("xy"): rng.choice("12")}
    if kind is JOB and rng.random() < 0.5:
        change["spec"] = {"maxRetry": rng.randint(1, 4)}
    if kind is not CONFIGMAP and rng.random() < 0.5:
        phases = {POD: ("Running", "Succeeded"), PODGROUP: ("Inqueue", "Running")}
        change["status"] = {"running": rng.randint(1, 3)} if kind is JOB else {"phase": rng.choice(phases[kind])}
    return change


def a_call(rng: random.Random) -> dict[str, Any]:
    kind, name = rng.choice(KINDS), rng.choice(NAMES)
    call: dict[str, Any] = {"kind": kind, "name": name}
    what = rng.choice(
        ("create", "create", "create", "update", "update", "patch", "patch", "operations", "delete", "get")
    )
    version, subresource = rng.choice(("last", "last", "old", "none")), rng.choice(("", "", "status"))
    change = a_change(rng, kind)
    if kind is POD and subresource and what in {"update", "patch"}:
        change["metadata"] = {}
    if what == "create":
        call |= {"change": change, "bound": rng.random() < 0.5}
    elif what == "update":
        uid = rng.choice(("own", "own", "own", "none", "other"))
        call |= {"change": change, "version": version, "uid": uid, "subresource": subresource}
    elif what == "patch":
        call |= {"change": change, "version": version, "subresource": subresource}
    elif what == "operations":
        test = {"op": "test", "path": "/metadata/name", "value": rng.choice((name, name, "other"))}
        call |= {"patch": [test, {"op": "add", "path": "/metadata/labels", "value": rng.choice(LABELS)}]}
    elif what == "delete":
        call |= {
            "uid": rng.choice(("none", "none", "own", "other")),
            # A server that has to take a finalizer away first refuses even the last version.
            "version": rng.choice(("none", "none", "old")),
            # Nothing depends on a Pod, and one that is terminating already does not always take to another propagation.
            "propagation": "Background"
            if kind is POD
            else rng.choice(("Background", "Background", "Foreground", "Orphan")),
            "grace_period_seconds": rng.choice((None, None, 0, 10, 60)),
        }
    elif rng.random() < 0.5:
        del call["name"]
        return {"do": "list", "selector": rng.choice(("", "app", "app=web", "!app", "tier notin (back)")), **call}
    return {"do": what, **call}


async def told(watch: Watch) -> list[tuple[str, Any]]:
    """What a watch told until ``end`` was made."""
    found: list[tuple[str, Any]] = []
    while not found or found[-1][1]["name"] != "end":
        found += [(event.type, shown(event.object)) for event in await events(watch, 1)]
    return found


@pytest.mark.parametrize("seed", range(SEEDS))
def test_both_stores_say_the_same(seed: int, apiserver: ApiServer, namespace: str) -> None:
    rng = random.Random(seed)

    async def play() -> None:
        clock = RealClock()
        server = await open_store("admin", kubeconfig=str(apiserver.kubeconfig), clock=clock)
        twins = [Twin(MemoryStore(clock), namespace), Twin(server, namespace)]
        watches = [
            [await twin.store.watch(kind, namespace, label_selector=text) for kind in KINDS for text in SELECTORS]
            for twin in twins
        ]
        story = []
        try:
            for _ in range(150):
                call = a_call(rng)
                memory, real = [await twin.do(call) for twin in twins]
                story.append(" ".join(f"{name}={item}" for name, item in call.items()) + f" -> {real}")
                assert memory == real, "\n".join(line for line in story if f"kind={call['kind']}" in line)[-3000:]
            for kind in KINDS:
                end = {
                    "do": "create",
                    "kind": kind,
                    "name": "end",
                    "change": {"metadata": {"labels": LABELS[1]}},
                    "bound": False,
                }
                for twin in twins:
                    assert await twin.do(end) == await twin.do({"do": "get", "kind": kind, "name": "end"})
            for ours, theirs in zip(*watches, strict=True):
                real, memory = await told(theirs), await told(ours)
                for number, (one, other) in enumerate(zip(real, memory, strict=False)):
                    assert one == other, f"{real[number - 1 : number + 2]}\n{memory[number - 1 : number + 2]}"
                assert len(real) == len(memory)
        finally:
            for twin in twins:
                await twin.store.close()

    asyncio.run(play())
