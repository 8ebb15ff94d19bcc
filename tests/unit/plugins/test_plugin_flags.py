"""Arguments of plugins follow Go's flag package: every row of the reference's table, and Go's integers."""

import pytest

from vcnb.controllers.job.plugins.flags import INT_MAX, INT_MIN, Flag, parse, parse_int

FLAGS = (Flag("x", "default", ""), Flag("a", "", ""), Flag("port", 22, ""), Flag("b", default=False, help=""))


def read(*tokens: str) -> dict:
    return dict(parse(FLAGS, tokens).values)


@pytest.mark.parametrize("tokens", [["--x=v"], ["-x=v"], ["--x", "v"], ["-x", "v"]])
def test_one_or_two_dashes_and_one_or_two_elements_are_the_same(tokens):
    assert read(*tokens)["x"] == "v"


def test_no_arguments_give_the_defaults():
    assert parse(FLAGS, None).values == parse(FLAGS, []).values == {"x": "default", "a": "", "port": 22, "b": False}
    assert parse(FLAGS, []).problem is None


def test_a_boolean_alone_is_true_and_takes_no_second_element():
    read_ = parse(FLAGS, ["--b", "false", "--x=v"])
    assert read_.on("b") is True
    assert read_.text("x") == "default"  # "false" is no flag: parsing stopped there


@pytest.mark.parametrize("text", ["1", "t", "T", "true", "TRUE", "True"])
def test_true(text):
    assert read(f"--b={text}")["b"] is True


@pytest.mark.parametrize("text", ["0", "f", "F", "false", "FALSE", "False"])
def test_false(text):
    assert parse((Flag("b", default=True, help=""),), [f"--b={text}"]).on("b") is False


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("22", 22),
        ("0x16", 22),
        ("0X16", 22),
        ("0o26", 22),
        ("026", 22),
        ("1_000", 1000),
        ("-10", -10),
        ("+5", 5),
        ("0b101", 5),
        ("0x_1f", 31),
        ("0_7", 7),
        ("0", 0),
        ("-0x10", -16),
    ],
)
def test_integers_in_every_base(text, value):
    assert parse_int(text) == (value, "")
    assert read(f"--port={text}")["port"] == value


@pytest.mark.parametrize(
    "text", ["abc", "", "-", "1__0", "_1", "1_", "08", "0x", "0xg", "1.5", "1e3", " 1", "٣", "0b2"]
)
def test_a_malformed_integer_makes_the_flag_zero_and_stops(text):
    arguments = parse(FLAGS, ["--a=before", f"--port={text}", "--x=after"])
    assert arguments.number("port") == 0
    assert (arguments.text("a"), arguments.text("x")) == ("before", "default")
    assert "--port" in arguments.problem
    assert arguments.position == 1


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("9223372036854775807", INT_MAX),
        ("9223372036854775808", INT_MAX),
        ("-9223372036854775809", INT_MIN),
        ("99999999999999999999999", INT_MAX),
        ("-9223372036854775808", INT_MIN),
    ],
)
def test_an_integer_out_of_range_becomes_the_limit(text, value):
    assert parse_int(text)[0] == value


def test_only_what_does_not_fit_is_a_mistake():
    assert parse_int("9223372036854775807")[1] == ""
    assert parse_int("-9223372036854775808")[1] == ""
    assert parse_int("9223372036854775808")[1] == "out of range"


@pytest.mark.parametrize("stop", ["word", "-", ""])
def test_an_element_that_is_no_flag_stops_silently(stop):
    arguments = parse(FLAGS, ["--a=1", stop, "--x=v"])
    assert (arguments.text("a"), arguments.text("x")) == ("1", "default")


def test_two_dashes_end_the_flags():
    assert read("--a=1", "--", "--x=v") == {"x": "default", "a": "1", "port": 22, "b": False}
    assert parse(FLAGS, ["--a=1", "--"]).problem is None


def test_an_unknown_flag_stops_and_what_stood_before_counts():
    arguments = parse(FLAGS, ["--a=1", "--unknown=2", "--x=v"])
    assert (arguments.text("a"), arguments.text("x")) == ("1", "default")
    assert arguments.problem == "unknown flag --unknown; it and what follows is ignored"


def test_a_flag_without_its_value_at_the_end_is_unchanged():
    arguments = parse(FLAGS, ["--a=1", "--x"])
    assert (arguments.text("a"), arguments.text("x")) == ("1", "default")
    assert arguments.problem == "flag --x needs a value"


def test_a_value_may_look_like_a_flag():
    assert read("--x", "--b") == {"x": "--b", "a": "", "port": 22, "b": False}


def test_a_malformed_boolean_is_false_and_stops():
    arguments = parse((Flag("b", default=True, help=""), Flag("x", "", "")), ["--b=yes", "--x=v"])
    assert arguments.on("b") is False
    assert arguments.text("x") == ""
    assert "not a boolean" in arguments.problem


def test_of_two_equal_flags_the_last_wins():
    assert read("--x=1", "--x=2")["x"] == "2"


def test_nothing_is_split_as_a_shell_would():
    assert read("--a=1 --b=2")["a"] == "1 --b=2"
    assert read("--x==v")["x"] == "=v"


@pytest.mark.parametrize("token", ["---x", "--=v", "-=v"])
def test_bad_syntax_stops(token):
    assert parse(FLAGS, [token, "--x=v"]).problem == f"bad flag syntax: {token}"
    assert read(token, "--x=v")["x"] == "default"


def test_an_alias_is_another_spelling():
    assert parse((Flag("x", "", "", alias="other"),), ["--other=v"]).text("x") == "v"


def test_elements_that_are_no_text_are_read_as_text():
    assert parse(FLAGS, ["--port", 5000]).number("port") == 5000
