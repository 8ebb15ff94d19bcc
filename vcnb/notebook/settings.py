"""The verbs of ``%vcnb``: connect, status, queues, dashboard, metrics, config, nest."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from IPython.core.error import UsageError

from vcnb.client.connect import connect
from vcnb.errors import VcnbError
from vcnb.notebook.arguments import Parser, add_quietness, key_values
from vcnb.notebook.current import current, set_current
from vcnb.notebook.frontend import front_end, set_front_end, set_widgets, widgets_wanted

__all__ = ["SETTINGS", "VERBS"]


def _parser(verb: str, description: str) -> Parser:
    parser = Parser(f"%vcnb {verb}", description)
    add_quietness(parser)
    return parser


def _connect(_shell: Any, words: Sequence[str]) -> Any:
    parser = _parser("connect", "Choose the cluster that this notebook's magics talk to.")
    parser.add_argument(
        "url", nargs="?", help="embedded://name, memory:// ...; default: VCNB_CLUSTER, embedded://default"
    )
    options = parser.parse_args(words)
    set_current(connect(options.url))
    return current()


def _status(_shell: Any, words: Sequence[str]) -> Any:
    _parser("status", "What the cluster runs on, what is in use, jobs by phase.").parse_args(words)
    return current().status()


def _queues(_shell: Any, words: Sequence[str]) -> Any:
    _parser("queues", "The cluster's queues.").parse_args(words)
    return current().queues


SETTINGS: dict[str, Callable[[str], None]] = {"frontend": set_front_end, "widgets": set_widgets}


def _metrics(_shell: Any, words: Sequence[str]) -> Any:
    _parser("metrics", "What the cluster's controllers have counted, under Volcano's names.").parse_args(words)
    return current().metrics()


def _config(shell: Any, words: Sequence[str]) -> None:
    parser = _parser("config", "Show or change settings of this notebook.")
    parser.add_argument(
        "settings", nargs="*", metavar="NAME=VALUE", help="frontend=live|static|none|auto, widgets=on|off|auto"
    )
    options = parser.parse_args(words)
    for key, value in key_values(options.settings, "%vcnb config").items():
        if key not in SETTINGS:
            raise UsageError(f"%vcnb config: unknown setting {key!r}; there are: {', '.join(SETTINGS)}")
        try:
            SETTINGS[key](value)
        except VcnbError as error:
            raise UsageError(f"%vcnb config: {error}") from None
    print(f"frontend={front_end(shell)} widgets={'on' if widgets_wanted() else 'off'}")  # noqa: T201 - what was asked for


def _dashboard(_shell: Any, words: Sequence[str]) -> Any:
    _parser("dashboard", "Nodes, queues and jobs, kept up to date.").parse_args(words)
    return current().dashboard()


def _nest(_shell: Any, words: Sequence[str]) -> None:
    from vcnb.notebook.nesting import nest

    _parser("nest", "Allow asyncio.run() in cells, where that is safe.").parse_args(words)
    print(nest())  # noqa: T201 - says what was done


VERBS: dict[str, Callable[[Any, Sequence[str]], Any]] = {
    "connect": _connect,
    "status": _status,
    "queues": _queues,
    "dashboard": _dashboard,
    "metrics": _metrics,
    "config": _config,
    "nest": _nest,
}
