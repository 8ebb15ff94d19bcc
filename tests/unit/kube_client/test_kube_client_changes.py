"""Following objects where each namespace has a view of its own."""

from __future__ import annotations

import asyncio
from typing import Any, cast

from vcnb.client.backend import Backend
from vcnb.client.changes import Changes
from vcnb.client.kube.access import Access
from vcnb.client.kube.reading import Views
from vcnb.clock import RealClock, VirtualClock
from vcnb.errors import Forbidden
from vcnb.resources.kinds import CONFIGMAP, NODE, Kind
from vcnb.store.memory import MemoryStore


class Rights:
    """Says what a user may; ``everywhere``: also in the whole cluster."""

    def __init__(self, *, everywhere: bool = True, watch: bool = True) -> None:
        self._everywhere = everywhere
        self._watch = watch

    async def allowed(self, verb: str, _kind: Kind, namespace: str | None = None) -> bool:
        return (self._watch or verb != "watch") and (self._everywhere or namespace is not None)


def views_of(store: MemoryStore, rights: Rights) -> Views:
    return Views(store, RealClock(), cast("Access", rights), "mine")


def configmap(name: str, namespace: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": namespace}}


def test_a_listener_hears_of_its_namespace_only_and_all_are_heard_where_that_was_asked_for():
    async def listen() -> tuple[list[str], list[str]]:
        store = MemoryStore(VirtualClock())
        views = views_of(store, Rights())
        changes = Changes(cast("Backend", views))
        mine: list[str] = []
        every: list[str] = []
        heard = asyncio.Event()
        await changes.listen(CONFIGMAP, lambda obj: mine.append(obj["metadata"]["name"]), "mine")
        await changes.listen(CONFIGMAP, lambda obj: every.append(obj["metadata"]["name"]) or heard.set())
        await store.create(configmap("a", "mine"))
        await store.create(configmap("b", "theirs"))
        while len(every) < 2 or not mine:
            heard.clear()
            await heard.wait()
        await views.close()
        return mine, sorted(every)

    assert asyncio.run(asyncio.wait_for(listen(), 20)) == (["a"], ["a", "b"])


def test_all_are_those_of_ones_own_namespace_where_others_may_not_be_seen():
    async def scopes() -> list[str | None]:
        views = views_of(MemoryStore(VirtualClock()), Rights(everywhere=False))
        return [
            await views.scope(CONFIGMAP, None),
            await views.scope(CONFIGMAP, "other"),
            await views.scope(NODE, None),
        ]

    assert asyncio.run(scopes()) == ["mine", "other", None]


def test_a_view_that_may_not_watch_is_refused_at_once():
    async def open_view() -> str:
        views = views_of(MemoryStore(VirtualClock()), Rights(watch=False))
        try:
            await views.informer(CONFIGMAP, "mine")
        except Forbidden as error:
            return str(error)
        return ""

    assert "verb watch" in asyncio.run(open_view())


def test_a_view_is_opened_once_by_many():
    async def opened() -> bool:
        views = views_of(MemoryStore(VirtualClock()), Rights())
        found = await asyncio.gather(*(views.informer(CONFIGMAP, "mine") for _ in range(5)))
        await views.close()
        return all(view is found[0] for view in found)

    assert asyncio.run(opened())
