"""docs/differences*.md: every quirk once, every test that is named exists, every trace that differs is named."""

from __future__ import annotations

import ast
import re
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from golden.differing import differs, job_traces, switches
from vcnb.controllers.job.behaviour import Behaviour

ROOT = Path(__file__).parents[3]
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.glob("differences*.md"))
QUIRKS = [f"Q{number}" for number in range(1, 45)]
CODE = re.compile(r"`([^`]+)`")


def _text(name: str) -> str:
    return (DOCS / name).read_text(encoding="utf-8")


def _rows(name: str) -> list[list[str]]:
    """The cells of all table rows of a page, without heads."""
    lines = [line for line in _text(name).splitlines() if line.startswith("|") and "---" not in line]
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]


@cache
def _tests() -> dict[str, set[str]]:
    """Names of test files with the names of their test functions."""
    found: dict[str, set[str]] = {}
    for path in (ROOT / "tests").rglob("test_*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        functions = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
        found[path.name] = {name for name in functions if name.startswith("test_")}
    return found


# Links and names


def test_the_overview_links_every_page():
    linked = set(re.findall(r"\((differences-\w+\.md)\)", _text("differences.md")))

    assert linked == {page.name for page in PAGES} - {"differences.md"}


@pytest.mark.parametrize("page", [page.name for page in DOCS.glob("*.md")])
def test_links_within_the_docs_lead_somewhere(page: str):
    targets = re.findall(r"\]\(([^)#:]+\.md)(?:#[\w-]+)?\)", _text(page))

    assert [target for target in targets if not (DOCS / target).exists()] == []


@pytest.mark.parametrize("page", [page.name for page in PAGES])
def test_every_test_that_a_page_names_exists(page: str):
    spans = [span for span in CODE.findall(_text(page)) if span.startswith(("test_", "tests/"))]

    assert [span for span in spans if not _exists(span)] == []


def _exists(span: str) -> bool:
    if span.startswith("tests/"):
        return _is_a_path(span)
    file, _, name = span.rpartition("::")
    if span.endswith(".py"):
        return span in _tests()
    known = _tests().get(file, set()) if file else set().union(*_tests().values())
    stem = name.removesuffix("...").removesuffix("*")
    return any(test.startswith(stem) for test in known) if stem != name else name in known


def _is_a_path(span: str) -> bool:
    several = re.fullmatch(r"(.*)\{(.*)\}(.*)", span)
    spans = [f"{several[1]}{part}{several[3]}" for part in several[2].split(",")] if several else [span]
    return all(any(ROOT.glob(each.rstrip("/"))) for each in spans)


# Quirks


def test_every_quirk_is_listed_exactly_once():
    listed = Counter(
        row[0] for page in PAGES for row in _rows(page.name) if re.fullmatch(r"Q\d+", row[0]) and len(row) == 5
    )

    assert listed == Counter(QUIRKS)


def test_every_quirk_has_a_decision_and_a_test():
    rows = [row for row in _rows("differences-quirks.md") if row[0] in QUIRKS]

    assert {decision for _, _, decision, _, _ in rows} <= {"fixed", "kept", "not applicable"}
    assert [row[0] for row in rows if "test" not in row[4]] == []


def test_every_fixed_quirk_of_the_controller_has_a_switch():
    fixed = {row[0] for row in _rows("differences-quirks.md") if row[0] in QUIRKS and row[2] == "fixed"}

    switched = {quirk for quirks in switches().values() for quirk in quirks}
    elsewhere = {"Q34"}  # an upstream leak of memory, which nothing shows
    assert fixed - switched <= elsewhere
    assert switched <= fixed


# Traces


def _named_traces() -> dict[str, str]:
    """Trace -> the reasons of its row."""
    named: dict[str, str] = {}
    for row in _rows("differences-traces.md")[1:]:
        for trace in CODE.findall(row[1]):
            assert trace not in named, f"{trace} is named twice"
            named[trace] = row[0]
    return named


def test_the_traces_that_differ_by_default_are_those_that_are_named():
    differing = {trace["name"] for trace in job_traces() if differs(trace)}

    assert differing == set(_named_traces()), "run: PYTHONPATH=tests python tests/golden/differing.py"


def test_the_figures_of_the_page_are_right():
    everything, named = len(job_traces()), len(_named_traces())

    text = " ".join(_text("differences-traces.md").split())
    assert f"each of the {everything} recordings" in text
    assert f"default {named} of them" in text
    assert f"The other {everything - named} are equal" in text


def test_each_reason_is_one():
    """The first trace of each row is another one without the fixes that the row names."""
    known = switches()
    examples = {why: name for name, why in reversed(_named_traces().items())}
    by_name = {trace["name"]: trace for trace in job_traces()}

    for why, name in examples.items():
        quirks, beyond = set(re.findall(r"Q\d+", why)), set(CODE.findall(why))
        chosen = [switch for switch, found in known.items() if quirks & set(found) or switch in beyond]
        assert chosen, f"{why!r} names no switch"
        fixes = Behaviour(**{switch: switch in chosen for switch in known})
        assert differs(by_name[name], "strict", fixes), f"{name} does not differ because of {why}"
