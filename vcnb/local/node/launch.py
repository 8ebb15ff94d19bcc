"""The node agent's end of the fork server: start containers, run commands in them.

See launcher/ for what happens on the other side and what it leaves on disk.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vcnb.clock import Clock
from vcnb.errors import VcnbError
from vcnb.local.node.processes import Process, boot_id, find_process

__all__ = ["Launch", "Launcher", "LauncherGone", "Report", "launcher_command", "output_of"]

_START = "import sys; sys.path.append(sys.argv.pop(1)); from launcher.server import main; main()"
"""The fork server is a package of its own: importing it as part of vcnb would load the rest of vcnb into every shim."""
_OUTPUT_LIMIT = 4096


def launcher_command(*arguments: object) -> list[str]:
    """How the fork server is run: isolated and without site-packages."""
    return [sys.executable, "-I", "-S", "-c", _START, str(Path(__file__).parent), *map(str, arguments)]


class LauncherGone(VcnbError):
    """The fork server ended before it answered; what it started is known from the files alone."""


@dataclass(frozen=True)
class Launch:
    """One program to start. Paths are those of the host, ``cwd`` is one inside the room (if there is a room).

    ``room`` is the bwrap command line of a new sandbox, ``enter`` the process id of an existing one. Without a
    ``directory`` nothing is left on disk.
    """

    argv: Sequence[str]
    env: Mapping[str, str]
    cwd: str
    directory: Path | None = None
    log: Path | None = None
    room: Sequence[str] | None = None
    enter: int | None = None

    def request(self, number: int) -> bytes:
        """As the fork server reads it."""
        record = {
            "id": number,
            "boot": boot_id(),
            "argv": list(self.argv),
            "env": dict(self.env),
            "cwd": self.cwd,
            "dir": str(self.directory) if self.directory else None,
            "log": str(self.log) if self.log else None,
            "room": list(self.room) if self.room else None,
            "enter": self.enter,
        }
        body = json.dumps(record).encode()
        return len(body).to_bytes(4, "big") + body


@dataclass(frozen=True)
class Report:
    """What a shim said: ``started``, ``ended`` (with the record of exit.json) or ``abandoned``."""

    event: str
    record: Mapping[str, Any]

    def process(self) -> Process | None:
        """The shim of a ``started`` report; None when it has ended already."""
        return find_process(self.record["shim"], self.record["shim_start"], boot_id())


class Launcher:
    """Starts programs through a fork server of its own, which is started when needed and ends with this process."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._loop: asyncio.AbstractEventLoop | None = None
        self._server: subprocess.Popen[bytes] | None = None
        self._commands: socket.socket | None = None
        self._reports: socket.socket | None = None
        self._numbers = itertools.count(1)
        self._waiting: dict[int, asyncio.Queue[Report | None]] = {}
        self._sending = asyncio.Lock()

    def start(self) -> None:
        """Start the fork server; it is ready some 20 ms later, and requests may be sent at once."""
        self._loop = asyncio.get_running_loop()
        self._commands, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        self._reports, reporting = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs, reporting:
            self._server = subprocess.Popen(  # noqa: S603 - our own program
                launcher_command(theirs.fileno(), reporting.fileno()),
                stdin=subprocess.DEVNULL,
                pass_fds=(theirs.fileno(), reporting.fileno()),
                start_new_session=True,
                cwd="/",
            )
        self._commands.setblocking(False)
        self._reports.setblocking(False)
        self._loop.add_reader(self._commands, self._on_server_gone)
        self._loop.add_reader(self._reports, self._on_report)

    def close(self) -> None:
        """End the fork server. Containers go on."""
        commands, reports, server = self._commands, self._reports, self._server
        self._commands = self._reports = self._server = None
        if self._loop is None or commands is None or reports is None or server is None:
            return
        self._loop.remove_reader(commands)
        self._loop.remove_reader(reports)
        commands.close()
        reports.close()
        try:
            server.wait(timeout=2)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()
        for queue in self._waiting.values():
            queue.put_nowait(None)

    async def launch(self, launch: Launch) -> Report:
        """Start a container's program; returns when it runs, or has failed to. Raises LauncherGone."""
        number, queue = await self._send(launch)
        try:
            return await self._next(queue)
        finally:
            del self._waiting[number]

    async def execute(self, launch: Launch, timeout: float) -> int | None:
        """Run a command to its end; its exit code (128+n for signal n), or None when it was killed after ``timeout`` s."""
        number, queue = await self._send(launch)
        timer = None
        try:
            report = await self._next(queue)
            if report.event != "started":
                return int(report.record["code"])
            process = report.process()
            expired = False

            def expire() -> None:
                nonlocal expired
                expired = True
                if process is not None:
                    process.signal(signal.SIGUSR1)

            if process is not None:
                process.on_end(asyncio.get_running_loop(), lambda: None)
            timer = self._clock.call_later(timeout, expire)
            report = await self._next(queue)
            return None if expired else int(report.record["code"])
        finally:
            if timer is not None:
                timer.cancel()
            del self._waiting[number]

    async def _send(self, launch: Launch) -> tuple[int, asyncio.Queue[Report | None]]:
        if self._commands is None:
            self.start()
        number = next(self._numbers)
        queue: asyncio.Queue[Report | None] = asyncio.Queue()
        self._waiting[number] = queue
        try:
            async with self._sending:  # a long request may take several writes
                assert self._commands is not None
                await asyncio.get_running_loop().sock_sendall(self._commands, launch.request(number))
        except OSError as error:
            del self._waiting[number]
            self._on_server_gone()  # the next request starts another one
            raise LauncherGone(f"the process that starts containers is gone: {error}") from error
        except BaseException:
            self._waiting.pop(number, None)
            raise
        return number, queue

    @staticmethod
    async def _next(queue: asyncio.Queue[Report | None]) -> Report:
        report = await queue.get()
        if report is None:
            raise LauncherGone("the process that starts containers ended unexpectedly; it is started anew when needed")
        return report

    def _on_report(self) -> None:
        while self._reports is not None:
            try:
                data = self._reports.recv(65536)
            except BlockingIOError:
                return
            if not data:
                return
            record = json.loads(data)
            queue = self._waiting.get(record.pop("id"))
            if queue is not None:
                queue.put_nowait(Report(record.pop("event"), record))

    def _on_server_gone(self) -> None:
        self._on_report()
        self.close()


def output_of(path: Path) -> str:
    """The first kilobytes that a command wrote to its log."""
    with contextlib.suppress(OSError), path.open("rb") as stream:
        return stream.read(_OUTPUT_LIMIT).decode("utf-8", "replace").strip()
    return ""
