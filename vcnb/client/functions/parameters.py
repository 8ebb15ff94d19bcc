"""The parameters of a notebook, read from its ``parameters`` cell by parsing it, and checked before anything runs.

papermill only warns about a name that no cell knows, injects parameters that nothing reads into a notebook without a
``parameters`` cell, misreads annotations and defaults (its inspector is a regular expression), and turns values that are
no JSON into text. Each of these makes a run that looks right and used other parameters than it was given.
"""

from __future__ import annotations

import ast
import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from vcnb.client.functions.pod.notebook import is_python
from vcnb.errors import VcnbError

__all__ = ["OWN", "Parameter", "ParameterError", "check_parameters", "parameters_of", "read_parameters"]

OWN = ("vcnb_waive", "vcnb_where", "vcnb_on_exit", "vcnb_linger", "vcnb_image", "vcnb_queue", "vcnb_cluster")
"""Parameters that are for vcnb; a notebook need not know them."""
_PAPERMILL = ("PAPERMILL_INPUT_PATH", "PAPERMILL_OUTPUT_PATH")


class ParameterError(VcnbError):
    """Parameters that the notebook does not know, or values that cannot be passed."""


@dataclass(frozen=True)
class Parameter:
    """One parameter: its default and annotation as they are written; empty where there is none."""

    name: str
    default: str = ""
    annotation: str = ""


def read_parameters(source: str) -> dict[str, Parameter]:
    """The parameters that a cell assigns at its top level (also inside ``if``, ``try`` and ``with``), in order.

    Lines that are magics or shell commands are left out. Raises SyntaxError.
    """
    lines = ["" if line.startswith(("%", "!", "?")) else line for line in source.splitlines()]
    found: dict[str, Parameter] = {}
    for parameter in _assigned(ast.parse("\n".join(lines)).body):
        found.setdefault(parameter.name, parameter)
    return found


def _assigned(body: Iterable[ast.stmt]) -> Iterable[Parameter]:
    for statement in body:
        if isinstance(statement, ast.Assign):
            for target in statement.targets:
                yield from _targets(target, ast.unparse(statement.value))
        elif isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            default = "" if statement.value is None else ast.unparse(statement.value)
            yield Parameter(statement.target.id, default, ast.unparse(statement.annotation))
        elif isinstance(statement, (ast.If, ast.Try, ast.With)):
            for part in ("body", "orelse", "finalbody"):
                yield from _assigned(getattr(statement, part, ()))


def _targets(target: ast.expr, default: str) -> Iterable[Parameter]:
    if isinstance(target, ast.Name):
        yield Parameter(target.id, default)
    elif isinstance(target, (ast.Tuple, ast.List)):
        for element in target.elts:
            yield from _targets(element, "")


def parameters_of(notebook: Mapping[str, Any]) -> dict[str, Parameter] | None:
    """The parameters of a notebook; None when it has no cell tagged ``parameters``. Raises ParameterError."""
    for number, cell in enumerate(notebook["cells"], start=1):
        if "parameters" not in cell.get("metadata", {}).get("tags", ()):
            continue
        try:
            return read_parameters(_source(cell))
        except SyntaxError as error:
            raise ParameterError(
                f"the parameters cell (cell {number}) is no Python: line {error.lineno}: {error.msg}"
            ) from None
    return None


def _source(cell: Mapping[str, Any]) -> str:
    source = cell.get("source", "")
    return source if isinstance(source, str) else "".join(source)


def check_parameters(notebook: Mapping[str, Any], given: Mapping[str, Any]) -> None:
    """Refuse parameters that the notebook does not know, and values that are no JSON. Raises ParameterError.

    Only notebooks in Python are checked for names. ``vcnb_...`` and ``PAPERMILL_...`` names always may be given.
    """
    problems = [f"{name}: {wrong}" for name, value in given.items() if (wrong := _wrong(value))]
    wanted = [name for name in given if name not in OWN and name not in _PAPERMILL]
    if wanted and is_python(notebook):
        known = parameters_of(notebook)
        if known is None:
            raise ParameterError(_untagged(notebook, wanted))
        problems += [_unknown(name, list(known)) for name in wanted if name not in known]
    if problems:
        raise ParameterError("the notebook cannot be run with these parameters:\n  " + "\n  ".join(problems))


def _unknown(name: str, known: list[str]) -> str:
    near = difflib.get_close_matches(name, known, n=1)
    hint = f"did you mean {near[0]!r}? " if near else ""
    return f"{name}: the notebook has no such parameter; {hint}it has: {', '.join(known) or 'none'}"


def _untagged(notebook: Mapping[str, Any], wanted: list[str]) -> str:
    written = [
        cell for cell in notebook["cells"] if "injected-parameters" not in cell.get("metadata", {}).get("tags", ())
    ]
    for number, cell in enumerate(written, start=1):
        if cell.get("cell_type") != "code":
            continue
        try:
            assigned = read_parameters(_source(cell))
        except SyntaxError:
            continue
        if any(name in assigned for name in wanted):
            return (
                f"no cell of the notebook is tagged 'parameters', so {', '.join(wanted)} would be set first and then set "
                f"again by cell {number}; give that cell the tag"
            )
    return f"no cell of the notebook is tagged 'parameters', so nothing in it knows {', '.join(wanted)}; tag a cell"


def _wrong(value: Any, where: str = "") -> str:
    """Why a value cannot be passed; empty when it can."""
    if value is None or type(value) in (bool, int, float, str):  # a numpy.float64 is a float by inheritance only
        return ""
    if isinstance(value, (list, tuple)):
        return next((wrong for number, item in enumerate(value) if (wrong := _wrong(item, f"{where}[{number}]"))), "")
    if isinstance(value, Mapping):
        keys = [key for key in value if not isinstance(key, str)]
        if keys:
            return f"{where or 'it'} has the key {keys[0]!r}, which is no text"
        return next((wrong for key, item in value.items() if (wrong := _wrong(item, f"{where}[{key!r}]"))), "")
    hint = ""
    if hasattr(value, "tolist"):
        hint = "; convert it with .tolist()"
    elif hasattr(value, "__fspath__"):
        hint = "; convert it with str(...)"
    return (
        f"{where or 'it'} is a {type(value).__name__}, and only numbers, texts, lists and mappings can be passed{hint}"
    )
