"""Stories: the last steps of an object, bounded."""

from __future__ import annotations

from vcnb.clock import VirtualClock
from vcnb.controllers.runtime import Stories


def test_a_story_is_told_in_order():
    clock = VirtualClock()
    stories = Stories(clock)
    stories.tell("ns/j", "submitted", "", "Pending")
    clock.move_to(clock.time() + 5)
    stories.tell("ns/j", "PodFailed of pod j-a-0: RestartJob", "Running", "Restarting", "first failure")
    stories.tell("ns/j", "looked", "Restarting", "Restarting")

    assert [(chapter.before, chapter.after) for chapter in stories.of("ns/j")][:2] == [
        ("", "Pending"),
        ("Running", "Restarting"),
    ]
    assert stories.text("ns/j") == (
        "  2026-01-01T00:00:00Z submitted: (new) -> Pending\n"
        "  2026-01-01T00:00:05Z PodFailed of pod j-a-0: RestartJob: Running -> Restarting: first failure\n"
        "  2026-01-01T00:00:05Z looked: stays Restarting"
    )


def test_only_the_last_steps_of_the_last_objects_are_kept():
    stories = Stories(VirtualClock(), length=2, objects=2)
    for key in ("a", "b", "a", "c"):
        for step in range(3):
            stories.tell(key, str(step), "", "x")

    assert [chapter.stimulus for chapter in stories.of("a")] == ["1", "2"]
    assert stories.of("b") == ()
    assert len(stories.of("c")) == 2


def test_a_forgotten_story_is_gone():
    stories = Stories(VirtualClock())
    stories.tell("a", "x", "", "y")
    stories.forget("a")
    stories.forget("never")

    assert stories.of("a") == ()
