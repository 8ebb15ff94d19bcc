"""The main program of a pod that runs a call or a notebook.

The work itself is done in a child process. So a call that ends its process (``os._exit``, a crash in C code, the kernel's
out-of-memory killer), that hangs, or that leaves nothing behind, still has an end that is told; and a retry begins in a
clean process. What is told goes into the log as *frames*, lines of at most 4096 bytes (a longer line may be torn by
other writers of the same pipe, or cut by the container runtime):

    @vcnb <nonce> <number> <part>/<parts> <sha256, 16 digits> <base64 of zlib of pickle>
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import os
import pickle
import signal
import sys
import tempfile
import time
import types
import zlib
from pathlib import Path

TYPE_CHECKING = False  # no import: it takes time in every pod
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

LINE = 3800


class TooLarge(ValueError):
    """A message is larger than the limit; both sizes in bytes, after compression."""

    def __init__(self, size: int, limit: int) -> None:
        super().__init__(size, limit)
        self.size = size
        self.limit = limit


class Frames:
    """Writes messages into the log, each as one or more frames."""

    def __init__(self, nonce: str, limit: int) -> None:
        self.nonce = nonce
        self.limit = limit
        self.number = 0

    def size(self, message: dict[str, Any]) -> int:
        """The size in bytes of a message in the log, before base64."""
        return len(_packed(message))

    def send(self, message: dict[str, Any]) -> None:
        """Write a message. Raises TooLarge."""
        body = _packed(message)
        if len(body) > self.limit:
            raise TooLarge(len(body), self.limit)
        text = base64.b64encode(body)
        digest = hashlib.sha256(text).hexdigest()[:16]
        parts = max(1, -(-len(text) // LINE))
        self.number += 1
        for part in range(parts):
            head = f"@vcnb {self.nonce} {self.number} {part + 1}/{parts} {digest} "
            _write(head.encode() + text[part * LINE : (part + 1) * LINE] + b"\n")


def _packed(message: dict[str, Any]) -> bytes:
    return zlib.compress(pickle.dumps(message, 4))


def _write(line: bytes) -> None:
    sys.stdout.flush()
    while line:
        line = line[os.write(1, line) :]


class Child:
    """One attempt: a process of its own that leaves its outcome in a file."""

    def __init__(self) -> None:
        self.pid = 0
        self.stopped = False
        self.timed_out = False

    def stop(self, *_: object) -> None:
        """SIGTERM: somebody ends the pod."""
        self.stopped = True
        self._signal(signal.SIGTERM)

    def time_is_up(self, *_: object) -> None:
        """SIGALRM: the attempt has used up its time."""
        self.timed_out = True
        self._signal(signal.SIGKILL)

    def _signal(self, number: int) -> None:
        if self.pid:
            with contextlib.suppress(OSError):
                os.killpg(self.pid, number)

    def run(self, call: dict[str, Any], work: Callable[[], dict[str, Any]], attempt: int) -> dict[str, Any]:
        """Run ``work`` in a child process; its outcome, or what became of the process instead."""
        begun = time.time()
        with tempfile.TemporaryFile() as box:
            sys.stdout.flush()
            sys.stderr.flush()
            self.pid = os.fork()
            if self.pid == 0:
                _be_child(box.fileno(), work)
            with contextlib.suppress(OSError):
                os.setpgid(self.pid, self.pid)
            if self.stopped:
                self._signal(signal.SIGTERM)
            if call["timeout"]:
                signal.setitimer(signal.ITIMER_REAL, call["timeout"])
            _, status = os.waitpid(self.pid, 0)
            signal.setitimer(signal.ITIMER_REAL, 0)
            self.pid = 0
            outcome = _left(box.fileno())
        if outcome is None:
            outcome = _ended_without(status, call["timeout"] if self.timed_out else 0)
        outcome.update(type="end", attempt=attempt, seconds=time.time() - begun)
        return outcome


def _be_child(box: int, work: Callable[[], dict[str, Any]]) -> None:
    """In the child: do the work, leave the outcome, and end as a Python program does (threads, atexit)."""
    os.setpgid(0, 0)
    for number in (signal.SIGTERM, signal.SIGALRM):
        signal.signal(number, signal.SIG_DFL)
    outcome = work()
    body = pickle.dumps(outcome, 4)
    with os.fdopen(os.dup(box), "wb") as file:
        file.write(body)
    sys.exit(0)


def _left(box: int) -> dict[str, Any] | None:
    os.lseek(box, 0, os.SEEK_SET)
    with os.fdopen(os.dup(box), "rb") as file:
        try:
            found: dict[str, Any] = pickle.load(file)  # noqa: S301 - our own child wrote it
        except Exception:  # noqa: BLE001 - an unfinished file is none
            return None
        return found


def _ended_without(status: int, timeout: float) -> dict[str, Any]:
    if timeout:
        return _failure("timeout", "TimeoutError", f"it ran longer than {timeout:g} s")
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        name = signal.Signals(number).name
        hint = ", perhaps because memory ran out" if number == signal.SIGKILL else ""
        return _failure("crashed", name, f"its process was killed by {name}{hint}")
    code = os.WEXITSTATUS(status)
    return _failure("crashed", f"exit {code}", f"its process ended with exit code {code} before it returned")


def _failure(reason: str, kind: str, message: str) -> dict[str, Any]:
    return {"state": "failed", "reason": reason, "kind": kind, "message": message, "traceback": "", "error": None}


def program_of(call: dict[str, Any]) -> Callable[..., dict[str, Any]]:
    """The function ``run`` of the program that the payload carries."""
    module = types.ModuleType("vcnb_program")
    sys.modules["vcnb_program"] = module
    exec(compile(call["program"], "vcnb_program", "exec"), module.__dict__)  # noqa: S102 - the pod is there to run it
    run: Callable[..., dict[str, Any]] = module.__dict__["run"]
    return run


def main(call: dict[str, Any]) -> int:
    """Run the call as often as it may be tried; the exit code of the pod."""
    frames = Frames(call["nonce"], call["limit"])
    index = int(os.environ.get("VC_TASK_INDEX", "0") or "0")
    run = program_of(call)
    child = Child()
    signal.signal(signal.SIGTERM, child.stop)
    signal.signal(signal.SIGALRM, child.time_is_up)
    outcome: dict[str, Any] = {}
    for attempt in range(1, call["retries"] + 2):
        child.timed_out = False
        outcome = child.run(call, lambda: run(call, index, frames), attempt)
        if child.stopped:
            return 128 + signal.SIGTERM
        if outcome["state"] == "done" or outcome.get("final") or attempt > call["retries"]:
            break
        _say(f"attempt {attempt} of {call['retries'] + 1} failed, trying again: {_in_words(outcome)}")
    frames.number += 1_000_000  # the child has counted its own messages
    _tell(outcome, frames)
    return 0 if outcome["state"] == "done" else 1


def _tell(outcome: dict[str, Any], frames: Frames) -> None:
    try:
        frames.send(outcome)
    except TooLarge as error:
        message = (
            f"what it returned has {error.size:,} bytes after compression, the limit is {error.limit:,}; write it to a "
            "volume or an object store and return its path"
        )
        outcome.update(_failure("too large", "ResultTooLarge", message))
        outcome.pop("value", None)
        frames.send(outcome)
    if outcome["state"] != "done":
        _leave_word(_in_words(outcome))


def _in_words(outcome: dict[str, Any]) -> str:
    return f"{outcome['kind']}: {outcome['message']}"[:2000]


def _leave_word(text: str) -> None:
    """The pod's last word, for people: its termination message, or the last line of its log."""
    try:
        Path(os.environ.get("VCNB_TERMINATION_LOG", "/dev/termination-log")).write_text(text, encoding="utf-8")
    except OSError:
        _say(text)


def _say(text: str) -> None:
    sys.stderr.write(text + "\n")
    sys.stderr.flush()
