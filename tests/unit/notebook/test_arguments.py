"""The argument line of a magic: splitting, expansion, mistakes."""

import pytest
from IPython.core.error import UsageError

from vcnb.notebook.arguments import Help, Parser, expand, expand_body, key_values, split

NAMES = {"workers": 4, "path": "/data/with blanks", "rate": 0.00125, "data": {"k": [1, 2]}}


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("a b", ["a", "b"]),
        ("--env 'A=b c'", ["--env", "A=b c"]),
        ("--replicas {workers}", ["--replicas", "4"]),
        ("--replicas $workers", ["--replicas", "4"]),
        ("--env P={path}", ["--env", "P=/data/with blanks"]),
        ("--env X={{literal}}", ["--env", "X={literal}"]),
        ("--env 'X={data[k][1]}'", None),
        ("\"{data['k'][1]}\"", ["2"]),
        ("{rate:.4f}", ["0.0013"]),
        ("{path!r}", ["'/data/with blanks'"]),
        ("'{workers * 2}'", ["8"]),
        ("cost$$5", ["cost$5"]),
        ("a #b", ["a", "#b"]),
        ("{workers}x{workers}", ["4x4"]),
    ],
)
def test_arguments_are_split_then_expanded(line, words):
    if words is None:
        with pytest.raises(UsageError, match="k"):
            split(line, NAMES)
    else:
        assert split(line, NAMES) == words


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{worker}", "name 'worker' is not defined"),
        ("$worker", "there is no variable 'worker'"),
        ("{1/0}", "ZeroDivisionError"),
        ("{open", "write {{ for a brace"),
    ],
)
def test_what_cannot_be_expanded_is_a_usage_error(text, said):
    with pytest.raises(UsageError) as error:
        expand(text, NAMES)

    assert said in str(error.value)


def test_an_open_quote_is_a_usage_error():
    with pytest.raises(UsageError, match="close the quote"):
        split("--env 'A=b", NAMES)


def test_a_body_is_expanded_only_in_double_braces():
    assert expand_body("x = {{ workers + 1 }}; d = {'a': $path}", NAMES) == "x = 5; d = {'a': $path}"


def test_an_unknown_name_in_a_body_names_its_line():
    with pytest.raises(UsageError, match="line 4 of the cell"):
        expand_body("a\nb\n{{ nothing }}", NAMES)


def test_a_mistyped_option_suggests_the_right_one():
    parser = Parser("%x")
    parser.add_argument("--replicas")

    with pytest.raises(UsageError, match="did you mean --replicas"):
        parser.parse_args(["--replica", "3"])


def test_help_is_shown_not_exited():
    with pytest.raises(Help, match="usage: %x"):
        Parser("%x").parse_args(["-h"])


def test_key_values():
    assert key_values(["A=1", "B=x=y"], "--env") == {"A": "1", "B": "x=y"}
    with pytest.raises(UsageError, match="NAME=VALUE"):
        key_values(["A"], "--env")
