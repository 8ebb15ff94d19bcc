"""Startup, readiness and liveness probes: exec, httpGet and tcpSocket, timed by the cluster's clock.

Defaults are those of Kubernetes: every 10 s, 1 s for an answer, one success, three failures.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from vcnb.clock import Clock

__all__ = ["Execute", "ProbeTarget", "check", "watch_probe"]

Execute: TypeAlias = Callable[[Sequence[str], float], Awaitable[tuple[int | None, str]]]
"""Run a command in the container for at most some seconds: exit code (None: out of time) and output."""


@dataclass(frozen=True)
class ProbeTarget:
    """The container that is probed."""

    address: str
    ports: Mapping[str, int]
    """Container ports by name."""
    execute: Execute


def _port(value: Any, target: ProbeTarget) -> int:
    return target.ports.get(value, 0) if isinstance(value, str) and not value.isdigit() else int(value)


async def check(probe: Mapping[str, Any], target: ProbeTarget, clock: Clock) -> str:
    """Ask once; "" when all is well, else what is wrong."""
    limit = float(probe.get("timeoutSeconds") or 1)
    if probe.get("exec"):
        code, output = await target.execute(probe["exec"].get("command") or (), limit)
        if code == 0:
            return ""
        return f"command timed out after {limit:g}s" if code is None else output or f"command exited with {code}"
    if probe.get("httpGet"):
        asked = _http_get(probe["httpGet"], target)
    elif probe.get("tcpSocket"):
        source = probe["tcpSocket"]
        asked = _connect(source.get("host") or target.address, _port(source["port"], target))
    else:
        return ""
    task = asyncio.ensure_future(asked)

    def expire() -> None:
        task.cancel()

    timer = clock.call_later(limit, expire)
    try:
        return await task
    except asyncio.CancelledError:
        if asyncio.current_task().cancelling():  # type: ignore[union-attr]
            task.cancel()
            raise
        return f"no answer within {limit:g}s"
    finally:
        timer.cancel()


async def _connect(host: str, port: int) -> str:
    try:
        _, writer = await asyncio.open_connection(host, port)
    except OSError as error:
        return f"dial tcp {host}:{port}: {error.strerror or error}"
    writer.close()
    with contextlib.suppress(OSError):
        await writer.wait_closed()
    return ""


async def _http_get(source: Mapping[str, Any], target: ProbeTarget) -> str:
    host, port = source.get("host") or target.address, _port(source["port"], target)
    path = "/" + str(source.get("path") or "/").lstrip("/")
    secure = None
    if str(source.get("scheme") or "HTTP").upper() == "HTTPS":
        secure = ssl._create_unverified_context()  # noqa: S323, SLF001 - as Kubernetes: probes do not check certificates
    headers = {"Host": f"{host}:{port}", "User-Agent": "kube-probe/vcnb", "Accept": "*/*", "Connection": "close"}
    headers |= {entry["name"]: str(entry.get("value", "")) for entry in source.get("httpHeaders") or ()}
    request = f"GET {path} HTTP/1.1\r\n" + "".join(f"{name}: {value}\r\n" for name, value in headers.items()) + "\r\n"
    try:
        reader, writer = await asyncio.open_connection(host, port, ssl=secure)
    except OSError as error:
        return f"Get {path} from {host}:{port}: {error.strerror or error}"
    try:
        writer.write(request.encode())
        await writer.drain()
        words = (await reader.readline()).split()
    except (OSError, ValueError) as error:
        return f"Get {path} from {host}:{port}: {error}"
    finally:
        writer.close()
    if len(words) < 2 or not words[1].isdigit():
        return f"Get {path} from {host}:{port}: no HTTP answer"
    code = int(words[1])
    return "" if 200 <= code < 400 else f"HTTP probe failed with statuscode: {code}"


async def watch_probe(
    probe: Mapping[str, Any],
    target: ProbeTarget,
    clock: Clock,
    changed: Callable[[bool, str], bool],
) -> None:
    """Ask again and again. ``changed(ok, message)`` is called when a threshold is reached; it returns whether to go on.

    The first answer that reaches a threshold is told as well.
    """
    period = float(probe.get("periodSeconds") or 10)
    needed = {True: int(probe.get("successThreshold") or 1), False: int(probe.get("failureThreshold") or 3)}
    known: bool | None = None
    streak, last = 0, None
    await clock.sleep(float(probe.get("initialDelaySeconds") or 0))
    while True:
        message = await check(probe, target, clock)
        ok = not message
        streak = streak + 1 if ok == last else 1
        last = ok
        if streak >= needed[ok] and ok != known:
            known = ok
            if not changed(ok, message):
                return
        await clock.sleep(period)
