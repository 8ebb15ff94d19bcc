"""Who is looking: a live front end, one that only keeps what is printed (papermill, nbconvert), or a terminal.

``VCNB_FRONTEND=live|static|none``, or ``%vcnb config frontend=``, decides; else it is found out. A person's front end lets a
cell ask for input, one that runs a notebook unattended does not: that is how they are told apart (the ``allow_stdin`` flag of
Jupyter's execute request).
"""

from __future__ import annotations

import os
from importlib.util import find_spec
from typing import Any, Literal, TypeAlias, get_args

from vcnb.errors import VcnbError

__all__ = ["FrontEnd", "front_end", "set_front_end", "set_widgets", "widgets_wanted"]

FrontEnd: TypeAlias = Literal["live", "static", "none"]

_chosen: FrontEnd | None = None
_widgets: bool | None = None


def set_front_end(value: str) -> None:
    """Decide for this kernel; ``auto`` finds out again."""
    global _chosen  # noqa: PLW0603 - one kernel has one front end
    if value == "auto":
        _chosen = None
    elif value in get_args(FrontEnd):
        _chosen = value  # type: ignore[assignment]
    else:
        raise VcnbError(f"frontend={value} is not known; possible: auto, {', '.join(get_args(FrontEnd))}")


def front_end(shell: Any) -> FrontEnd:
    """What this cell's outputs are shown by."""
    if _chosen is not None:
        return _chosen
    asked = os.environ.get("VCNB_FRONTEND", "")
    if asked in get_args(FrontEnd):
        return asked  # type: ignore[return-value]
    kernel = getattr(shell, "kernel", None)
    if kernel is None:
        return "none"
    return "live" if _may_ask(kernel) else "static"


def _may_ask(kernel: Any) -> bool:
    try:
        return bool(kernel.get_parent("shell")["content"]["allow_stdin"])
    except (AttributeError, KeyError, TypeError):
        return False


def set_widgets(value: str) -> None:
    """``on``, ``off``, or ``auto``: on where ipywidgets and anywidget are installed."""
    global _widgets  # noqa: PLW0603 - as above
    if value not in ("on", "off", "auto"):
        raise VcnbError(f"widgets={value} is not known; possible: auto, on, off")
    _widgets = None if value == "auto" else value == "on"


def widgets_wanted() -> bool:
    """Whether live views are widgets: ``VCNB_WIDGETS=on|off`` or ``%vcnb config widgets=``, else whether they can be."""
    if _widgets is not None:
        return _widgets
    asked = os.environ.get("VCNB_WIDGETS", "")
    if asked in ("on", "off"):
        return asked == "on"
    return all(find_spec(name) is not None for name in ("anywidget", "ipywidgets"))
