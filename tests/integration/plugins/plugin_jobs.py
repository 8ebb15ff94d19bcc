"""Tasks of real programs, and waiting for what they do."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import vcnb

PATIENCE = 30.0
"""Seconds that a job of real processes may take on a busy machine."""

MASTER_COMPLETES = [vcnb.Policy(event="TaskCompleted", action="CompleteJob")]
"""Policies of a master: when it has ended the job is complete, and its servers are stopped."""


def sh(name: str, script: str, replicas: int = 1, **more: Any) -> vcnb.Task:
    """A task whose pods run a shell script."""
    return vcnb.Task(name, replicas=replicas, image="debian", command=["bash", "-c", script], **more)


def python(name: str, script: str, replicas: int = 1, **more: Any) -> vcnb.Task:
    """A task whose pods run a Python program."""
    return vcnb.Task(name, replicas=replicas, image="python:3.11", command=["python", "-c", script], **more)


def until(condition: Callable[[], Any], what: str) -> Any:
    """The first true value of the condition, looked at 50 times a second."""
    end = time.monotonic() + PATIENCE
    while not (value := condition()):
        assert time.monotonic() < end, f"waited {PATIENCE:g} s for {what}"
        time.sleep(0.02)
    return value
