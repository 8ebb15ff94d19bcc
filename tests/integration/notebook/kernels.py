"""A real kernel for tests: cells are queued all at once, as "Run All" does, and every reply is waited for."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, field
from typing import Any

from jupyter_client.manager import KernelManager

CELL_SECONDS = 60.0


@dataclass
class Cell:
    """What came back of one cell."""

    status: str = ""
    reply: dict[str, Any] = field(default_factory=dict)
    streams: dict[str, str] = field(default_factory=dict)
    displays: list[dict[str, Any]] = field(default_factory=list)
    result: dict[str, Any] = field(default_factory=dict)

    @property
    def text(self) -> str:
        return self.streams.get("stdout", "")


class Kernel:
    """One IPython kernel process. ``run_all`` queues cells without waiting in between."""

    def __init__(self, env: dict[str, str]) -> None:
        self.updates: list[dict[str, Any]] = []
        self._manager = KernelManager(kernel_name="python3")
        self._manager.start_kernel(env={**os.environ, **env})
        self.client = self._manager.client()
        self.client.start_channels()
        self.client.wait_for_ready(timeout=CELL_SECONDS)

    @property
    def pid(self) -> int:
        return int(self._manager.provisioner.pid)

    def run_all(self, *cells: str, allow_stdin: bool = False, stop_on_error: bool = True) -> list[Cell]:
        asked = [self.client.execute(code, allow_stdin=allow_stdin, stop_on_error=stop_on_error) for code in cells]
        found = {identity: Cell() for identity in asked}
        idle: set[str] = set()
        deadline = time.monotonic() + CELL_SECONDS
        while len(idle) < len(asked):
            message = self.client.get_iopub_msg(timeout=max(deadline - time.monotonic(), 0.1))
            parent = message["parent_header"].get("msg_id", "")
            if message["msg_type"] == "update_display_data":
                self.updates.append(message["content"])  # a background thread's belong to no cell
            if parent in found:
                _take(found[parent], message)
                if message["msg_type"] == "status" and message["content"]["execution_state"] == "idle":
                    idle.add(parent)
        waiting = set(asked)
        while waiting:
            reply = self.client.get_shell_msg(timeout=max(deadline - time.monotonic(), 0.1))
            identity = reply["parent_header"]["msg_id"]
            if identity in waiting:  # others answer what the client asked at its start
                waiting.discard(identity)
                found[identity].status, found[identity].reply = reply["content"]["status"], reply["content"]
        return [found[identity] for identity in asked]

    def run(self, code: str, **options: Any) -> Cell:
        return self.run_all(code, **options)[0]

    def interrupt(self) -> None:
        self._manager.interrupt_kernel()

    def kill(self) -> None:
        self._manager.shutdown_kernel(now=True)

    def close(self) -> None:
        self.client.stop_channels()
        if self._manager.has_kernel:
            self._manager.shutdown_kernel()
        self._manager.context.destroy()


def _take(cell: Cell, message: dict[str, Any]) -> None:
    kind, content = message["msg_type"], message["content"]
    if kind == "stream":
        cell.streams[content["name"]] = cell.streams.get(content["name"], "") + content["text"]
    elif kind == "display_data":
        cell.displays.append(content)
    elif kind == "execute_result":
        cell.result = content["data"]
