"""The checks of probes, over real connections on the loopback interface."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable

import pytest

from vcnb.controllers.flow.prober import AsyncioProber, ProbeFailed, run_round
from vcnb.controllers.flow.world import Check, Group, Round

HOST = "127.0.0.1"


def check(port: int, kind: str = "http", path: str = "/", header: tuple[str, str] | None = None) -> Check:
    return Check(kind, "pod", HOST, port, path, header)  # type: ignore[arg-type]


def with_server(answer: bytes | None, use: Callable[[int], Awaitable[object]]) -> tuple[object, bytes]:
    """What ``use`` gives with a server that answers so (None: not at all), and what the server was asked."""
    asked = b""
    serving: list[asyncio.Task[None]] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal asked
        task = asyncio.current_task()
        assert task is not None
        serving.append(task)
        asked = await reader.readuntil(b"\r\n\r\n") if answer is not None else b""
        if answer is None:
            await reader.read()
        else:
            writer.write(answer)
            await writer.drain()
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()

    async def main() -> object:
        server = await asyncio.start_server(serve, HOST, 0)
        async with server:
            found = await use(server.sockets[0].getsockname()[1])
            await asyncio.gather(*serving)
            return found

    return asyncio.run(main()), asked


def test_a_request():
    async def use(port: int) -> int:
        return await AsyncioProber().http_get(check(port, path="/ready", header=("X-Ask", "1")), 5)

    code, asked = with_server(b"HTTP/1.1 204 No Content\r\n\r\n", use)

    assert code == 204
    assert asked.startswith(b"GET /ready HTTP/1.1\r\nHost: 127.0.0.1:")
    assert b"\r\nX-Ask: 1\r\n" in asked


def test_the_host_may_be_named():
    async def use(port: int) -> int:
        return await AsyncioProber().http_get(check(port, header=("host", "example")), 5)

    _, asked = with_server(b"HTTP/1.1 200 OK\r\n\r\n", use)

    assert asked.count(b"ost:") == 1
    assert b"host: example" in asked


@pytest.mark.parametrize(
    ("answer", "message"), [(b"hello\r\n", "no HTTP"), (b"", "no HTTP"), (None, "no answer within 0.05 s")]
)
def test_bad_answers(answer: bytes | None, message: str):
    async def use(port: int) -> str:
        with pytest.raises(ProbeFailed) as raised:
            await AsyncioProber().http_get(check(port), 0.05 if answer is None else 5)
        return str(raised.value)

    said, _ = with_server(answer, use)

    assert message in str(said)


def test_a_long_body_is_not_waited_for():
    async def use(port: int) -> int:
        return await AsyncioProber().http_get(check(port), 5)

    code, _ = with_server(b"HTTP/1.1 200 OK\r\nContent-Length: 10000000\r\n\r\n" + b"x" * 10_000, use)

    assert code == 200


def test_a_line_break_is_not_smuggled_in():
    async def use(port: int) -> None:
        with pytest.raises(ProbeFailed, match="line break"):
            await AsyncioProber().http_get(check(port, path="/x\r\nEvil: 1"), 5)

    with_server(b"HTTP/1.1 200 OK\r\n\r\n", use)


def test_tcp():
    async def use(port: int) -> tuple[int, str]:
        await AsyncioProber().tcp_connect(check(port, "tcp"), 5)
        return port, "open"

    (port, state), _ = with_server(None, use)  # type: ignore[misc]

    async def closed() -> None:
        with pytest.raises(ProbeFailed):
            await AsyncioProber().tcp_connect(check(port, "tcp"), 5)

    asyncio.run(closed())
    assert state == "open"


class Table:
    """A prober that answers by port."""

    def __init__(self, **codes: int) -> None:
        self.codes = {int(port.removeprefix("p")): code for port, code in codes.items()}

    async def http_get(self, check: Check, timeout: float) -> int:
        return self.codes[check.port]

    async def tcp_connect(self, check: Check, timeout: float) -> None:
        if check.port not in self.codes:
            raise ProbeFailed("refused")


def result(prober: Table, *groups: Group) -> tuple[bool, str]:
    return tuple(asyncio.run(run_round(prober, Round("n", "t", groups, 1.0))))  # type: ignore[return-value]


@pytest.mark.parametrize(
    ("code", "good"), [(199, False), (200, True), (302, True), (399, True), (400, False), (503, False)]
)
def test_which_answers_are_good(code: int, good: bool):
    assert result(Table(p1=code), Group("http", 1, [check(1)]))[0] is good


def test_enough_of_a_group_must_pass():
    two_of_three = Group("tcp t:1", 2, [check(1, "tcp"), check(2, "tcp"), check(3, "tcp")])

    assert result(Table(p1=0, p3=0), two_of_three) == (True, "")
    assert result(Table(p1=0), two_of_three) == (False, "tcp t:1: 1 of 2 pods pass; pod: refused")
    assert result(Table(), Group("x", 2, [check(1)])) == (False, "x: 1 of 2 pods run and have an address")


def test_all_groups_must_pass():
    assert not result(Table(p1=200), Group("a", 1, [check(1)]), Group("b", 1, [check(2, "tcp")]))[0]
