"""What ``vcnb worker`` and ``vcnb coordinator`` have in common: settings, etcd at the start, the end by a signal."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import socket
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, Protocol

from vcnb.cache.config import CacheConfig
from vcnb.cache.errors import StoreUnavailable
from vcnb.cache.remote.serving import Listen
from vcnb.cache.stores.etcd import EtcdKv
from vcnb.clock import Clock
from vcnb.errors import InvalidObject, Problem, VcnbError
from vcnb.loop import EngineLoop

__all__ = ["Process", "advertised", "configured", "connected_etcd", "run", "start_logging"]

PATIENCE: Final = 5.0
"""Seconds that etcd has to answer when a process starts."""

_log = logging.getLogger(__name__)


class Process(Protocol):
    """Something that is started, runs until it is stopped, and may come to an end by itself."""

    async def start(self) -> None:
        """Raises VcnbError for what makes it impossible."""
        ...

    async def ended(self) -> None:
        """Wait until it cannot go on; raises the VcnbError that says why."""
        ...

    async def stop(self) -> None: ...


def run(process: Process) -> None:
    """Run a process until SIGTERM or SIGINT; a second signal ends it without ceremony. Raises VcnbError."""
    with asyncio.Runner(loop_factory=EngineLoop) as runner:
        runner.run(_run(process))


async def _run(process: Process) -> None:
    loop = asyncio.get_running_loop()
    stopped = asyncio.Event()

    def stop(number: signal.Signals) -> None:
        _log.info("%s: ending", number.name)
        stopped.set()
        for each in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(each)

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop, number)
    waits = [loop.create_task(process.start())]
    told = loop.create_task(stopped.wait())
    try:
        await asyncio.wait([*waits, told], return_when=asyncio.FIRST_COMPLETED)
        if waits[0].done():
            waits[0].result()
            waits.append(loop.create_task(process.ended()))
            await asyncio.wait([waits[1], told], return_when=asyncio.FIRST_COMPLETED)
            if waits[1].done():
                waits[1].result()
    finally:
        for task in [*waits, told]:
            task.cancel()
        await asyncio.gather(*waits, told, return_exceptions=True)
        await process.stop()


def start_logging(verbose: int) -> None:
    """Log lines for people on stderr: what happens; with ``verbose`` everything of this program."""
    logging.basicConfig(
        level=logging.INFO, stream=sys.stderr, format="%(asctime)s %(levelname)-7s %(message)s", datefmt="%H:%M:%S"
    )
    logging.getLogger("vcnb").setLevel(logging.DEBUG if verbose else logging.INFO)


def configured(etcd: Sequence[str], properties: Sequence[str], file: Path | None) -> CacheConfig:
    """The configuration of a process: a file of ``name=value`` lines, then single properties, then the endpoints of etcd.

    Raises InvalidObject that names everything that is wrong; VcnbError without an etcd.
    """
    given = {**(_of_file(file) if file is not None else {}), **_of_texts(properties)}
    if etcd:
        given["alluxio.etcd.endpoints"] = ",".join(_endpoint(url) for url in etcd)
    config = CacheConfig.from_properties({**given, "alluxio.coordinator.job.meta.store.type": "ROCKS"})
    if not config.endpoints:
        raise VcnbError(
            "workers and coordinators meet in etcd, and none was given: use --etcd HOST:PORT (several with commas), or the "
            "property alluxio.etcd.endpoints"
        )
    return CacheConfig.from_properties({**given, "alluxio.coordinator.job.meta.store.type": "ETCD"})


def _endpoint(text: str) -> str:
    parts = [part.strip() for part in text.strip().removeprefix("etcd://").split(",") if part.strip()]
    for part in parts:
        scheme, _, host = part.rpartition("://")
        try:
            listen = Listen(host.rstrip("/"))
        except VcnbError:
            listen = None
        if listen is None or not listen.port or scheme not in {"", "http", "https"}:
            raise VcnbError(f"{part!r} is no etcd: write HOST:PORT or http://HOST:PORT, several with commas")
    return ",".join(part.rstrip("/") for part in parts)


def _of_texts(properties: Sequence[str]) -> dict[str, str]:
    problems, found = [], {}
    for text in properties:
        name, equals, value = text.partition("=")
        if not equals or not name.strip():
            problems.append(Problem(text, None, "write a property as NAME=VALUE"))
        found[name.strip()] = value.strip()
    if problems:
        raise InvalidObject(problems, "the configuration of the cache")
    return found


def _of_file(file: Path) -> Mapping[str, str]:
    try:
        lines = [line.strip() for line in file.read_text(encoding="utf-8").splitlines()]
    except (OSError, UnicodeDecodeError) as error:
        raise VcnbError(f"the properties in {file} cannot be read: {error}") from None
    return _of_texts([line for line in lines if line and not line.startswith("#")])


def advertised(listen: Listen, port: int, advertise: str) -> str:
    """The URL that others are told: ``advertise`` (HOST, HOST:PORT or a URL), else where it listens."""
    text = advertise.strip().rstrip("/")
    if "://" in text:
        return text
    if text:
        host, _, own = text.rpartition(":")
        return f"http://{text}" if host and own.isdecimal() else f"http://{text}:{port}"
    host = socket.getfqdn() if listen.everywhere else listen.host
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


async def connected_etcd(config: CacheConfig, clock: Clock) -> EtcdKv:
    """The etcd of a configuration. Raises VcnbError when none of its endpoints answers within a few seconds."""
    prefix = config.etcd_path
    probe = EtcdKv(config.endpoints, clock, prefix=prefix, read_timeout=PATIENCE, retries=len(config.endpoints) - 1)
    try:
        await probe.count("ring")
    except StoreUnavailable as error:
        raise VcnbError(
            f"no etcd answers at {', '.join(config.endpoints)}: {error}. Is it running, and is that its client port "
            "(often 2379)?"
        ) from None
    finally:
        with contextlib.suppress(Exception):
            await probe.close()
    return EtcdKv(
        config.endpoints,
        clock,
        prefix=prefix,
        read_timeout=config.etcd_read_timeout,
        write_timeout=config.etcd_write_timeout,
        retries=config.etcd_max_retries,
    )
