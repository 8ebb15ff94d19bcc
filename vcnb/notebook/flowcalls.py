"""``train(C=item, folds=params.folds)`` in a ``%%jobflow`` cell: a name, and arguments that may be expressions."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final

from vcnb.client.functions.function import plain
from vcnb.notebook.flowtext import CellError

__all__ = ["Call", "call_of"]

_CALL: Final = re.compile(r"(?P<name>[^\s()]+)\s*(?P<arguments>\(.*\))?\Z", re.DOTALL)
_VARIABLES: Final = frozenset({"params", "flow", "flows", "item", "index", "iteration", "true", "false", "null"})
_FUNCTIONS: Final = frozenset({"size", "string", "int", "double", "uint", "bool", "has", "type"})


@dataclass(frozen=True)
class Call:
    """What a node's work says. ``args`` and ``kwargs`` are None where there are no brackets."""

    name: str
    line: int
    args: tuple[Any, ...] | None = None
    kwargs: Mapping[str, Any] | None = None

    def arguments(self, found: Any, params: Collection[str], *, items: bool) -> Any:
        """The arguments for what was found.

        A function without brackets gets the flow's parameters by name, its ``item`` and ``index``, and where there are
        items and one parameter is left, the item.
        """
        if not (callable(found) and not hasattr(found, "to_manifest")):
            if self.kwargs is not None and not self.name.endswith(".ipynb"):
                raise CellError(
                    self.line, f"{self.name!r} is no function or notebook, so it takes no arguments; use --env K=V"
                )
            if self.args:
                raise CellError(
                    self.line, f"{self.name}: the parameters of a notebook have names: {self.name}(NAME=VALUE)"
                )
            return self.kwargs or None
        if self.args is None or self.kwargs is None:
            return self._by_name(found, params, items=items)
        if not self.args:
            return self.kwargs
        names = list(_parameters(found))
        if len(self.args) > len(names):
            raise CellError(self.line, f"{self.name} takes {len(names)} arguments, {len(self.args)} are given")
        return {**dict(zip(names, self.args, strict=False)), **self.kwargs}

    @staticmethod
    def _by_name(function: Any, params: Collection[str], *, items: bool) -> dict[str, Any]:
        known = {name: f"${{{{ params.{name} }}}}" for name in params}
        known |= {"item": "${{ item }}", "index": "${{ index }}"} if items else {}
        parameters = _parameters(function)
        found = {name: known[name] for name in parameters if name in known}
        open_ones = [name for name, required in parameters.items() if required and name not in found]
        if items and len(open_ones) == 1 and "item" not in found:
            found[open_ones[0]] = "${{ item }}"
        return found


def _parameters(function: Any) -> dict[str, bool]:
    """The parameters of a function that can be given by name, and whether they must be given."""
    try:
        parameters = inspect.signature(plain(function)).parameters.values()
    except (TypeError, ValueError):  # a builtin that does not tell
        return {}
    named = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return {each.name: each.default is inspect.Parameter.empty for each in parameters if each.kind in named}


def call_of(text: str, names: Mapping[str, Any], line: int) -> Call:
    """Read a node's work. Raises CellError."""
    found = _CALL.match(text)
    if found is None:
        raise CellError(line, f"{text!r} is no name and no call; write NAME or NAME(ARGUMENT=VALUE)")
    if found["arguments"] is None:
        return Call(found["name"], line)
    source = f"f{found['arguments']}"
    try:
        tree = ast.parse(source, mode="eval").body
    except SyntaxError as error:
        raise CellError(
            line,
            f'the arguments {found["arguments"]} cannot be read: {error.msg}; a longer expression goes in quotes: "${{{{ ... }}}}"',
        ) from None
    if not isinstance(tree, ast.Call) or any(keyword.arg is None for keyword in tree.keywords):
        raise CellError(line, f"the arguments {found['arguments']} cannot be read; write NAME(ARGUMENT=VALUE, ...)")
    args = tuple(_value(each, source, names, line) for each in tree.args)
    kwargs = {str(keyword.arg): _value(keyword.value, source, names, line) for keyword in tree.keywords}
    return Call(found["name"], line, args, kwargs)


def _value(node: ast.expr, source: str, names: Mapping[str, Any], line: int) -> Any:
    """A literal, an expression of the flow as ``${{ ... }}``, or what the notebook's variables give now."""
    try:
        return ast.literal_eval(node)
    except ValueError:
        pass
    text = ast.get_source_segment(source, node) or ""
    called = {id(each.func) for each in ast.walk(node) if isinstance(each, ast.Call)}
    roots = {
        each.id
        for each in ast.walk(node)
        if isinstance(each, ast.Name) and not (id(each) in called and each.id in _FUNCTIONS)
    }
    if roots and roots <= _VARIABLES:
        return f"${{{{ {text} }}}}"
    mixed = roots & _VARIABLES
    if mixed:
        other = min(roots - _VARIABLES)
        raise CellError(
            line,
            f"{text!r} mixes {min(mixed)!r}, known when the node runs, with {other!r} of this notebook; give them as two arguments",
        )
    try:
        return eval(compile(ast.Expression(node), "<cell>", "eval"), {"__builtins__": __builtins__}, dict(names))  # noqa: S307 - the user's own cell
    except Exception as error:  # noqa: BLE001 - whatever the user's expression raises
        raise CellError(line, f"{text!r}: {type(error).__name__}: {error}") from None
