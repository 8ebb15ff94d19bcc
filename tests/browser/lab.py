"""A real JupyterLab and a real browser for tests: notebooks are files, cells are run as a person runs them.

Everything lives in temporary directories: configuration, data, workspaces, clusters. The server listens on the loopback only
and asks for a token.
"""

from __future__ import annotations

import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Locator, Page, expect

CHROMIUM = "/usr/bin/chromium"
ARGUMENTS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
START_SECONDS = 60.0
SCREENSHOTS = Path(__file__).parents[2] / "out" / "screenshots"
READY = """() => {
    const kernel = window.jupyterapp?.shell.currentWidget?.sessionContext?.session?.kernel;
    return kernel?.connectionStatus === "connected" && kernel.status === "idle";
}"""
THEMES = {"light": "JupyterLab Light", "dark": "JupyterLab Dark"}


def cell(source: str, outputs: Sequence[Mapping[str, Any]] = ()) -> dict[str, Any]:
    """A code cell of a notebook file."""
    return {
        "cell_type": "code",
        "id": secrets.token_hex(4),
        "metadata": {},
        "execution_count": None,
        "source": source,
        "outputs": list(outputs),
    }


class Lab:
    """One server, for all tests."""

    def __init__(self, root: Path) -> None:
        self.files = root / "files"
        self.files.mkdir(parents=True)
        self.settings = root / "settings"
        self.theme("light")
        self._token = secrets.token_hex(16)
        self._port = _free_port()
        self._log = (root / "server.log").open("wb")
        directories = {
            name: str(root / name.lower())
            for name in ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "IPYTHONDIR")
        }
        self.process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "jupyterlab",
                "--no-browser",
                "--ip=127.0.0.1",
                f"--port={self._port}",
                f"--IdentityProvider.token={self._token}",
                f"--ServerApp.root_dir={self.files}",
                f"--LabApp.workspaces_dir={root / 'workspaces'}",
                f"--LabApp.user_settings_dir={self.settings}",
                "--ServerApp.allow_root=True",
                "--LabApp.expose_app_in_browser=True",
                "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
            ],
            env={
                **os.environ,
                **directories,
                "VCNB_HOME": str(root / "vcnb"),
                "VCNB_CLUSTER": "memory://",
                "PYTHONPATH": str(Path(__file__).parents[2]),
            },
            stdout=self._log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        self._until_ready()

    def _until_ready(self) -> None:
        deadline = time.monotonic() + START_SECONDS
        while True:
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{self._port}/api?token={self._token}", timeout=2):
                    return
            except OSError:
                assert self.process.poll() is None, "JupyterLab has ended; see server.log"
                assert time.monotonic() < deadline, "JupyterLab does not answer"
                time.sleep(0.1)

    def write(self, name: str, *cells: Mapping[str, Any]) -> str:
        """A notebook file with these cells."""
        content = {
            "cells": list(cells),
            "metadata": {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}},
            "nbformat": 4,
            "nbformat_minor": 5,
        }
        (self.files / name).write_text(json.dumps(content))
        return name

    def read(self, name: str) -> dict[str, Any]:
        """A notebook file as it was saved."""
        found: dict[str, Any] = json.loads((self.files / name).read_text())
        return found

    def theme(self, name: str) -> None:
        """The theme of pages that are opened from now on."""
        folder = self.settings / "@jupyterlab" / "apputils-extension"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "themes.jupyterlab-settings").write_text(json.dumps({"theme": THEMES[name]}))
        (folder / "notification.jupyterlab-settings").write_text(json.dumps({"fetchNews": "false"}))

    def open(self, browser: Browser, name: str) -> Notebook:
        """Open a notebook in a page of its own."""
        context = browser.new_context(viewport={"width": 1280, "height": 1150})
        page = context.new_page()
        workspace = secrets.token_hex(4)
        page.goto(f"http://127.0.0.1:{self._port}/lab/workspaces/{workspace}/tree/{name}?token={self._token}")
        return Notebook(page, self, name)

    def close(self) -> None:
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGINT)
            os.killpg(self.process.pid, signal.SIGTERM)
            try:
                self.process.wait(15)
            except subprocess.TimeoutExpired:
                os.killpg(self.process.pid, signal.SIGKILL)
                self.process.wait(15)
        self._log.close()


class Notebook:
    """One open notebook."""

    def __init__(self, page: Page, lab: Lab, name: str) -> None:
        self.page = page
        self._lab = lab
        self._name = name
        page.set_default_timeout(25_000)
        expect.set_options(timeout=25_000)
        self.cells = page.locator(".jp-Notebook .jp-CodeCell")
        expect(self.cells.first).to_be_visible(timeout=40_000)

    def start(self) -> None:
        """Wait until the kernel is connected and runs nothing, then run the first cell to its end."""
        self.page.wait_for_function(READY, timeout=40_000)
        self.run(0)
        expect(self.cells.first.locator(".jp-InputPrompt")).to_have_text("[1]:")

    def run(self, number: int) -> Locator:
        """Run a cell; returns it without waiting for its end."""
        target = self.cells.nth(number)
        target.locator(".cm-content").click()
        self.page.keyboard.press("Control+Enter")
        return target

    def view(self, number: int) -> Locator:
        """The live view that a cell shows."""
        return self.cells.nth(number).locator(".vcnb")

    def save(self) -> dict[str, Any]:
        """Save, and read the file."""
        before = self._lab.read(self._name)
        self.page.keyboard.press("Escape")
        self.page.keyboard.press("Control+s")
        deadline = time.monotonic() + 20
        while (saved := self._lab.read(self._name)) == before:
            assert time.monotonic() < deadline, "the notebook was not saved"
            self.page.wait_for_timeout(100)
        return saved

    def screenshot(self, name: str) -> None:
        """Keep a picture for a person to look at."""
        SCREENSHOTS.mkdir(parents=True, exist_ok=True)
        self.page.screenshot(path=SCREENSHOTS / f"{name}.png")

    def close(self) -> None:
        self.page.context.close()


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])
