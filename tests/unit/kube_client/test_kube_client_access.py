"""What the API server says about permissions, and for how long that is believed."""

from __future__ import annotations

import asyncio
from typing import Any

from vcnb.client.kube.access import Access
from vcnb.clock import VirtualClock
from vcnb.errors import ApiError
from vcnb.resources.kinds import JOB


class Server:
    """Answers access reviews with ``allowed``, or with an error when that is None."""

    def __init__(self, *, allowed: bool | None) -> None:
        self.allowed = allowed
        self.asked: list[dict[str, Any]] = []

    async def request(self, call: Any, method: str, path: str, *, body: dict[str, Any]) -> dict[str, Any]:
        self.asked.append(body["spec"]["resourceAttributes"])
        if self.allowed is None:
            raise ApiError("away")
        return {"status": {"allowed": self.allowed}}


def may(access: Access, namespace: str | None = None) -> bool:
    return asyncio.run(access.allowed("create", JOB, namespace))


def test_a_refusal_is_asked_again_after_half_a_minute():
    clock, server = VirtualClock(), Server(allowed=False)
    access = Access(server, clock)
    assert not may(access)
    server.allowed = True

    clock.move_to(clock.time() + 29.9)
    assert not may(access)
    assert len(server.asked) == 1
    clock.move_to(clock.time() + 0.1)

    assert may(access)


def test_a_refusal_that_is_repeated_holds_for_another_half_minute():
    clock, server = VirtualClock(), Server(allowed=False)
    access = Access(server, clock)
    assert not may(access)
    clock.move_to(clock.time() + 31.0)
    assert not may(access)
    clock.move_to(clock.time() + 29.0)

    assert not may(access)
    assert len(server.asked) == 2


def test_a_permission_is_asked_for_once_in_each_place():
    clock, server = VirtualClock(), Server(allowed=True)
    access = Access(server, clock)
    assert may(access)
    clock.move_to(clock.time() + 3600.0)

    assert may(access)
    assert may(access, "team")
    assert [asked.get("namespace") for asked in server.asked] == [None, "team"]


def test_where_the_server_does_not_tell_it_is_supposed_so_and_asked_again():
    server = Server(allowed=None)
    access = Access(server, VirtualClock())
    assert may(access)
    server.allowed = False

    assert not may(access)
