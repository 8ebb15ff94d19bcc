"""Runs /usr/bin/etcd on a free port of the loopback, in a directory of its own."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import socket
import subprocess
import time
import urllib.request
from pathlib import Path
from typing import Self


class EtcdServer:
    PROGRAM = "/usr/bin/etcd"

    def __init__(self, directory: Path, *options: str) -> None:
        self.directory = directory
        self._options = options
        self._ports = [_free_port(), _free_port()]
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self._ports[0]}"

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        peer = f"http://127.0.0.1:{self._ports[1]}"
        with (self.directory / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [
                    self.PROGRAM,
                    f"--data-dir={self.directory / 'data'}",
                    f"--listen-client-urls={self.endpoint}",
                    f"--advertise-client-urls={self.endpoint}",
                    f"--listen-peer-urls={peer}",
                    f"--initial-advertise-peer-urls={peer}",
                    f"--initial-cluster=default={peer}",
                    "--unsafe-no-fsync",
                    *self._options,
                ],
                stdout=log,
                stderr=log,
                env={**os.environ, "ETCD_UNSUPPORTED_ARCH": "arm64"},
            )
        end = time.monotonic() + 20
        while not self._healthy():
            assert self._process.poll() is None, (self.directory / "log").read_text()[-2000:]
            assert time.monotonic() < end, "etcd does not start"
            time.sleep(0.05)

    def pause(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    def stop(self) -> None:
        if self._process is not None:
            self._process.send_signal(signal.SIGCONT)
            self._process.kill()
            self._process.wait()
            self._process = None

    def _healthy(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.endpoint}/health", timeout=1) as answer:
                return b"true" in answer.read()
        except OSError:
            return False


def _free_port() -> int:
    """Below the range from which connections take theirs: while etcd is down, a client that tries to connect to a port in
    that range may be given just that port, and then etcd cannot come back to it.
    """
    for _ in range(100):
        port = random.randrange(15_000, 32_000)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
    raise AssertionError("no free port between 15000 and 32000")
