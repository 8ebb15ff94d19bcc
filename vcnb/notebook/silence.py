"""Values that a cell gives without showing them: ``--quiet``, a trailing ``;``, and jobs that are shown live already.

A magic's value is its handle, whatever is shown: it is in ``_``, and a caller of ``run_cell_magic`` gets it. What a cell gives
goes to ``sys.displayhook``, which IPython sets while a cell runs and puts back at its end.
"""

from __future__ import annotations

import sys
from typing import Any

__all__ = ["ends_silently", "silence"]


def silence(shell: Any, value: Any) -> Any:
    """The value itself; when it is what the running cell gives, it is kept in ``_`` and ``Out``, and not shown."""
    if value is None or shell is None or not shell.display_trap.is_active:
        return value
    before = sys.displayhook

    def keep(result: Any) -> None:
        if result is not value:
            before(result)
            return
        shell.displayhook.check_for_underscore()
        shell.displayhook.update_user_ns(value)
        shell.displayhook.fill_exec_result(value)

    sys.displayhook = keep
    return value


def ends_silently(line: str) -> tuple[str, bool]:
    """A magic's line without the ``;`` at its end, and whether there was one; one that is quoted or escaped is text."""
    stripped = line.rstrip()
    if stripped.endswith(";") and not stripped.endswith("\\;"):
        return stripped.rstrip(";"), True
    return line, False
