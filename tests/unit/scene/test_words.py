"""How states and times are said."""

import pytest

from vcnb.resources.phases import JobPhase, PodGroupPhase, PodPhase, QueueState
from vcnb.scene.words import MARKS, age, badge, mark, span


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (-1, "0s"),
        (0.123, "0.12s"),
        (7.31, "7.3s"),
        (62, "62s"),
        (190, "3m10s"),
        (3600, "1h"),
        (18420, "5h7m"),
        (180000, "2d2h"),
    ],
)
def test_spans(seconds, said):
    assert span(seconds) == said


def test_every_phase_has_a_mark_of_its_own_kind():
    states = {str(state) for kind in (JobPhase, PodPhase, PodGroupPhase, QueueState) for state in kind}

    assert states <= set(MARKS)


def test_an_unknown_state_is_a_question_mark():
    assert mark("Flying") == MARKS["Unknown"]


def test_a_badge_has_shape_word_and_colour_and_escapes():
    shown = badge("Running")

    assert "▶" in shown
    assert "Running" in shown
    assert "var(--jp-info-color1, #" in shown
    assert "<script>" not in badge("<script>")


def test_an_age_without_a_time_is_unknown():
    assert age(None, 0) == "<unknown>"
