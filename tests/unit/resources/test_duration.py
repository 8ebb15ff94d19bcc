"""Durations as Go reads and prints them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vcnb.resources.duration import (
    DurationError,
    format_duration,
    format_nanoseconds,
    parse_duration,
    parse_nanoseconds,
)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("30s", 30),
        ("1h15m", 4500),
        ("-5m", -300),
        ("+5s", 5),
        ("1.5h", 5400),
        ("300ms", 0.3),
        ("1us", 1e-6),
        ("1\u00b5s", 1e-6),
        ("1\u03bcs", 1e-6),
        ("100ns", 1e-7),
        ("0", 0),
        ("-0", 0),
        (".5s", 0.5),
        ("1.s", 1),
        ("1h1h", 7200),
        ("2s1m", 62),
    ],
)
def test_parse(text, seconds):
    assert parse_duration(text) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["", "soon", "5", "s", "1 s", "1x", "1d", "--1s", "1e3s", "1s ", "."])
def test_no_duration(text):
    with pytest.raises(DurationError, match="is no duration"):
        parse_duration(text)


def test_a_bare_number_gets_its_unit_suggested():
    with pytest.raises(DurationError, match="did you mean '300s'"):
        parse_duration("300")


def test_too_long():
    assert parse_nanoseconds("2562047h") > 0
    with pytest.raises(DurationError, match="292 years"):
        parse_duration("2562048h")


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (300, "5m0s"),
        (60, "1m0s"),
        (1.5, "1.5s"),
        (0, "0s"),
        (3600, "1h0m0s"),
        (165, "2m45s"),
        (0.3, "300ms"),
        (0.0015, "1.5ms"),
        (0.000002, "2\u00b5s"),
        (1e-9, "1ns"),
        (-90, "-1m30s"),
        (86400, "24h0m0s"),
        (3600.25, "1h0m0.25s"),
    ],
)
def test_format(seconds, text):
    assert format_duration(seconds) == text


@given(st.integers(-(2**63) + 1, 2**63 - 1))
def test_printed_text_reads_back(nanoseconds):
    assert parse_nanoseconds(format_nanoseconds(nanoseconds)) == nanoseconds
