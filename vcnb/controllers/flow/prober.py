"""Carrying out the checks of a probe: connections to pods, and nowhere else."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Final, NamedTuple, Protocol

from vcnb.controllers.flow.world import Check, Group, Round

__all__ = ["AsyncioProber", "ProbeFailed", "Prober", "RoundResult", "run_round"]

_PARALLEL: Final = 32
_LINE: Final = 8 * 1024


class ProbeFailed(Exception):
    """The check did not pass; the message says why."""


class Prober(Protocol):
    """Makes one check. Both raise ProbeFailed; ``timeout`` is in seconds."""

    async def http_get(self, check: Check, timeout: float) -> int:
        """GET ``http://<address>:<port><path>``; returns the status code. Redirects are not followed."""
        ...

    async def tcp_connect(self, check: Check, timeout: float) -> None:
        """Connect, and close."""
        ...


class RoundResult(NamedTuple):
    """Whether everything passed; if not, the first thing that did not."""

    passed: bool
    message: str = ""


async def run_round(prober: Prober, round_: Round) -> RoundResult:
    """Make all checks of a round side by side and count them."""
    limit = asyncio.Semaphore(_PARALLEL)

    async def make(check: Check) -> str:
        async with limit:
            return await _make(prober, check, round_.timeout)

    async def judge(group: Group) -> str:
        if len(group.checks) < group.needed:
            return f"{group.what}: {len(group.checks)} of {group.needed} pods run and have an address"
        answers = await asyncio.gather(*(make(check) for check in group.checks))
        failed = [answer for answer in answers if answer]
        passed = len(answers) - len(failed)
        if passed >= group.needed:
            return ""
        return f"{group.what}: {passed} of {group.needed} pods pass; {failed[0]}"

    wrong = [answer for answer in await asyncio.gather(*map(judge, round_.groups)) if answer]
    return RoundResult(not wrong, wrong[0] if wrong else "")


async def _make(prober: Prober, check: Check, timeout: float) -> str:
    """One check: empty when it passes, else why not."""
    try:
        if check.kind == "tcp":
            await prober.tcp_connect(check, timeout)
            return ""
        code = await prober.http_get(check, timeout)
    except ProbeFailed as error:
        return f"{check.pod}: {error}"
    # The kubelet's rule: redirects count as success.
    return "" if 200 <= code < 400 else f"{check.pod}: status {code}"


class AsyncioProber:
    """Checks over the network."""

    async def tcp_connect(self, check: Check, timeout: float) -> None:
        try:
            async with asyncio.timeout(timeout):
                _, writer = await asyncio.open_connection(check.address, check.port)
        except TimeoutError:
            raise ProbeFailed(f"no connection within {timeout:g} s") from None
        except OSError as error:
            raise ProbeFailed(_why(error)) from None
        await _close(writer)

    async def http_get(self, check: Check, timeout: float) -> int:
        request = _request(check)
        try:
            async with asyncio.timeout(timeout):
                reader, writer = await asyncio.open_connection(check.address, check.port, limit=_LINE)
                try:
                    writer.write(request)
                    await writer.drain()
                    code = _status_code(await reader.readline())
                finally:
                    writer.close()
        except TimeoutError:
            raise ProbeFailed(f"no answer within {timeout:g} s") from None
        except (OSError, ValueError) as error:
            raise ProbeFailed(_why(error)) from None
        with contextlib.suppress(OSError):
            await writer.wait_closed()
        return code


def _request(check: Check) -> bytes:
    host = f"[{check.address}]" if ":" in check.address else check.address
    headers = {"Host": f"{host}:{check.port}", "User-Agent": "vcnb-probe", "Accept": "*/*", "Connection": "close"}
    if check.header is not None:
        name, value = check.header
        headers = {key: old for key, old in headers.items() if key.lower() != name.lower()} | {name: value}
    lines = [f"GET {check.path if check.path.startswith('/') else '/' + check.path} HTTP/1.1"]
    lines += [f"{key}: {value}" for key, value in headers.items()]
    if any("\r" in line or "\n" in line for line in lines):
        raise ProbeFailed("the path or the header has a line break")
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def _status_code(line: bytes) -> int:
    parts = line.decode("latin-1").split()
    if len(parts) < 2 or not parts[0].startswith("HTTP/") or not parts[1].isdecimal():
        raise ProbeFailed("the answer is no HTTP")
    return int(parts[1])


async def _close(writer: asyncio.StreamWriter) -> None:
    writer.close()
    with contextlib.suppress(OSError, TimeoutError):
        await writer.wait_closed()


def _why(error: Exception) -> str:
    return (getattr(error, "strerror", None) or str(error) or type(error).__name__).strip()
