"""How messages come back through a log: in frames, whole or not at all, and never shown to people."""

import os
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vcnb.client.functions.pod.supervise import Frames, TooLarge
from vcnb.client.functions.wire import Reader, size_text, visible

NONCE = "0123456789abcdef"


def log_of(*messages, nonce=NONCE, limit=1 << 20):
    """What Frames writes to file descriptor 1."""
    reading, writing = os.pipe()
    kept = os.dup(1)
    os.dup2(writing, 1)
    try:
        frames = Frames(nonce, limit)
        for message in messages:
            frames.send(message)
    finally:
        os.dup2(kept, 1)
        os.close(kept)
        os.close(writing)
    with os.fdopen(reading, "rb") as file:
        return file.read().decode()


def noise(size):
    return random.Random(7).randbytes(size)


def test_a_message_comes_back_as_it_was_sent():
    sent = {"type": "end", "value": b"\x00\xff", "words": "äöü", "number": 1.5}

    assert list(Reader(NONCE).messages(log_of(sent))) == [sent]


def test_a_large_message_is_several_lines_none_longer_than_a_pipe_writes_at_once():
    text = log_of({"value": noise(20_000)})

    assert len(text.splitlines()) > 5
    assert max(len(line) + 1 for line in text.splitlines()) <= 4096
    assert list(Reader(NONCE).messages(text)) == [{"value": noise(20_000)}]


def test_a_message_above_the_limit_is_not_sent_and_says_both_sizes():
    with pytest.raises(TooLarge) as error:
        log_of({"value": noise(2000)}, limit=1000)

    assert (error.value.size > 2000, error.value.limit) == (True, 1000)


def test_frames_of_another_job_and_what_a_program_prints_are_no_messages():
    text = log_of({"a": 1}, nonce="f" * 16) + f"@vcnb {NONCE} hello\n@vcnb\n"

    assert list(Reader(NONCE).messages(text)) == []


def test_a_missing_line_is_counted_and_the_message_is_not_given_out():
    lines = log_of({"value": noise(20_000)}).splitlines()
    reader = Reader(NONCE)

    assert list(reader.messages("\n".join(lines[:2] + lines[3:]))) == []
    assert reader.missing == 1


def test_a_damaged_line_is_noticed_by_its_checksum():
    text = log_of({"value": b"x" * 100})
    at = len(text) - 10
    damaged = text[:at] + ("A" if text[at] != "A" else "B") + text[at + 1 :]

    assert list(Reader(NONCE).messages(damaged)) == []


def test_an_envelope_with_a_class_in_it_is_refused():
    assert list(Reader(NONCE).messages(log_of({"value": pytest.approx(1)}))) == []


def test_frames_are_not_shown_and_what_stands_before_one_in_its_line_is():
    frames = log_of({"value": noise(9000)})

    assert visible(f"before\n{frames}after\n") == "before\nafter\n"
    assert visible(f"no newline{frames}after") == "no newline\nafter"
    assert visible(f"pod-0 | {frames.splitlines()[0]}\n") == ""


@given(st.lists(st.text(alphabet=st.characters(exclude_characters="\n", exclude_categories=["Cs"])), max_size=8))
def test_a_log_without_frames_is_shown_as_it_is(lines):
    text = "\n".join(lines)

    assert visible(text) == text


@pytest.mark.parametrize(
    ("size", "text"), [(800, "800 bytes"), (2048, "2 KiB"), (768 * 1024, "768 KiB"), (3_400_000, "3.2 MiB")]
)
def test_sizes_in_words(size, text):
    assert size_text(size) == text
