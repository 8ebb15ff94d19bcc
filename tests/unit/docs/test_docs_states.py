"""docs/states.md is what its generator makes of the state table, and says what the table says."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

from vcnb.controllers.job.states import rows
from vcnb.resources.phases import JobPhase

DOCS = Path(__file__).parents[3] / "docs"


@pytest.fixture(scope="module")
def make_states() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_states", DOCS / "make_states.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_is_up_to_date(make_states: ModuleType):
    stored = (DOCS / "states.md").read_text(encoding="utf-8")

    assert stored == make_states.page(), "run: python docs/make_states.py"


def test_every_phase_is_explained(make_states: ModuleType):
    assert set(make_states.PHASES) == set(JobPhase) - {JobPhase.UNSET}


def test_the_diagram_has_every_move_of_the_table(make_states: ModuleType):
    drawn = set(re.findall(r"^    (\w+) --> (\w+):", make_states.page(), re.MULTILINE))

    moves = {(phase, to.value) for phase, _, row in rows() if phase and row.rule for to in row.rule.to}
    assert drawn == {(before, after) for before, after in moves if before != after}
