"""What submitter and pod agree on: annotations, limits, and how messages travel.

The way there: one Secret per job, owned by it, whose keys the pod gets as environment variables (they work in every
runtime, also where nothing can be mounted). A Secret, because functions and arguments carry whatever a notebook has,
credentials too. The way back: frames in the pod's log (see ``pod/supervise.py``), the one channel that every cluster has.
"""

from __future__ import annotations

import base64
import hashlib
import io
import pickle
import re
import zlib
from collections.abc import Iterator
from typing import Any, Final

__all__ = [
    "CHUNK",
    "FUNCTION",
    "NONCE",
    "NOTEBOOK_ROOM",
    "OUTPUT",
    "PAYLOAD",
    "PAYLOAD_LIMIT",
    "RESULT_LIMIT",
    "RUN",
    "Reader",
    "last_lines",
    "size_text",
    "visible",
    "visible_lines",
]

RUN: Final = "vcnb/run"
"""Annotation of a Job: ``call``, ``map``, ``sweep`` or ``notebook``."""
FUNCTION: Final = "vcnb/run-of"
"""Annotation: the name of the function, or of the notebook's file."""
NONCE: Final = "vcnb/run-nonce"
"""Annotation: what the frames of this job begin with, so that nothing a program prints is taken for one."""
PAYLOAD: Final = "vcnb/run-payload"
"""Annotation: the name of the Secret with the payload."""
OUTPUT: Final = "vcnb/run-output"
"""Annotation: where the executed notebook is saved."""

PAYLOAD_LIMIT: Final = 768 * 1024
"""Bytes of a payload after compression: base64 makes 1 MiB of it, which is what a Secret may hold."""
RESULT_LIMIT: Final = 4 * 1024 * 1024
"""Bytes of one result after compression: with base64 about half of the 10 MiB at which a kubelet rotates logs."""
NOTEBOOK_ROOM: Final = 6 * 1024 * 1024
"""Bytes of all cells of an executed notebook after compression, for the same reason."""
CHUNK: Final = 96 * 1024
"""Characters in one environment variable; Linux allows 128 KiB."""

_FRAME = re.compile(r"@vcnb ([0-9a-f]{16}) (\d+) (\d+)/(\d+) ([0-9a-f]{16}) ([A-Za-z0-9+/=]*)\s*$")
_PREFIX = re.compile(r"\S+ \| ")


class Reader:
    """Puts messages together from the lines of a log. Damaged ones are counted, never handed out."""

    def __init__(self, nonce: str) -> None:
        self._nonce = nonce
        self._parts: dict[tuple[str, str], dict[int, str]] = {}
        self.missing = 0
        """How many lines are known to be missing, of messages that have begun."""

    def feed(self, line: str) -> dict[str, Any] | None:
        """Take a line; the message that it completes."""
        if "@vcnb " not in line:
            return None
        match = _FRAME.search(line)
        if match is None or match[1] != self._nonce:
            return None
        _, number, part, parts, digest, text = match.groups()
        found = self._parts.setdefault((number, digest), {})
        found[int(part)] = text
        if len(found) < int(parts):
            self.missing = int(parts) - len(found)
            return None
        del self._parts[number, digest]
        self.missing = 0
        return _message("".join(found[at] for at in sorted(found)), digest)

    def messages(self, text: str) -> Iterator[dict[str, Any]]:
        """All messages of a text."""
        for line in text.split("\n"):
            message = self.feed(line)
            if message is not None:
                yield message


def _message(text: str, digest: str) -> dict[str, Any] | None:
    if hashlib.sha256(text.encode()).hexdigest()[:16] != digest:
        return None
    try:
        found = _Plain(io.BytesIO(zlib.decompress(base64.b64decode(text)))).load()
    except (ValueError, zlib.error, pickle.UnpicklingError, EOFError):
        return None
    return found if isinstance(found, dict) else None


class _Plain(pickle.Unpickler):
    """Reads values of built-in types only: an envelope needs no classes."""

    def find_class(self, module: str, name: str) -> Any:
        raise pickle.UnpicklingError(f"{module}.{name} in an envelope")


def visible(text: str) -> str:
    """A log without frames, as people want it."""
    if "@vcnb " not in text:
        return text
    lines = text.split("\n")
    ends = lines.pop()
    kept = [f"{line}\n" for line in visible_lines(lines)]
    return "".join(kept) + "".join(visible_lines([ends]))


def visible_lines(lines: list[str]) -> list[str]:
    """Lines without frames; what a program printed before a frame in the same line is kept."""
    kept = []
    for line in lines:
        match = _FRAME.search(line) if "@vcnb " in line else None
        if match is None:
            kept.append(line)
        elif match.start() and not _PREFIX.fullmatch(line[: match.start()]):
            kept.append(line[: match.start()])
    return kept


def last_lines(text: str, tail: int | None) -> str:
    """The last lines of a text; all of it for None."""
    if tail is None:
        return text
    return "".join(text.splitlines(keepends=True)[-tail:]) if tail else ""


def size_text(size: float) -> str:
    """``3.2 MiB``, ``12 KiB``, ``800 bytes``."""
    if size < 1024:
        return f"{size:.0f} bytes"
    unit, amount = ("KiB", size / 1024) if size < 1024 * 1024 else ("MiB", size / 1024 / 1024)
    return f"{amount:.1f} {unit}".replace(".0 ", " ")
