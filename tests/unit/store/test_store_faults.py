"""The fault injector."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from unit.store.conformance import CHECKS
from unit.store.conformance.objects import Check, config, job
from vcnb import errors
from vcnb.clock import VirtualClock
from vcnb.resources.kinds import CONFIGMAP, JOB
from vcnb.store.faults import FaultInjector
from vcnb.store.memory import MemoryStore


def play(scene: Callable[[FaultInjector, MemoryStore], Awaitable[None]]) -> None:
    async def everything() -> None:
        store = MemoryStore(VirtualClock())
        await scene(FaultInjector(store), store)
        await store.close()

    asyncio.run(everything())


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_without_faults_it_is_the_store(check: Check) -> None:
    async def everything() -> None:
        store = FaultInjector(MemoryStore(VirtualClock()))
        await check(store, "checks")
        await store.close()

    asyncio.run(everything())


@pytest.mark.parametrize(
    "error", ["Conflict", "ServerTimeout", "Forbidden", "NotFound", "AlreadyExists", "InternalError"]
)
def test_a_call_fails_with_the_error_and_does_not_reach_the_store(error: Any) -> None:
    async def scene(faults: FaultInjector, store: MemoryStore) -> None:
        faults.fail_next("create", "ConfigMap", error=error, message="no room")
        with pytest.raises(getattr(errors, error), match="create ConfigMap default/a: no room") as caught:
            await faults.create(config("a", "default"))
        assert type(caught.value).__name__ == error
        assert store.peek_all(CONFIGMAP) == []
        await faults.create(config("a", "default"))
        assert faults.pending == 0

    play(scene)


def test_every_verb_can_fail() -> None:
    async def scene(faults: FaultInjector, store: MemoryStore) -> None:
        made = await store.create(job("a", "default"))
        calls: dict[Any, Callable[[], Awaitable[Any]]] = {
            "create": lambda: faults.create(job("b", "default")),
            "update": lambda: faults.update(made),
            "patch": lambda: faults.patch(JOB, "a", "default", {"spec": {}}),
            "delete": lambda: faults.delete(JOB, "a", "default"),
        }
        for verb, call in calls.items():
            faults.fail_next(verb, JOB)
            for other, harmless in calls.items():
                if other == "patch" and verb != "patch":
                    await harmless()
            with pytest.raises(errors.InternalError, match=verb):
                await call()

    play(scene)


def test_a_status_patch_counts_as_update_status() -> None:
    async def scene(faults: FaultInjector, store: MemoryStore) -> None:
        made = await store.create(job("a", "default"))
        faults.fail_next("update_status", times=2)
        await faults.patch(JOB, "a", "default", {"spec": {"maxRetry": 4}})
        with pytest.raises(errors.InternalError):
            await faults.patch(JOB, "a", "default", {"status": {"running": 1}}, subresource="status")
        with pytest.raises(errors.InternalError):
            await faults.update_status(made)
        await faults.patch(JOB, "a", "default", {"status": {"running": 1}}, subresource="status")

    play(scene)


def test_faults_skip_and_count() -> None:
    async def scene(faults: FaultInjector, store: MemoryStore) -> None:
        faults.fail_next("create", "ConfigMap", times=2, skip=1)
        await faults.create(job("other-kind", "default"))
        outcomes = []
        for number in range(5):
            try:
                await faults.create(config(f"a{number}", "default"))
                outcomes.append("made")
            except errors.InternalError:
                outcomes.append("failed")
        assert outcomes == ["made", "failed", "failed", "made", "made"]

    play(scene)


def test_faults_without_end_last_until_they_are_cleared() -> None:
    async def scene(faults: FaultInjector, store: MemoryStore) -> None:
        faults.fail_next("create", times=None, error="Forbidden")
        for _ in range(3):
            with pytest.raises(errors.Forbidden):
                await faults.create(config("a", "default"))
        assert faults.pending == 1
        faults.clear()
        await faults.create(config("a", "default"))

    play(scene)


def test_a_mistake_in_a_fault_is_told() -> None:
    faults = FaultInjector(MemoryStore(VirtualClock()))
    with pytest.raises(ValueError, match="no verb"):
        faults.fail_next("destroy")  # type: ignore[arg-type] # the mistake
    with pytest.raises(ValueError, match="no error"):
        faults.fail_next("create", error="Oops")  # type: ignore[arg-type] # the mistake
    with pytest.raises(ValueError, match="times"):
        faults.fail_next("create", times=0)
    with pytest.raises(KeyError, match="Jobb"):
        faults.fail_next("create", "Jobb")
