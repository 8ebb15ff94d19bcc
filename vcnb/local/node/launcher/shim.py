"""The shim: parent of one container, from its start to the record of its end."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import signal
import socket
import time
from typing import Any, NoReturn

from .room import EXIT_CANNOT_START, CannotStart, Room, enter_namespaces
from .system import LIBC, OomCounter, kill_descendants, start_time

__all__ = ["run_shim"]

PR_SET_PDEATHSIG = 1
PR_SET_NAME = 15
PR_SET_CHILD_SUBREAPER = 36

EXIT_CODES = {errno.ENOENT: 127, errno.ENOTDIR: 127, errno.EACCES: 126, errno.ENOEXEC: 126, errno.EISDIR: 126}
"""What a shell answers for a command that is not there, or that is there and is no program."""

SHIM_SIGNALS = {signal.SIGTERM, signal.SIGUSR1, signal.SIGCHLD}

OOM_SCORE = 500
"""Containers go before the notebook kernel when memory runs out (Kubernetes gives best-effort pods 1000)."""


def run_shim(request: dict[str, Any], reports: socket.socket) -> NoReturn:
    """The whole life of a shim."""
    try:
        Shim(request, reports).run()
    except BaseException as error:  # noqa: BLE001 - the parent's stack must not be unwound in this process
        with contextlib.suppress(OSError):
            os.write(2, f"vcnb shim: {error!r}\n".encode())
        os._exit(1)
    os._exit(0)


class Shim:
    """Parent of one container."""

    def __init__(self, request: dict[str, Any], reports: socket.socket) -> None:
        self.request = request
        self.reports = reports
        self.id = request["id"]
        self.pid = os.getpid()
        self.start_time = start_time(self.pid)
        self.directory: int | None = None
        self.main = 0
        self.room: Room | None = None
        self.wanted: set[int] = set()
        """Signals that were asked for."""

    def run(self) -> None:
        self.become_shim()
        try:
            log = self.open_files()
            kills = OomCounter()
            self.enter_room()
            started = self.start(log)
        except CannotStart as failure:
            self.end(failure.code, 0, error=failure.text, stage=failure.stage)
            return
        if not started:
            self.report({"event": "abandoned"})
            return
        code, number = self.wait()
        killed = signal.SIGUSR1 in self.wanted | signal.sigpending()
        self.end(code, number, oom=code == 128 + signal.SIGKILL and not killed and kills.grown())

    def become_shim(self) -> None:
        os.setsid()
        # The kernel's own output is not the shim's: who reads it from a pipe waits for its end as long as one holds it.
        nothing = os.open(os.devnull, os.O_WRONLY)
        for output in (1, 2):
            os.dup2(nothing, output)
        os.close(nothing)
        LIBC.prctl(PR_SET_NAME, b"vcnb-shim", 0, 0, 0)
        LIBC.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
            signal.signal(number, signal.SIG_IGN)
        # Signals are waited for, not handled: a handler of Python's may run too late, after the next blocking call.
        signal.pthread_sigmask(signal.SIG_BLOCK, SHIM_SIGNALS)

    def pass_on(self, number: int) -> None:
        """Hand a signal that was sent to the shim to the container."""
        self.wanted.add(number)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.main, signal.SIGTERM if number == signal.SIGTERM else signal.SIGKILL)
        if number == signal.SIGUSR1 and self.room is not None:
            self.room.kill()

    def open_files(self) -> int:
        """Open the attempt's directory and the log, by host paths, before the view of the file system may change."""
        if self.request.get("dir"):
            self.directory = os.open(self.request["dir"], os.O_RDONLY | os.O_DIRECTORY)
        path = self.request.get("log") or os.devnull
        try:
            return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        except OSError as error:
            raise CannotStart("log", EXIT_CANNOT_START, f"cannot open the log {path}: {error.strerror}") from error

    def enter_room(self) -> None:
        if self.request.get("room"):
            self.room = Room(self.request["room"])
            enter_namespaces(self.room.pid)
        elif self.request.get("enter"):
            enter_namespaces(self.request["enter"])

    def start(self, log: int) -> bool:
        """Fork the program, leave ``started.json``, let it run. False when the attempt was abandoned meanwhile."""
        go_read, go_write = os.pipe()
        error_read, error_write = os.pipe()
        main = os.fork()
        if main == 0:
            os.close(go_write)
            os.close(error_read)
            run_program(self.request, log, go_read, error_write)
        os.close(go_read)
        os.close(error_write)
        os.close(log)
        if self.directory is not None and not self.claim(main):
            os.close(go_write)
            os.waitpid(main, 0)
            return False
        self.main = main
        with contextlib.suppress(BrokenPipeError):
            os.write(go_write, b"g")
        os.close(go_write)
        failure = os.read(error_read, 4096)
        if failure:
            os.waitpid(main, 0)
            self.main = 0
            stage, cause, text = failure.decode("utf-8", "replace").split("\0", 2)
            raise CannotStart(stage, EXIT_CODES.get(int(cause), EXIT_CANNOT_START), text)
        self.report({"event": "started", "shim": self.pid, "shim_start": self.start_time})
        return True

    def claim(self, main: int) -> bool:
        record = {
            "boot": self.request["boot"],
            "shim": self.pid,
            "shim_start": self.start_time,
            "main": main,
            "main_start": 0 if self.room else start_time(main),
            "room": self.room.pid if self.room else 0,
            "room_start": self.room.start_time if self.room else 0,
            "started": time.time(),
        }
        temporary = f".started.{self.pid}"
        self.write(temporary, record)
        try:
            os.link(temporary, "started.json", src_dir_fd=self.directory, dst_dir_fd=self.directory)
        except FileExistsError:
            return False
        finally:
            os.unlink(temporary, dir_fd=self.directory)
        return True

    def write(self, name: str, record: dict[str, Any]) -> None:
        file = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600, dir_fd=self.directory)
        with os.fdopen(file, "w") as stream:
            json.dump(record, stream)

    def wait(self) -> tuple[int, int]:
        """Exit code and signal of the program, once it and all it has left behind are gone."""
        while (ended := os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT | os.WNOHANG)) is None or (
            ended.si_pid != self.main
        ):
            if ended is not None:
                os.waitpid(ended.si_pid, 0)
            elif (number := signal.sigwait(SHIM_SIGNALS)) != signal.SIGCHLD:
                self.pass_on(number)
        # The zombie still holds its process id, so this cannot reach a stranger's group.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.main, signal.SIGKILL)
        _, status = os.waitpid(self.main, 0)
        self.main = 0
        if self.room is not None:
            self.room.close()
        elif not self.request.get("enter"):
            kill_descendants()
        if os.WIFSIGNALED(status):
            return 128 + os.WTERMSIG(status), os.WTERMSIG(status)
        return os.WEXITSTATUS(status), 0

    def end(self, code: int, number: int, **more: Any) -> None:
        if self.room is not None:
            self.room.close()
        record = {"code": code, "signal": number, "finished": time.time(), **more}
        if self.directory is not None:
            self.write(".exit", record)
            os.rename(".exit", "exit.json", src_dir_fd=self.directory, dst_dir_fd=self.directory)
        self.report({"event": "ended", **record})

    def report(self, record: dict[str, Any]) -> None:
        with contextlib.suppress(OSError):  # the agent may be gone; the files tell its successor
            self.reports.send(json.dumps({"id": self.id, **record}).encode())


def run_program(request: dict[str, Any], log: int, go: int, errors: int) -> NoReturn:
    """In the forked child: wait for the word, then become the container's program."""
    stage = "exec"
    argv = request["argv"]
    try:
        for number in set(signal.Signals) - {signal.SIGKILL, signal.SIGSTOP}:
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        os.setsid()
        LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.read(go, 1) != b"g":  # the shim is gone, or the attempt is not ours
            os._exit(1)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0, inheritable=True)
        os.dup2(log, 1, inheritable=True)
        os.dup2(log, 2, inheritable=True)
        os.umask(0o022)
        with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as score:  # noqa: PTH123
            score.write(str(OOM_SCORE))
        stage = "chdir"
        os.chdir(request["cwd"])
        stage = "exec"
        program = find_program(argv[0], request["env"].get("PATH", os.defpath))
        os.execve(program, argv, request["env"])  # noqa: S606 - running programs is what a container is
    except OSError as error:
        os.write(errors, "\0".join((stage, str(error.errno), start_error(stage, request, error))).encode()[:4096])
    except ValueError as error:  # a NUL byte in an argument or variable
        os.write(errors, f"{stage}\0{errno.EINVAL}\0cannot start {argv[0]!r}: {error}".encode()[:4096])
    finally:
        os._exit(127)


def find_program(name: str, path: str) -> str:
    """The first program of that name on the path; a file that is not executable only if there is no other."""
    if "/" in name:
        return name
    found = [os.path.join(folder or ".", name) for folder in path.split(":")]  # noqa: PTH118
    found = [file for file in found if os.path.isfile(file)]  # noqa: PTH113
    if not found:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
    return next((file for file in found if os.access(file, os.X_OK)), found[0])


def start_error(stage: str, request: dict[str, Any], error: OSError) -> str:
    """What went wrong, for a person."""
    program = request["argv"][0]
    if stage == "chdir":
        return f"the working directory {request['cwd']!r} cannot be entered: {error.strerror}"
    if error.errno == errno.ENOENT and "/" not in program:
        return f"exec: {program!r}: executable file not found in $PATH"
    if error.errno == errno.ENOEXEC:
        return f"exec: {program!r}: exec format error; is a first line such as #!/bin/sh missing?"
    return f"exec: {program!r}: {(error.strerror or str(error)).lower()}"
