"""The argument line of a magic: split as a POSIX shell does, each argument expanded alone, then parsed.

``{expr}`` and ``$name`` are replaced from the user's namespace; ``{{`` and ``}}`` are braces, ``$$`` is a dollar sign. A value
with blanks stays one argument, because splitting comes first. Every mistake is IPython's ``UsageError``.
"""

from __future__ import annotations

import argparse
import re
import shlex
import string
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

from IPython.core.error import UsageError

__all__ = ["Help", "Parser", "add_quietness", "expand", "expand_body", "split"]

_DOLLAR = re.compile(r"\$(?:(\$)|([A-Za-z_]\w*))")
_CONVERSIONS: Mapping[str, Callable[[Any], str]] = {"r": repr, "s": str, "a": ascii}
_TEMPLATE = re.compile(r"\{\{(.*?)\}\}", re.DOTALL)


class Help(Exception):
    """``-h``: the text to show."""


class Parser(argparse.ArgumentParser):
    """An argparse parser that never exits: mistakes are UsageError, ``-h`` raises Help."""

    def __init__(self, prog: str, description: str = "", epilog: str = "") -> None:
        super().__init__(
            prog=prog,
            description=description,
            epilog=epilog,
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
            add_help=False,
        )
        self.add_argument("-h", "--help", action=_ShowHelp, nargs=0, help="show this help")

    def error(self, message: str) -> NoReturn:
        hint = _nearest_option(self, message)
        raise UsageError(f"{self.prog}: {message}{hint}; {self.prog} -h shows all options")

    def exit(self, status: int = 0, message: str | None = None) -> NoReturn:
        raise UsageError(message or self.prog)


def add_quietness(parser: argparse.ArgumentParser) -> None:
    """The options that every verb has."""
    parser.add_argument("--no-raise", action="store_true", help="tell what goes wrong instead of raising it")
    parser.add_argument("--quiet", action="store_true", help="show nothing")


class _ShowHelp(argparse.Action):
    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> NoReturn:
        raise Help(parser.format_help())


def _nearest_option(parser: argparse.ArgumentParser, message: str) -> str:
    import difflib

    wrong = re.search(r"unrecognized arguments: (--?[\w-]+)", message)
    if not wrong:
        return ""
    known = [option for action in parser._actions for option in action.option_strings]  # noqa: SLF001 - no public list
    near = difflib.get_close_matches(wrong.group(1), known, n=1)
    return f"; did you mean {near[0]}?" if near else ""


def split(line: str, names: Mapping[str, Any]) -> list[str]:
    """The arguments of a magic's line, split and then expanded from ``names``."""
    try:
        words = shlex.split(line, comments=False, posix=True)
    except ValueError as error:
        raise UsageError(f"the argument line cannot be split: {str(error).lower()}; close the quote") from None
    return [expand(word, names) for word in words]


def expand(text: str, names: Mapping[str, Any]) -> str:
    """``{expr}`` and ``$name`` in one argument, from ``names``."""
    parts: list[str] = []
    try:
        pieces = list(string.Formatter().parse(text))
    except ValueError as error:
        raise UsageError(f"{text!r}: {error}; write {{{{ for a brace") from None
    for literal, expression, layout, conversion in pieces:
        parts.append(_DOLLAR.sub(lambda found: "$" if found.group(1) else str(_name(found.group(2), names)), literal))
        if expression is not None:
            value = _evaluate(expression, names, text)
            value = _CONVERSIONS[conversion](value) if conversion else value
            parts.append(format(value, layout or ""))
    return "".join(parts)


def expand_body(body: str, names: Mapping[str, Any]) -> str:
    """``{{ expr }}`` in a cell's body (``--template``); an unknown name is an error with its line in the cell."""

    def replace(found: re.Match[str]) -> str:
        line = body.count("\n", 0, found.start()) + 2
        return str(_evaluate(found.group(1).strip(), names, f"line {line} of the cell"))

    return _TEMPLATE.sub(replace, body)


def _name(name: str, names: Mapping[str, Any]) -> Any:
    if name not in names:
        raise UsageError(f"${name}: there is no variable {name!r} in this notebook; write $$ for a dollar sign")
    return names[name]


def _evaluate(expression: str, names: Mapping[str, Any], where: str) -> Any:
    try:
        return eval(expression, {"__builtins__": __builtins__}, dict(names))  # noqa: S307 - the user's own cell
    except NameError as error:
        raise UsageError(f"{where}: {error}; define it in a cell before, or write {{{{ and }}}} for braces") from None
    except Exception as error:  # noqa: BLE001 - whatever the user's expression raises
        raise UsageError(f"{where}: {{{expression}}} failed: {type(error).__name__}: {error}") from None


def key_values(pairs: Sequence[str], option: str) -> dict[str, str]:
    """``K=V`` options as a mapping."""
    found: dict[str, str] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key:
            raise UsageError(f"{option} {pair!r}: write {option} NAME=VALUE")
        found[key] = value
    return found
