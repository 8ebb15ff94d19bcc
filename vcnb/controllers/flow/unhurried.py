"""Expressions that may take long run in a process of their own, which ends after a second (jobflow.md 14.3).

The CEL library cannot be interrupted and holds the interpreter, so in this process a condition over a list of a hundred
thousand items would stop every controller. What it may cost is estimated from the expression's loops and the longest list
that it can see; nearly all conditions are far below the limit and are evaluated at once.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Mapping
from typing import Any, Final

from vcnb.admission.expressions import loops

__all__ = ["SECONDS", "evaluate", "is_quick"]

SECONDS: Final = 1.0
_QUICK: Final = 1_000_000
"""Steps that take about 50 ms: of the library's ``map`` one costs 50 ns, and a list of n is copied for each of its items."""
_START: Final = 30.0


def is_quick(expression: str, variables: Mapping[str, Any]) -> bool:
    """Whether the evaluation surely takes no more than a moment."""
    found = loops(expression)
    if not found.chains:
        return True
    length = max(_longest(variables), found.elements) * (1 + found.additions)
    return sum(_steps(chain, length) for chain in found.chains) <= _QUICK


def _steps(chain: tuple[str, ...], length: int) -> int:
    steps = 1
    for macro in reversed(chain):
        steps = length * steps + (length * length if macro in {"map", "filter"} else 0)
    return steps


def _longest(value: Any) -> int:
    if isinstance(value, Mapping):
        return max(len(value), *map(_longest, value.values())) if value else 0
    if isinstance(value, (list, tuple)):
        return max(len(value), *map(_longest, value)) if value else 0
    return 0


def evaluate(expression: str, variables: Mapping[str, Any]) -> Any:
    """The value, from a process of its own that the caller waits for. Raises ValueError with what is wrong."""
    try:
        done = subprocess.run(
            [sys.executable, "-m", "vcnb.controllers.flow.unhurried"],
            input=json.dumps([expression, variables]),
            capture_output=True,
            text=True,
            timeout=_START,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ValueError(f"could not be evaluated in a process of its own: {error}") from None
    if done.returncode == -signal.SIGALRM:
        raise ValueError(f"takes longer than {SECONDS:g} s")
    if done.returncode:
        raise ValueError(f"could not be evaluated: {done.stderr.strip().splitlines()[-1:] or done.returncode}")
    answer = json.loads(done.stdout)
    if "error" in answer:
        raise ValueError(answer["error"])
    return answer["value"]


def _main() -> None:
    from vcnb.controllers.flow.expressions import ConditionError, evaluate_here

    expression, variables = json.load(sys.stdin)
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    try:
        answer = {"value": evaluate_here(expression, variables)}
    except ConditionError as error:
        answer = {"error": error.why}
    json.dump(answer, sys.stdout)


if __name__ == "__main__":
    _main()
