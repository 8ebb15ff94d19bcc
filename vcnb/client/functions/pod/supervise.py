"""The main program of a pod that runs a call or a notebook.

The work itself is done in a child process. So a call that ends its process (``os._exit``, a crash in C code, the kernel's
out-of-memory killer), that hangs, or that leaves nothing behind, still has an end that is told; and a retry begins in a
clean process. What is told goes into the log as *frames*, lines of at most 4096 bytes (a longer line may be torn by
other writers of the same pipe, or cut by the container runtime):

    @vcnb <nonce> <number> <part>/<parts> <sha256, 16 digits> <base64 of zlib of pickle>
"""

from __future__ import annotations

import base64
import hashlib
import os
import pickle
import signal
import sys
import tempfile
import time
import types
import zlib

if False:  # only for type checkers; an old Python need not know these
    from typing import Any, Callable, Dict

LINE = 3800
CRASHED = 70


class Frames:
    """Writes messages into the log, each as one or more frames."""

    def __init__(self, nonce: str, limit: int) -> None:
        self.nonce = nonce
        self.limit = limit
        self.number = 0

    def size(self, message: Dict[str, Any]) -> int:
        """The size in bytes of a message in the log, before base64."""
        return len(_packed(message))

    def send(self, message: Dict[str, Any]) -> None:
        """Write a message. Raises ValueError with both sizes when it is larger than the limit."""
        body = _packed(message)
        if len(body) > self.limit:
            raise ValueError("%d %d" % (len(body), self.limit))
        text = base64.b64encode(body)
        digest = hashlib.sha256(text).hexdigest()[:16]
        parts = max(1, -(-len(text) // LINE))
        self.number += 1
        for part in range(parts):
            head = "@vcnb %s %d %d/%d %s " % (self.nonce, self.number, part + 1, parts, digest)
            _write(head.encode() + text[part * LINE : (part + 1) * LINE] + b"\n")


def _packed(message: Dict[str, Any]) -> bytes:
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
            try:
                os.killpg(self.pid, number)
            except OSError:
                pass

    def run(self, call: Dict[str, Any], work: Callable[[], Dict[str, Any]], attempt: int) -> Dict[str, Any]:
        """Run ``work`` in a child process; its outcome, or what became of the process instead."""
        begun = time.time()
        with tempfile.TemporaryFile() as box:
            sys.stdout.flush()
            sys.stderr.flush()
            self.pid = os.fork()
            if self.pid == 0:
                _be_child(box.fileno(), work)
            try:
                os.setpgid(self.pid, self.pid)
            except OSError:
                pass
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


def _be_child(box: int, work: Callable[[], Dict[str, Any]]) -> None:
    """In the child: do the work, leave the outcome, and end as a Python program does (threads, atexit)."""
    os.setpgid(0, 0)
    for number in (signal.SIGTERM, signal.SIGALRM):
        signal.signal(number, signal.SIG_DFL)
    outcome = work()
    body = pickle.dumps(outcome, 4)
    with os.fdopen(os.dup(box), "wb") as file:
        file.write(body)
    sys.exit(0)


def _left(box: int) -> Any:
    os.lseek(box, 0, os.SEEK_SET)
    with os.fdopen(os.dup(box), "rb") as file:
        try:
            return pickle.load(file)
        except Exception:
            return None


def _ended_without(status: int, timeout: float) -> Dict[str, Any]:
    if timeout:
        return _failure("timeout", "TimeoutError", "it ran longer than %g s" % timeout)
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        name = signal.Signals(number).name
        hint = ", perhaps because memory ran out" if number == signal.SIGKILL else ""
        return _failure("crashed", name, "its process was killed by %s%s" % (name, hint))
    code = os.WEXITSTATUS(status)
    return _failure("crashed", "exit %d" % code, "its process ended with exit code %d before it returned" % code)


def _failure(reason: str, kind: str, message: str) -> Dict[str, Any]:
    return {"state": "failed", "reason": reason, "kind": kind, "message": message, "traceback": "", "error": None}


def program_of(call: Dict[str, Any]) -> Callable[..., Dict[str, Any]]:
    """The function ``run`` of the program that the payload carries."""
    module = types.ModuleType("vcnb_program")
    sys.modules["vcnb_program"] = module
    exec(compile(call["program"], "vcnb_program", "exec"), module.__dict__)
    run: Callable[..., Dict[str, Any]] = module.__dict__["run"]
    return run


def main(call: Dict[str, Any]) -> int:
    """Run the call as often as it may be tried; the exit code of the pod."""
    frames = Frames(call["nonce"], call["limit"])
    index = int(os.environ.get("VC_TASK_INDEX", "0") or "0")
    run = program_of(call)
    child = Child()
    signal.signal(signal.SIGTERM, child.stop)
    signal.signal(signal.SIGALRM, child.time_is_up)
    outcome: Dict[str, Any] = {}
    for attempt in range(1, call["retries"] + 2):
        child.timed_out = False
        outcome = child.run(call, lambda: run(call, index, frames), attempt)
        if child.stopped:
            return 128 + signal.SIGTERM
        if outcome["state"] == "done" or outcome.get("final") or attempt > call["retries"]:
            break
        _say("attempt %d of %d failed, trying again: %s" % (attempt, call["retries"] + 1, _in_words(outcome)))
    frames.number += 1_000_000  # the child has counted its own messages
    _tell(outcome, frames)
    return 0 if outcome["state"] == "done" else 1


def _tell(outcome: Dict[str, Any], frames: Frames) -> None:
    try:
        frames.send(outcome)
    except ValueError as error:
        size, limit = str(error).split()
        message = (
            "what it returned has %s bytes after compression, the limit is %s; write it to a volume or an object store "
            "and return its path" % (format(int(size), ","), format(int(limit), ","))
        )
        outcome.update(_failure("too large", "ResultTooLarge", message))
        outcome.pop("value", None)
        frames.send(outcome)
    if outcome["state"] != "done":
        _leave_word(_in_words(outcome))


def _in_words(outcome: Dict[str, Any]) -> str:
    return ("%s: %s" % (outcome["kind"], outcome["message"]))[:2000]


def _leave_word(text: str) -> None:
    """The pod's last word, for people: its termination message, or the last line of its log."""
    try:
        with open(os.environ.get("VCNB_TERMINATION_LOG", "/dev/termination-log"), "w", encoding="utf-8") as file:
            file.write(text)
    except OSError:
        _say(text)


def _say(text: str) -> None:
    sys.stderr.write(text + "\n")
    sys.stderr.flush()
