"""The short form of %%jobflow taken apart: lines, commands, scripts, arrows."""

import pytest

from vcnb.errors import VcnbError
from vcnb.notebook.flowcalls import call_of
from vcnb.notebook.flowtext import Arrow, NodeLine, parse


def test_a_node_has_work_and_options():
    (node,) = parse('fit: train(C=item, x="--no") --for-each "[1, 2]" --retry 2')

    assert node == NodeLine(2, "fit", 'train(C=item, x="--no")', '--for-each "[1, 2]" --retry 2', script_line=3)


def test_comments_and_blank_lines_are_left_out_and_lines_counted():
    found = parse("\n# a comment\na: x  # why\n\nb: y#z --when \"'#' == '#'\"\n")

    assert [(node.line, node.name, node.work) for node in found] == [(4, "a", "x"), (6, "b", "y#z")]
    assert found[1].options == "--when \"'#' == '#'\""


def test_a_command_is_everything_behind_the_exclamation_mark():
    (node,) = parse("""a: --after b --when '!x' ! echo "it's" # not a comment | sort""")

    assert node.command == """echo "it's" # not a comment | sort"""
    assert node.options == "--after b --when '!x'"


def test_a_script_is_indented_and_ends_with_its_indentation():
    first, second, arrow = parse("a: --cpu 1 |\n    x = 1\n\n    if x:\n        y\nb: |\n  z\na >> b\n")

    assert (first.script, first.options) == ("x = 1\n\nif x:\n    y", "--cpu 1")
    assert (second.line, second.script, second.script_line) == (7, "z", 8)
    assert arrow == Arrow(9, (("a",), ("b",)))


def test_arrows_have_groups_and_phases():
    assert parse("a, b >> [c, d] >> e.failed >> f") == [Arrow(2, (("a", "b"), ("c", "d"), ("e.failed",), ("f",)))]
    assert parse("only, these") == [Arrow(2, (("only", "these"),))]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("a b c", "line 2 of the cell: 'a b c' is neither a node"),
        ("a: x\n  y", "line 3 of the cell: 'y' is indented"),
        ("a >> ", "line 2 of the cell: 'a >>': a name is missing"),
        ("a >> b,, c", "a name is missing"),
        ("\na: |\nb: x", "line 3 of the cell: node 'a': the script is missing"),
        ("a: ! x |\n  y", "a command and a script"),
        ("a: --when 'x", "line 2 of the cell: a quote ' is opened"),
    ],
)
def test_what_cannot_be_read_is_told_with_its_line(body, message):
    with pytest.raises(VcnbError, match=message):
        parse(body)


def test_arguments_are_literals_expressions_or_what_the_notebook_has_now():
    call = call_of(
        'fit(item, 3, a=params.lr, b="text", c=rows[0], d=flows["a-b"].outputs.n + 1, e=size(params.x), f=[1, 2], g=true)',
        {"rows": [7]},
        5,
    )

    assert call.name == "fit"
    assert call.args == ("${{ item }}", 3)
    assert call.kwargs == {
        "a": "${{ params.lr }}",
        "b": "text",
        "c": 7,
        "d": '${{ flows["a-b"].outputs.n + 1 }}',
        "e": "${{ size(params.x) }}",
        "f": [1, 2],
        "g": "${{ true }}",
    }


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("fit(a=)", "line 5 of the cell: the arguments .* cannot be read"),
        ("fit(a=1) x", "no name and no call"),
        ("fit(**x)", "cannot be read"),
        ("fit(a=params.x + rows)", "mixes 'params'.* with 'rows'"),
        ("fit(a=nothing)", "line 5 of the cell: 'nothing': NameError"),
    ],
)
def test_arguments_that_cannot_be_read(text, message):
    with pytest.raises(VcnbError, match=message):
        call_of(text, {"rows": 1}, 5)


def test_a_function_without_brackets_gets_what_is_called_like_its_parameters():
    def fit(c, folds, n=1, *, item=None, other=2):
        return c, folds, n, item, other

    def each(x):
        return x

    call = call_of("fit", {}, 2)

    assert call.arguments(fit, {"folds", "n", "unused"}, items=True) == {
        "folds": "${{ params.folds }}",
        "n": "${{ params.n }}",
        "item": "${{ item }}",
    }
    assert call.arguments(each, set(), items=True) == {"x": "${{ item }}"}
    assert call.arguments(each, set(), items=False) == {}


def test_positional_arguments_get_their_names():
    def fit(a, b):
        return a, b

    assert call_of("fit(1, b=2)", {}, 2).arguments(fit, set(), items=False) == {"a": 1, "b": 2}
    with pytest.raises(VcnbError, match="takes 2 arguments, 3 are given"):
        call_of("fit(1, 2, 3)", {}, 2).arguments(fit, set(), items=False)


def test_arguments_are_for_functions_and_notebooks():
    with pytest.raises(VcnbError, match="takes no arguments"):
        call_of("job(x=1)", {}, 2).arguments({"kind": "Job"}, set(), items=False)
    with pytest.raises(VcnbError, match="have names"):
        call_of("a.ipynb(1)", {}, 2).arguments("a.ipynb", set(), items=False)
    assert call_of("a.ipynb(x=1)", {}, 2).arguments("a.ipynb", set(), items=False) == {"x": 1}
