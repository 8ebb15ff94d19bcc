"""The last words of a container: its termination message."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from vcnb.local.node.layout import Attempt, Exit

__all__ = ["termination_message"]

_FILE_LIMIT = 4096
_LOG_LIMIT = 2048
_LOG_LINES = 80


def termination_message(spec: Mapping[str, Any], attempt: Attempt, end: Exit) -> str:
    """What the container wrote to its termination log; with FallbackToLogsOnError else the end of a failed one's log.

    Limits are those of the kubelet: 4096 bytes of the file, 2048 bytes or 80 lines of the log.
    """
    message = _head(attempt.termination_log)
    if message or end.code == 0 or spec.get("terminationMessagePolicy") != "FallbackToLogsOnError":
        return message
    return "\n".join(_tail(attempt.log).splitlines()[-_LOG_LINES:])


def _head(path: Path) -> str:
    try:
        with path.open("rb") as stream:
            return stream.read(_FILE_LIMIT).decode("utf-8", "replace")
    except OSError:
        return ""


def _tail(path: Path) -> str:
    try:
        with path.open("rb") as stream:
            stream.seek(max(stream.seek(0, os.SEEK_END) - _LOG_LIMIT, 0))
            return stream.read(_LOG_LIMIT).decode("utf-8", "replace")
    except OSError:
        return ""
