"""A cache cluster of real processes: etcd, coordinators and workers on the loopback, and a directory as the source."""

from __future__ import annotations

import asyncio
import base64
import json
import random
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import AsyncExitStack, ExitStack, contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from unit.cache_jobs.etcd_server import EtcdServer
from vcnb.cache.config import CacheConfig
from vcnb.cache.jobs.record import JobRecord, JobState, decode_record
from vcnb.cache.jobs.transitions import TABLE
from vcnb.cache.protocol import PAGE_SIZE, FileInfo, WorkerLost, page_count
from vcnb.cache.remote.client import Connections
from vcnb.cache.remote.coordinator import remote_workers
from vcnb.cache.remote.members import Members
from vcnb.cache.remote.secret import Token
from vcnb.cache.ring import LiveRing
from vcnb.cache.service import CacheService
from vcnb.cache.sources import Sources
from vcnb.cache.stores.etcd import EtcdKv
from vcnb.cache.stores.jobs import JobStore
from vcnb.clock import RealClock
from vcnb.errors import NotFound
from vcnb.loop import EngineLoop

LEASE = 3
"""Seconds, instead of 15, after which a coordinator counts as gone."""

PROPERTIES = {
    "alluxio.coordinator.failure.detection.timeout": f"{LEASE}s",
    "alluxio.coordinator.scheduler.job.etcd.poll.interval": "200ms",
    "alluxio.coordinator.scheduler.interval.time": "500ms",
    "alluxio.coordinator.scheduler.etcd.read.timeout": "1s",
    "alluxio.coordinator.scheduler.etcd.write.timeout": "1s",
    "alluxio.worker.failure.detection.timeout": "4s",
}
VCNB = "from vcnb.cli.main import main; main(prog_name='vcnb')"
SECRET = "a-token-of-the-tests-only"


class Program:
    """One process of ``vcnb``, and what it has said on stderr."""

    def __init__(self, name: str, command: list[str], log: Path) -> None:
        self.name = name
        self.log = log
        self._command = command
        self.process: subprocess.Popen[bytes] | None = None
        self.starts = 0

    def start(self) -> None:
        assert self.process is None
        self.starts += 1
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(self._command, stdout=log, stderr=log, stdin=subprocess.DEVNULL)

    @property
    def text(self) -> str:
        return self.log.read_text() if self.log.exists() else ""

    def ready(self) -> None:
        """Wait until its present life has said where it answers."""
        end = time.monotonic() + 60
        while self.text.count(f" {self.name} answers at ") < self.starts:
            assert self.process is not None
            assert self.process.poll() is None, f"{self.name} has ended:\n{self.text[-3000:]}"
            assert time.monotonic() < end, f"{self.name} does not start:\n{self.text[-3000:]}"
            time.sleep(0.05)

    @property
    def url(self) -> str:
        return self.text.rpartition(f" {self.name} answers at ")[2].split()[0].rstrip(",;")

    def kill(self) -> None:
        """kill -9, and it is gone."""
        process, self.process = self.process, None
        if process is not None:
            process.send_signal(signal.SIGCONT)
            process.kill()
            process.wait()

    def terminate(self, seconds: float = 20) -> int:
        """SIGTERM; returns the exit code."""
        process, self.process = self.process, None
        assert process is not None
        process.terminate()
        try:
            return process.wait(seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise AssertionError(f"{self.name} does not end:\n{self.text[-3000:]}") from None

    def signal(self, number: signal.Signals) -> None:
        assert self.process is not None
        self.process.send_signal(number)

    def __enter__(self) -> Program:  # noqa: PYI034 it is this class
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()


class Cluster:
    """Processes that are gone at the end of ``cluster()``, and a way to ask them."""

    def __init__(self, directory: Path, etcd: EtcdServer, ends: ExitStack, **properties: str) -> None:
        self.directory = directory
        self.etcd = etcd
        self.prefix = f"/test/{directory.name}/"
        self.properties = {**PROPERTIES, "alluxio.coordinator.scheduler.job.etcd.path": self.prefix, **properties}
        self.token_file = directory / "token"
        self.token_file.touch(mode=0o600)
        self.token_file.write_text(SECRET)
        self.source = directory / "source"
        self.source.mkdir()
        self.coordinators: dict[str, Program] = {}
        self.workers: dict[str, Program] = {}
        self._ends = ends

    @property
    def path(self) -> str:
        return f"file://{self.source}"

    @property
    def config(self) -> CacheConfig:
        return CacheConfig.from_properties(
            {
                **self.properties,
                "alluxio.coordinator.job.meta.store.type": "ETCD",
                "alluxio.etcd.endpoints": self.etcd.endpoint,
            }
        )

    def fill(self, files: int, *, size: int = 40_000, seed: int = 1) -> dict[str, bytes]:
        """Random files in the source of up to ``size`` bytes, most in directories; the second has two pages and a bit."""
        chance = random.Random(seed)
        made = {}
        for number in range(files):
            name = f"dir {number % 7}/f-{number:05d} ü%2F" if number % 3 else f"f-{number:05d}"
            length = 2 * PAGE_SIZE + 77 if number == 1 else chance.randrange(size)
            place = self.source / name
            place.parent.mkdir(exist_ok=True)
            place.write_bytes(chance.randbytes(length))
            made[f"file://{place}"] = place.read_bytes()
        return made

    def _command(self, *words: str) -> list[str]:
        properties = [word for name, value in self.properties.items() for word in ("-D", f"{name}={value}")]
        shared = ["--etcd", self.etcd.endpoint, "--token-file", str(self.token_file), *properties]
        return [sys.executable, "-c", VCNB, words[0], *shared, *words[1:]]

    def coordinator(self, name: str) -> Program:
        words = ("coordinator", "--name", name, "--listen", ":0")
        return self._begin(self.coordinators, name, self._command(*words))

    def worker(self, name: str, *, capacity: str = "1Gi") -> Program:
        words = (
            "worker",
            "--name",
            name,
            "--listen",
            ":0",
            "--dir",
            str(self.directory / name),
            "--capacity",
            capacity,
        )
        return self._begin(self.workers, name, self._command(*words))

    def _begin(self, group: dict[str, Program], name: str, command: list[str]) -> Program:
        program = self._ends.enter_context(Program(name, command, self.directory / f"{name}.log"))
        group[name] = program
        program.start()
        return program

    def start(self, *, coordinators: str = "ABC", workers: int = 2) -> None:
        """Start them all, and wait until they answer."""
        for number in range(1, workers + 1):
            self.worker(f"w{number}")
        for name in coordinators:
            self.coordinator(name)
        for program in [*self.workers.values(), *self.coordinators.values()]:
            program.ready()

    def metric(self, program: Program, name: str, **labels: str) -> float:
        """The present value of a metric of a process, 0 when it is not there."""
        request = urllib.request.Request(f"{program.url}/metrics", headers={"Authorization": f"Bearer {SECRET}"})
        with urllib.request.urlopen(request, timeout=10) as answer:
            text = answer.read().decode()
        wanted = name + (
            "{" + ",".join(f'{key}="{value}"' for key, value in sorted(labels.items())) + "}" if labels else ""
        )
        found = [line.rpartition(" ")[2] for line in text.splitlines() if line.rpartition(" ")[0] == wanted]
        return float(found[0]) if found else 0.0

    def play(self, story: Callable[[Client], Coroutine[Any, Any, None]]) -> None:
        """Run a story with a client of the cluster."""

        async def run() -> None:
            async with AsyncExitStack() as ends:
                client = Client(self)
                ends.push_async_callback(client.close)
                await client.members.start()
                await story(client)

        with asyncio.Runner(loop_factory=EngineLoop) as runner:
            runner.run(run())


class Client:
    """Asks for jobs through etcd, and reads pages from the workers."""

    def __init__(self, cluster: Cluster) -> None:
        config = cluster.config
        self.cluster = cluster
        self.clock = RealClock()
        self.kv = EtcdKv(
            config.endpoints, self.clock, prefix=config.etcd_path, read_timeout=5, write_timeout=5, retries=5
        )
        self.store = JobStore(self.kv)
        token = Token(SECRET)
        self.service = CacheService(self.store, self.clock, config=config, seal=token.seal().seal)
        self.connections = Connections(token)
        self.members = Members(self.kv, self.clock, remote_workers(self.connections))
        self.ring = LiveRing(self.members, config.virtual_nodes)
        self.sources = Sources(config)

    async def close(self) -> None:
        async with AsyncExitStack() as ends:
            for end in (self.kv.close, self.connections.close, self.sources.close, self.members.stop):
                ends.push_async_callback(end)

    async def until(self, condition: Callable[[], Awaitable[bool]], seconds: float, what: str = "") -> float:
        """Seconds that it took."""
        begun = time.monotonic()
        while not await condition():
            assert time.monotonic() - begun < seconds, f"not within {seconds} s: {what}"
            await asyncio.sleep(0.05)
        return time.monotonic() - begun

    async def live(self, count: int, seconds: float = 30) -> None:
        """Wait until so many workers are seen."""

        async def seen() -> bool:
            return len(self.members.live()) == count

        await self.until(seen, seconds, f"{count} workers live; now {sorted(self.members.live())}")

    async def record(self, id: str) -> JobRecord:
        return await self.service.by_id(id)

    async def loaded(self, id: str, files: int, seconds: float = 30) -> None:
        """Wait until so many files are loaded (or the job has ended)."""

        async def enough() -> bool:
            report = await self.service.progress(id)
            return report.record.finished or report.counters.done_files >= files

        await self.until(enough, seconds, f"{files} files done")

    async def owner(self, id: str, *, not_: str = "", seconds: float = 30) -> str:
        """The name of the coordinator that runs a job, another than ``not_``."""

        async def owned() -> bool:
            owner = (await self.record(id)).owner
            return bool(owner) and owner.split("#")[0] != not_

        await self.until(owned, seconds, f"{id} has an owner")
        return (await self.record(id)).owner.split("#")[0]

    async def ended(self, id: str, seconds: float = 60) -> JobRecord:
        try:
            return await self.service.wait(id, timeout=seconds, check=False)
        except Exception:
            for program in [*self.cluster.coordinators.values(), *self.cluster.workers.values()]:
                print(f"--- {program.name}\n{program.text[-3000:]}")
            raise

    async def compare(self, files: dict[str, bytes], *, owners: bool = False) -> None:
        """Every page that a worker has of these files is right, and every file is whole somewhere.

        ``owners``: on the worker that the ring names, too.
        """
        live = self.members.live()
        for path, data in files.items():
            file = await self.sources.open(path, {}).stat(path)
            assert file.size == len(data)
            whole = set()
            for name in live:
                held = [await self._page(name, file, index) for index in range(page_count(len(data)))]
                for index, page in enumerate(held):
                    wrong = page is not None and page != data[index * PAGE_SIZE : (index + 1) * PAGE_SIZE]
                    assert not wrong, f"page {index} of {path} on {name} is not what the source has"
                if all(page is not None for page in held):
                    whole.add(name)
            assert whole, f"{path} is not whole on any worker"
            if owners:
                assert self.ring().locate(path)[0] in whole, path

    async def _page(self, name: str, file: FileInfo, index: int) -> bytes | None:
        """A page of a worker, which may have been killed and be just about to start again."""
        latest = time.monotonic() + 30.0
        while True:
            worker: Any = self.members.live().get(name)
            try:
                if worker is not None:
                    page: bytes | None = await worker.page(file, index)
                    return page
            except WorkerLost:
                pass
            assert time.monotonic() < latest, f"{name} did not come back"
            await asyncio.sleep(0.05)

    async def owner_at_end(self, id: str) -> str:
        """The name of the coordinator that ended a job."""
        return (await self.record(id)).owner

    async def right(self, id: str, files: dict[str, bytes], *, replicas: int = 1) -> JobRecord:
        """The job ends SUCCEEDED, its numbers are those of the source, and so is what is cached."""
        record = await self.ended(id)
        assert record.state == JobState.SUCCEEDED, (record.reason, record.message, await self.service.failures(id))
        counters = (await self.service.progress(id)).counters
        size = replicas * sum(map(len, files.values()))
        assert (counters.scanned_files, counters.failed_files, counters.vanished_files) == (len(files), 0, 0)
        assert counters.loaded_files + counters.skipped_files == len(files)
        assert (counters.total_bytes, counters.loaded_bytes + counters.skipped_bytes) == (size, size)
        await self.compare(files)
        return record


def history(cluster: Cluster) -> dict[str, list[JobRecord]]:
    """Every version of every record that was ever written, by job, in order: etcd keeps them all."""
    encode = base64.b64encode
    key = f"{cluster.prefix}meta/".encode()
    create = {
        "key": encode(key).decode(),
        "range_end": encode(key + b"\xff").decode(),
        "start_revision": "1",
        "progress_notify": False,
    }
    revision = _revision(cluster)
    body = json.dumps({"create_request": create}).encode()
    records: dict[str, list[JobRecord]] = {}
    # A last write by this test marks the end.
    marker = f"{cluster.prefix}meta/~end"
    _post(cluster, "/v3/kv/put", {"key": encode(marker.encode()).decode(), "value": encode(b"end").decode()})
    request = urllib.request.Request(f"{cluster.etcd.endpoint}/v3/watch", data=body)
    with urllib.request.urlopen(request, timeout=20) as answer:
        for line in answer:
            for event in json.loads(line)["result"].get("events", ()):
                kv = event["kv"]
                if base64.b64decode(kv["key"]).decode() == marker:
                    return records
                if event.get("type") == "DELETE" or int(kv["mod_revision"]) > revision:
                    continue
                record = decode_record(base64.b64decode(kv["value"]), int(kv["mod_revision"]))
                records.setdefault(record.uuid, []).append(record)
    raise AssertionError("etcd's history has no end")


def check_history(cluster: Cluster) -> dict[str, list[str]]:
    """No transition was made twice, none that the table does not have; returns the states of every job."""
    steps = {(source, rule.target) for rule in TABLE.values() for source in rule.sources}
    found = {}
    for uuid, records in history(cluster).items():
        versions = [record.version for record in records]
        assert versions == list(range(len(versions))), f"{uuid}: versions {versions}"
        for before, after in pairwise(records):
            assert (before.state, after.state) in steps, f"{uuid}: {before.state} to {after.state}"
            assert after.epoch == before.epoch + (after.state == JobState.RUNNING)
        found[uuid] = [record.state.value for record in records]
    return found


def _post(cluster: Cluster, path: str, body: dict[str, Any]) -> dict[str, Any]:
    request = urllib.request.Request(cluster.etcd.endpoint + path, data=json.dumps(body).encode())
    with urllib.request.urlopen(request, timeout=20) as answer:
        found: dict[str, Any] = json.loads(answer.read())
        return found


def _revision(cluster: Cluster) -> int:
    return int(_post(cluster, "/v3/kv/range", {"key": base64.b64encode(b"x").decode()})["header"]["revision"])


@contextmanager
def etcd_in(directory: Path) -> Iterator[EtcdServer]:
    """An etcd; the test is skipped, visibly, where there is none."""
    if not Path(EtcdServer.PROGRAM).exists():
        pytest.skip(f"NO etcd ({EtcdServer.PROGRAM}): clusters of processes are NOT tested here; install etcd-server")
    directory.mkdir()
    with EtcdServer(directory) as server:
        yield server


@contextmanager
def cluster(directory: Path, etcd: EtcdServer, **properties: str) -> Iterator[Cluster]:
    """A cluster of no process yet; all of them are gone at the end."""
    with ExitStack() as ends:
        yield Cluster(directory, etcd, ends, **properties)


__all__ = ["LEASE", "Client", "Cluster", "NotFound", "Program", "check_history", "cluster", "etcd_in", "history"]
