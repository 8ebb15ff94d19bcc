"""The thread that owns what is shown: few messages, the last state always, and no thread when there is nothing to show."""

import threading
import time

import pytest

from vcnb.notebook.painter import Painter


class Counter:
    """A view that shows a number."""

    def __init__(self, cost=0.0):
        self.value = 0
        self.shown = []
        self.cost = cost
        self.changed = threading.Event()

    def paint(self):
        if self.cost:
            time.sleep(self.cost)
        self.shown.append((time.monotonic(), self.value))
        self.changed.set()

    def shows(self, value, seconds=5.0):
        deadline = time.monotonic() + seconds
        while not self.shown or self.shown[-1][1] != value:
            left = deadline - time.monotonic()
            assert left > 0, self.shown[-3:]
            self.changed.clear()
            self.changed.wait(min(left, 0.05))
        return True


@pytest.fixture
def painter():
    made = Painter()
    yield made
    for view in list(made._views):
        made.leave(view)
    thread = made._thread
    if thread is not None:
        thread.join(5)
    assert made._thread is None


def change(painter, view, seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        view.value += 1
        painter.dirty(view)
        time.sleep(0.001)


def test_a_view_is_painted_at_most_ten_times_a_second_and_its_last_state_always(painter):
    view = Counter()
    painter.follow(view)

    change(painter, view, 0.55)

    assert view.shows(view.value)
    assert len(view.shown) <= 8
    gaps = [after - before for (before, _), (after, _) in zip(view.shown, view.shown[1:], strict=False)]
    assert min(gaps) > 0.08


def test_views_that_are_dear_to_paint_are_painted_less_often(painter):
    view = Counter(cost=0.03)
    painter.follow(view)

    change(painter, view, 0.7)

    assert view.shows(view.value)
    assert len(view.shown) <= 4


def test_calls_do_not_wait_for_the_next_painting(painter):
    view = Counter(cost=0.05)
    painter.follow(view)
    painter.dirty(view)
    assert view.shows(0)
    painter.dirty(view)
    began = time.monotonic()

    assert painter.call(lambda: 42) == 42

    assert time.monotonic() - began < 0.3
    painter.leave(view)


def test_what_a_call_raises_is_raised_where_it_was_asked_for(painter):
    with pytest.raises(ZeroDivisionError):
        painter.call(lambda: 1 / 0)


def test_a_posted_call_that_fails_does_not_end_the_thread(painter):
    painter.post(lambda: 1 / 0)

    assert painter.call(threading.current_thread).name == "vcnb-views"


def test_a_view_that_cannot_be_painted_ends_neither_the_thread_nor_the_others(painter):
    class Broken:
        def paint(self):
            raise RuntimeError("no")

    broken = Broken()
    painter.follow(broken)
    painter.dirty(broken)
    painter.call(lambda: None)
    painter.follow(counter := Counter())
    counter.value = 1
    painter.dirty(counter)

    assert counter.shows(1)
    assert broken not in painter._views


def test_a_call_from_the_thread_itself_runs_at_once(painter):
    assert painter.call(lambda: painter.call(lambda: 1)) == 1


def test_a_view_can_be_painted_later_without_a_change(painter):
    view = Counter()
    painter.follow(view)

    painter.later(view, 0.05)

    assert view.shows(0)


def test_a_view_that_was_left_is_not_painted(painter):
    view = Counter()
    painter.follow(view)
    painter.leave(view)

    painter.dirty(view)
    painter.later(view, 0.0)
    painter.call(lambda: None)

    assert view.shown == []


def test_the_thread_ends_when_there_is_nothing_to_show(painter):
    view = Counter()
    painter.follow(view)
    thread = painter._thread

    painter.leave(view)

    thread.join(5)
    assert not thread.is_alive()
