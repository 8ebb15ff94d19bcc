"""Events: written without holding up the caller, counted when they repeat, best effort."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from vcnb.clock import VirtualClock
from vcnb.controllers.runtime import EventRecorder
from vcnb.resources.kinds import EVENT
from vcnb.store.faults import FaultInjector
from vcnb.store.memory import MemoryStore

JOB = {
    "apiVersion": "batch.volcano.sh/v1alpha1",
    "kind": "Job",
    "metadata": {"name": "j", "namespace": "ns", "uid": "u1", "resourceVersion": "7"},
}


def recording(steps: Callable[[EventRecorder, VirtualClock], Awaitable[None]], **options: Any) -> list[Any]:
    """The Events in the store after the steps, oldest first."""

    async def main() -> list[Any]:
        clock = VirtualClock()
        store = MemoryStore(clock)
        recorder = EventRecorder(store, clock, "vc-controller-manager", **options)
        await steps(recorder, clock)
        await recorder.stop()
        events = store.peek_all(EVENT)
        await store.close()
        return sorted(events, key=lambda event: int(event["metadata"]["resourceVersion"]))

    return asyncio.run(main())


def test_an_event_tells_what_happened_to_whom():
    async def steps(recorder: EventRecorder, clock: VirtualClock) -> None:
        recorder.event(JOB, "Warning", "FailedCreate", "Error creating pods: [x]")

    (event,) = recording(steps)

    assert event["metadata"]["namespace"] == "ns"
    assert event["metadata"]["name"].startswith("j.")
    assert event["involvedObject"] == {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "namespace": "ns",
        "name": "j",
        "uid": "u1",
        "resourceVersion": "7",
    }
    assert (event["type"], event["reason"], event["message"]) == ("Warning", "FailedCreate", "Error creating pods: [x]")
    assert event["source"] == {"component": "vc-controller-manager"}
    assert (event["count"], event["firstTimestamp"]) == (1, "2026-01-01T00:00:00Z")


def test_a_repeated_event_is_counted():
    async def steps(recorder: EventRecorder, clock: VirtualClock) -> None:
        recorder.event(JOB, "Normal", "ExecuteAction", "a")
        recorder.event(JOB, "Normal", "ExecuteAction", "a")
        await recorder.flush()
        clock.move_to(clock.time() + 5)
        recorder.event(JOB, "Normal", "ExecuteAction", "a")
        recorder.event(JOB, "Normal", "ExecuteAction", "b")

    first, second = sorted(recording(steps), key=lambda event: event["message"])

    assert (first["message"], first["count"]) == ("a", 3)
    assert (first["firstTimestamp"], first["lastTimestamp"]) == ("2026-01-01T00:00:00Z", "2026-01-01T00:00:05Z")
    assert (second["message"], second["count"]) == ("b", 1)


def test_another_job_of_that_name_has_events_of_its_own():
    async def steps(recorder: EventRecorder, clock: VirtualClock) -> None:
        recorder.event(JOB, "Normal", "ExecuteAction", "a")
        recorder.event({**JOB, "metadata": {**JOB["metadata"], "uid": "u2"}}, "Normal", "ExecuteAction", "a")

    assert [event["count"] for event in recording(steps)] == [1, 1]


def test_a_very_long_message_is_cut():
    async def steps(recorder: EventRecorder, clock: VirtualClock) -> None:
        recorder.event(JOB, "Normal", "ExecuteAction", "x" * 5000)

    (event,) = recording(steps)

    assert len(event["message"]) == 1024
    assert event["message"].endswith("...")


def test_only_so_many_events_are_kept():
    async def steps(recorder: EventRecorder, clock: VirtualClock) -> None:
        for number in range(5):
            recorder.event(JOB, "Normal", "ExecuteAction", str(number))
            await recorder.flush()

    assert [event["message"] for event in recording(steps, kept=3)] == ["2", "3", "4"]


def test_an_event_that_cannot_be_written_is_lost_and_nothing_else(caplog: pytest.LogCaptureFixture):
    async def main() -> list[str]:
        clock = VirtualClock()
        store = MemoryStore(clock)
        faults = FaultInjector(store)
        recorder = EventRecorder(faults, clock, "c")
        faults.fail_next("create", kind="Event")
        recorder.event(JOB, "Normal", "A", "lost")
        recorder.event(JOB, "Normal", "B", "kept")
        await recorder.stop()
        return [event["reason"] for event in store.peek_all(EVENT)]

    with caplog.at_level(logging.WARNING):
        assert asyncio.run(main()) == ["B"]
    assert "event A of Job ns/j is lost" in caplog.text


def test_an_event_that_somebody_deleted_is_written_again():
    async def main() -> list[int]:
        clock = VirtualClock()
        store = MemoryStore(clock)
        recorder = EventRecorder(store, clock, "c")
        recorder.event(JOB, "Normal", "A", "a")
        await recorder.flush()
        (event,) = store.peek_all(EVENT)
        await store.delete(EVENT, event["metadata"]["name"], "ns")
        recorder.event(JOB, "Normal", "A", "a")
        await recorder.stop()
        return [event["count"] for event in store.peek_all(EVENT)]

    assert asyncio.run(main()) == [2]


def test_after_the_stop_nothing_is_recorded():
    async def steps(recorder: EventRecorder, clock: VirtualClock) -> None:
        await recorder.stop()
        recorder.event(JOB, "Normal", "A", "a")

    assert recording(steps) == []
