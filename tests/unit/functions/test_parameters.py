"""The parameters of a notebook: read by parsing, checked before anything runs."""

from pathlib import Path

import numpy as np
import pytest

from vcnb.client.functions.parameters import ParameterError, check_parameters, parameters_of, read_parameters


def notebook(*cells, language="python"):
    """Cells are texts; one that begins with ``#!`` is tagged parameters."""
    made = [
        {"cell_type": "code", "source": text, "metadata": {"tags": ["parameters"] if text.startswith("#!") else []}}
        for text in cells
    ]
    return {"cells": made, "metadata": {"kernelspec": {"name": language, "language": language}}}


def test_plain_annotated_and_unpacked_names_are_parameters_with_their_defaults():
    found = read_parameters("a = 1\nb: int = 2\nc: str\nd, (e, *f) = 1, (2, 3)\ng = h = 5\n")

    assert list(found) == ["a", "b", "c", "d", "e", "g", "h"]
    assert (found["b"].default, found["b"].annotation, found["c"].default) == ("2", "int", "")


def test_what_the_inspector_of_papermill_misreads_is_read_right():
    """A value that contains ``=`` (papermill 864), Literal (906), unions (806)."""
    source = 'query = "a=b"\nmode: Literal["fast", "x=y"] = "fast"\nsize: None | str = None\n'

    found = read_parameters(source)

    assert (found["query"].default, found["mode"].annotation) == ("'a=b'", "Literal['fast', 'x=y']")
    assert (found["size"].annotation, found["size"].default) == ("None | str", "None")


def test_names_inside_blocks_count_and_those_of_functions_do_not():
    found = read_parameters(
        "if True:\n    a = 1\nelse:\n    b = 2\ntry:\n    c = 3\nfinally:\n    d = 4\ndef f():\n    e = 5\n"
    )

    assert list(found) == ["a", "b", "c", "d"]


def test_magics_in_the_cell_are_left_out():
    assert list(read_parameters("%matplotlib inline\n!ls\na = 1")) == ["a"]


def test_an_unknown_parameter_is_an_error_that_lists_the_known_ones():
    with pytest.raises(ParameterError) as error:
        check_parameters(notebook("#!\nlr = 1\nseed = 2"), {"lrr": 3, "x": 1})

    assert "lrr: the notebook has no such parameter; did you mean 'lr'? it has: lr, seed" in str(error.value)
    assert "x: the notebook has no such parameter; it has: lr, seed" in str(error.value)


def test_known_parameters_and_those_for_vcnb_are_taken():
    check_parameters(notebook("#!\nlr = 1"), {"lr": 3, "vcnb_waive": True, "PAPERMILL_INPUT_PATH": "x"})
    check_parameters(notebook("lr = 1"), {"vcnb_where": "here"})


def test_a_notebook_without_a_parameters_cell_would_ignore_them_and_is_refused():
    """papermill 245: injected at the top, then overwritten."""
    with pytest.raises(ParameterError, match="set again by cell 2; give that cell the tag"):
        check_parameters(notebook("import os", "lr = 1"), {"lr": 2})
    with pytest.raises(ParameterError, match="nothing in it knows other"):
        check_parameters(notebook("lr = 1"), {"other": 2})


def test_cells_are_counted_as_they_were_written_without_the_injected_one():
    run = notebook("lr = 2", "lr = 1")
    run["cells"][0]["metadata"]["tags"] = ["injected-parameters"]

    with pytest.raises(ParameterError, match="set again by cell 1"):
        check_parameters(run, {"lr": 2})


def test_a_parameters_cell_that_is_no_python_is_named():
    with pytest.raises(ParameterError, match=r"the parameters cell \(cell 2\) is no Python: line 2"):
        check_parameters(notebook("1", "#!\nlr = = 1"), {"lr": 2})


def test_names_are_not_checked_in_another_language():
    check_parameters(notebook("#!\nlr <- 1", language="R"), {"anything": 2})


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (Path("/x"), r"it is a PosixPath.*convert it with str"),
        (np.float64(0.5), r"it is a float64.*convert it with \.tolist"),
        ([1, {"a": {1, 2}}], r"\[1\]\['a'\] is a set"),
        ({1: 2}, r"has the key 1, which is no text"),
    ],
)
def test_values_that_papermill_would_turn_into_text_are_refused(value, words):
    with pytest.raises(ParameterError, match=words):
        check_parameters(notebook("#!\nlr = 1"), {"lr": value})


@pytest.mark.parametrize("value", [None, True, 1, 0.5, float("nan"), "x", [1, (2,)], {"a": [{"b": None}]}])
def test_values_that_json_can_say_are_taken(value):
    check_parameters(notebook("#!\nlr = 1"), {"lr": value})


def test_a_notebook_without_the_tag_has_none():
    assert parameters_of(notebook("a = 1")) is None
