"""The fork server: one shim per request."""

from __future__ import annotations

import gc
import json
import os
import signal
import socket
import sys
from typing import Any

from .room import try_room
from .shim import PR_SET_NAME, run_shim
from .system import LIBC

__all__ = ["main"]


def serve(commands: socket.socket, reports: socket.socket) -> None:
    """Fork a shim for each request until the agent is gone."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel reaps the shims
    while (request := receive(commands)) is not None:
        if os.fork() == 0:
            commands.close()
            run_shim(request, reports)


def receive(commands: socket.socket) -> dict[str, Any] | None:
    """The next request; None at the end of the stream."""
    head = receive_exactly(commands, 4)
    body = receive_exactly(commands, int.from_bytes(head, "big")) if head else b""
    return json.loads(body) if body else None


def receive_exactly(commands: socket.socket, size: int) -> bytes:
    """``size`` bytes, or nothing when the stream ends before."""
    parts = bytearray()
    while len(parts) < size:
        part = commands.recv(size - len(parts))
        if not part:
            return b""
        parts += part
    return bytes(parts)


def main() -> None:
    """Serve on the two sockets whose descriptors are the arguments, or try a sandbox."""
    if sys.argv[1] == "--try":
        sys.exit(try_room(sys.argv[2:]) or 0)
    commands, reports = (socket.socket(fileno=int(text)) for text in sys.argv[1:3])
    commands.set_inheritable(False)
    reports.set_inheritable(False)
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    LIBC.prctl(PR_SET_NAME, b"vcnb-launcher", 0, 0, 0)
    gc.collect()
    gc.freeze()  # the shims share these pages instead of copying them at the first collection
    gc.disable()
    serve(commands, reports)
