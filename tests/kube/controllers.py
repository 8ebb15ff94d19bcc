"""``vcnb controller`` as processes, against a server of the tests."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import Self

__all__ = ["TOKEN", "ControllerRun"]

TOKEN = "numbers-for-tests"
PATIENCE = 150.0
PAUSE = 0.02


class ControllerRun:
    """One process; a context manager that leaves none behind. What it says is in ``log``."""

    def __init__(self, kubeconfig: Path, log: Path, *arguments: str) -> None:
        self._command = [
            *(sys.executable, "-c", "from vcnb.cli.main import main; main()"),
            *("controller", f"--kubeconfig={kubeconfig}", "--bind=127.0.0.1:0", "--lease-namespace=default", "-v"),
            *arguments,
        ]
        self.log = log
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *exc: object) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
            self._process.wait()

    def start(self) -> None:
        """Start it (again)."""
        environment = {**os.environ, "VCNB_METRICS_TOKEN": TOKEN}
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(self._command, stderr=log, stdin=subprocess.DEVNULL, env=environment)

    @property
    def text(self) -> str:
        """What it has said so far."""
        return self.log.read_text(errors="replace")

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def kill(self) -> None:
        """As when its machine fails."""
        assert self._process is not None
        self._process.kill()
        self._process.wait(PATIENCE)

    def send(self, number: signal.Signals) -> None:
        assert self._process is not None
        self._process.send_signal(number)

    def wait(self) -> int:
        """Wait for its end; the exit code."""
        assert self._process is not None
        return self._process.wait(PATIENCE)

    def stop(self) -> int:
        """SIGTERM; the exit code."""
        self.send(signal.SIGTERM)
        return self.wait()

    @property
    def url(self) -> str:
        """Where it answers; empty before it does."""
        found = re.search(r"(http://\S+)/healthz", self.text)
        return found[1] if found else ""

    def ask(self, path: str) -> str:
        """The text of an answer, whatever its status; empty when there is none."""
        if not self.url:
            return ""
        request = urllib.request.Request(self.url + path, headers={"Authorization": f"Bearer {TOKEN}"})
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with opener.open(request, timeout=10) as answer:
                return str(answer.read().decode())
        except urllib.error.HTTPError as error:
            with error:
                return str(error.read().decode())
        except OSError:
            return ""

    def wait_until(self, *words: str) -> str:
        """Wait until ``/readyz`` says one of these (``leading``, ``standing by``); what it says."""
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            said = self.ask("/readyz")
            if any(said == f"ok: {word}\n" for word in words):
                return said
            assert self.running, f"the controller ended:\n{self.text}"
            time.sleep(PAUSE)
        raise AssertionError(f"the controller is not {' or '.join(words)}:\n{self.text}")


def leader_of(runs: Sequence[ControllerRun]) -> ControllerRun:
    """The one that leads."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        for run in runs:
            if run.running and run.ask("/readyz") == "ok: leading\n":
                return run
        time.sleep(PAUSE)
    raise AssertionError("nobody leads:\n" + "\n".join(run.text for run in runs))
