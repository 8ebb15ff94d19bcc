"""docs/complaints.md: every row is there, and every test that it names."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "complaints.md").read_text()
ROWS = re.findall(r"^\| (\d+) \| .* \| (.*) \|$", PAGE, re.MULTILINE)


@cache
def names_in(path):
    """The tests of a module: functions, and classes that it defines or assigns."""
    found = set()
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Assign):
            found.update(target.id for target in node.targets if isinstance(target, ast.Name))
    return found


def test_every_row_is_there_once_and_in_order():
    assert [int(number) for number, _ in ROWS] == list(range(1, 62))


@pytest.mark.parametrize(("number", "tests"), ROWS, ids=lambda value: value if value.isdigit() else "")
def test_its_tests_exist(number, tests):
    named = re.findall(r"`([^`]+)`", tests)

    assert named, f"row {number} names no test"
    for test in named:
        file, _, name = test.partition("::")
        path = ROOT / "tests" / file
        assert path.is_file(), f"row {number}: there is no {file}"
        assert not name or name in names_in(path), f"row {number}: there is no {name} in {file}"
