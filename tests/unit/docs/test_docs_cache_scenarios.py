"""docs/scenarios-cache.md: every scenario once, every complaint with a test, every named test there."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "scenarios-cache.md").read_text(encoding="utf-8")
SCENARIOS, COMPLAINTS = PAGE.split("## Complaints")


def rows(text):
    lines = [line for line in text.splitlines() if line.startswith("|") and "---" not in line]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[1:]]


@pytest.fixture(scope="module")
def tests():
    """The names of all test functions."""
    found = set()
    for path in (ROOT / "tests").rglob("test_*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        found |= {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    return found


def test_every_scenario_has_one_row():
    assert [row[0] for row in rows(SCENARIOS)] == [str(number) for number in range(1, 91)]


def test_every_row_names_tests_that_exist(tests):
    for row in [*rows(SCENARIOS), *rows(COMPLAINTS)]:
        named = re.findall(r"`([^`]+)`", row[-1])

        assert named, row
        assert not set(named) - tests, row
