"""The example of docs/testing.md runs."""

from __future__ import annotations

import re
from pathlib import Path

PAGE = Path(__file__).parents[3] / "docs" / "testing.md"


def test_the_example_runs():
    example, fixture = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)

    exec(compile(example, str(PAGE), "exec"), {"__name__": "example"})

    compile(fixture, str(PAGE), "exec")


def test_every_verb_that_it_names_exists():
    from vcnb.testing import Simulator

    named = set(re.findall(r"^\| `(?:with )?sim\.(\w+)", PAGE.read_text(encoding="utf-8"), re.MULTILINE))

    assert named >= {"run", "delete", "auto", "advance", "scheduler", "batch", "fail_next", "restart_controllers"}
    assert all(hasattr(Simulator, verb) for verb in named)
