"""From a ``%%vcjob`` cell to the manifest that is submitted: the same one on a laptop and on Kubernetes."""

from __future__ import annotations

import argparse
import re
import sys
from typing import Any

from IPython.core.error import UsageError

from vcnb.errors import VcnbError
from vcnb.notebook.arguments import key_values

__all__ = ["IMAGES", "language_of", "manifest_of"]

IMAGES = {"python": f"python:{sys.version_info.major}.{sys.version_info.minor}", "bash": "bash:5"}
"""The container image of a script cell when none is named; embedded pods use this machine's own programs."""

SCRIPT_LIMIT = 120_000
"""Bytes: Linux takes 128 KiB in one argument of a command, and an API server 1.5 MiB in one object."""

_YAML_KIND = re.compile(r"^kind:[ \t]*\S", re.MULTILINE)
_YAML_VERSION = re.compile(r"^apiVersion:[ \t]*\S", re.MULTILINE)
_EXPANDED = re.compile(r"\$(?=[$(])")
_SHEBANG = re.compile(r"#!.*\b(bash|sh)\b")


def language_of(body: str, asked: str | None) -> str:
    """``python``, ``bash`` or ``yaml``: what was asked for, else what the text is."""
    if asked:
        return asked
    if _YAML_KIND.search(body) and (_YAML_VERSION.search(body) or body.lstrip().startswith(("kind:", "---"))):
        return "yaml"
    return "bash" if _SHEBANG.match(body.lstrip()) else "python"


def manifest_of(options: argparse.Namespace, body: str, language: str) -> dict[str, Any]:
    """The Job that a script cell describes: one task whose every replica runs the script."""
    size = len(body.encode())
    if size > SCRIPT_LIMIT:
        raise VcnbError(
            f"the cell's script has {size:,} bytes, {SCRIPT_LIMIT:,} fit into a command; put it into a file or a package "
            "that the pods can import"
        )
    if language == "python":
        _check_python(body)
    command = ["python" if language == "python" else "bash", "-c", _verbatim(body)]
    container: dict[str, Any] = {
        "name": options.task,
        "image": options.image or IMAGES[language],
        "command": command,
        "env": [{"name": key, "value": value} for key, value in key_values(options.env, "--env").items()],
    }
    resources = {key: value for key, value in (("cpu", options.cpu), ("memory", options.memory)) if value is not None}
    if resources:
        container["resources"] = {"requests": resources, "limits": dict(resources)}
    if not container["env"]:
        del container["env"]
    task: dict[str, Any] = {
        "name": options.task,
        "replicas": options.replicas,
        "template": {"spec": {"restartPolicy": "Never", "containers": [container]}},
    }
    spec: dict[str, Any] = {"plugins": _plugins(options.plugin), "tasks": [task]}
    optional = {
        "minAvailable": options.min_available,
        "queue": options.queue,
        "maxRetry": options.max_retry,
        "ttlSecondsAfterFinished": options.ttl,
    }
    spec.update({field: value for field, value in optional.items() if value is not None})
    if options.min_available is not None:
        task["minAvailable"] = min(options.min_available, options.replicas)
    if options.policy:
        spec["policies"] = [_policy(text) for text in options.policy]
    name = {"name": options.name} if options.name else {"generateName": "cell-"}
    return {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": name, "spec": spec}


def _verbatim(body: str) -> str:
    """The script so that a kubelet's expansion of ``$(NAME)`` and ``$$`` in commands gives back the very same text."""
    return _EXPANDED.sub("$$", body)


def _check_python(body: str) -> None:
    """A script that cannot even be compiled is refused here, with its line in the cell (the magic is line 1)."""
    try:
        compile(body, "<cell>", "exec")
    except SyntaxError as error:
        line = (error.lineno or 1) + 1
        text = (error.text or "").rstrip()
        raise VcnbError(f"line {line} of the cell is no Python: {error.msg}\n    {text.strip()}") from None


def _plugins(asked: list[str]) -> dict[str, list[str]]:
    """``--plugin svc`` or ``--plugin svc=--publish-not-ready-addresses``; ``env`` is always on, it numbers the pods."""
    plugins: dict[str, list[str]] = {"env": []}
    for text in asked:
        name, _, argument = text.partition("=")
        plugins.setdefault(name, []).extend([argument] if argument else [])
    return plugins


def _policy(text: str) -> dict[str, Any]:
    """``PodFailed=RestartJob``, with a delay ``PodEvicted=RestartJob:30s``, or for an exit code ``137=AbortJob``."""
    event, equals, rest = text.partition("=")
    action, _, timeout = rest.partition(":")
    if not equals or not event or not action:
        raise UsageError(
            f"--policy {text!r}: write --policy EVENT=ACTION, e.g. PodFailed=RestartJob or 137=AbortJob:30s"
        )
    policy: dict[str, Any] = {"action": action}
    if event.lstrip("-").isdigit():
        policy["exitCode"] = int(event)
    elif "," in event:
        policy["events"] = event.split(",")
    else:
        policy["event"] = event
    return {**policy, "timeout": timeout} if timeout else policy
