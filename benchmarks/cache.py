"""The dataset cache beside what people would use instead, in one run: loading, reading again, and many waiting jobs.

    python benchmarks/cache.py [large] [small] [read] [jobs] [http] [--dir DIR] [--rounds 3] [--scale 1.0]

large   2 GiB in files of 64 MiB from a local directory, against ``cp -r``
small   100,000 files of 4 KiB from a local directory, against ``cp -r`` and fsspec's ``get``
read    those 2 GiB again, from the cache through ``vcache://``, against reading plain files
jobs    300,000 waiting jobs: how long a submission takes, and how long a start with them
http    1 GiB in files of 16 MiB and 2,000 of 64 KiB from an HTTP server of this machine, against ``curl --parallel``

Everything goes the whole way: cluster, job store (RocksDB), coordinator, worker, pages. The sides take turns, and the best
round of each counts: this asks what the program costs, not what else the machine does. Between rounds the disk is synced, so
that none pays for another's writes. ``--scale`` makes everything smaller.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import vcnb

MIB = 1 << 20

SERVER = """
import sys
from aiohttp import web
app = web.Application()
app.router.add_static("/", sys.argv[1], show_index=False)
web.run_app(app, host="127.0.0.1", port=int(sys.argv[2]), print=None, access_log=None)
"""


class Bench:
    """A scratch directory, and the best times of what was run in turns."""

    def __init__(self, root: Path, rounds: int, scale: float) -> None:
        self.root = root
        self.rounds = rounds
        self.scale = scale

    def count(self, number: int) -> int:
        return max(1, int(number * self.scale))

    def tree(self, name: str, files: int, size: int, each: int = 1000) -> Path:
        """A directory of files, made once, read once."""
        root = self.root / name
        if not root.exists():
            block = os.urandom(MIB)
            for number in range(files):
                path = root / f"d{number // each:03}" / f"f{number:06}"
                path.parent.mkdir(parents=True, exist_ok=True)
                with path.open("wb") as file:
                    for start in range(0, size, MIB):
                        file.write(
                            block[number % 997 :] + block[: number % 997] if size > MIB else block[: size - start]
                        )
        return root

    def race(self, sides: dict[str, Callable[[], float]]) -> dict[str, float]:
        """Seconds of the best round of each side; they take turns."""
        times: dict[str, list[float]] = {name: [] for name in sides}
        for _ in range(self.rounds):
            for name, side in sides.items():
                os.sync()
                times[name].append(side())
        return {name: min(seconds) for name, seconds in times.items()}

    def fresh(self, name: str) -> Path:
        path = self.root / name
        shutil.rmtree(path, ignore_errors=True)
        return path

    @contextlib.contextmanager
    def cluster(self) -> Iterator[Any]:
        """A durable cluster in a new directory."""
        with vcnb.connect("embedded://bench", dir=str(self.fresh("cluster")), cache_capacity="40GiB") as cluster:
            yield cluster

    def load(self, path: str | None, files: int, **options: Any) -> float:
        """Seconds of a load job, from its submission to its end; the cluster is there already."""
        with self.cluster() as cluster:
            cluster.cache.list()
            begun = time.perf_counter()
            job = cluster.cache.load(path, **options)
            job.wait()
            seconds = time.perf_counter() - begun
            done = job.progress()
            assert done.loaded_files == files, f"{done.loaded_files} of {files} files were loaded"
            assert done.fetched_bytes == done.loaded_bytes == done.total_bytes
            on_disk = sum(path.stat().st_blocks * 512 for path in (self.root / "cluster").rglob("*") if path.is_file())
            assert on_disk >= done.loaded_bytes, "what was loaded is not on the disk"
        return seconds


def copied(bench: Bench, source: Path) -> float:
    target = bench.fresh("copy")
    begun = time.perf_counter()
    subprocess.run(["cp", "-r", str(source), str(target)], check=True)
    seconds = time.perf_counter() - begun
    shutil.rmtree(target)
    return seconds


def fsspec_get(bench: Bench, source: Path) -> float:
    import fsspec

    target = bench.fresh("got")
    begun = time.perf_counter()
    fsspec.filesystem("file").get(str(source), str(target), recursive=True)
    seconds = time.perf_counter() - begun
    shutil.rmtree(target)
    return seconds


def say(what: str, amount: str, best: dict[str, float], rate: Callable[[float], str]) -> None:
    ours = best["vcnb"]
    print(f"{what}: {amount}")
    for name, seconds in best.items():
        factor = "" if name == "vcnb" else f"   vcnb is {seconds / ours:.2f} times as fast"
        print(f"    {name:12} {seconds:8.3f} s  {rate(seconds)}{factor}")


def large(bench: Bench) -> None:
    files = bench.count(32)
    source = bench.tree("large", files, 64 * MIB)
    size = files * 64 * MIB
    sides = {"cp -r": lambda: copied(bench, source), "vcnb": lambda: bench.load(f"file://{source}", files)}
    say("large files", f"{files} of 64 MiB", bench.race(sides), lambda s: f"{size / s / 2**30:6.2f} GiB/s")


def small(bench: Bench) -> None:
    files = bench.count(100_000)
    source = bench.tree("small", files, 4096)
    sides = {
        "cp -r": lambda: copied(bench, source),
        "fsspec get": lambda: fsspec_get(bench, source),
        "vcnb": lambda: bench.load(f"file://{source}", files),
        "batch 2000": lambda: bench.load(f"file://{source}", files, batch_size=2000),
    }
    say("small files", f"{files} of 4 KiB", bench.race(sides), lambda s: f"{s / files * 1e6:6.1f} us a file")


def read(bench: Bench) -> None:
    files = bench.count(32)
    source = bench.tree("large", files, 64 * MIB)
    paths = sorted(path for path in source.rglob("*") if path.is_file())
    size = files * 64 * MIB
    buffer = bytearray(MIB)

    def plain(piece: int) -> float:
        begun = time.perf_counter()
        for path in paths:
            with path.open("rb", buffering=0) as file:
                while file.readinto(memoryview(buffer)[:piece]):
                    pass
        return time.perf_counter() - begun

    with bench.cluster() as cluster:
        cluster.cache.load(f"file://{source}").wait()
        fs = cluster.cache.filesystem()

        def cached(piece: int) -> float:
            begun = time.perf_counter()
            for path in paths:
                with fs.open(f"file://{path}", "rb") as file:
                    while file.readinto(memoryview(buffer)[:piece]):
                        pass
            return time.perf_counter() - begun

        def cached_whole() -> float:
            begun = time.perf_counter()
            for path in paths:
                fs.cat_file(f"file://{path}")
            return time.perf_counter() - begun

        def plain_whole() -> float:
            begun = time.perf_counter()
            for path in paths:
                path.read_bytes()
            return time.perf_counter() - begun

        for piece in (MIB, 64 << 10):
            sides = {"plain file": lambda: plain(piece), "vcnb": lambda: cached(piece)}  # noqa: B023 run at once
            amount = f"{files} of 64 MiB in reads of {piece >> 10} KiB"
            say("read again", amount, bench.race(sides), lambda s: f"{size / s / 2**30:6.2f} GiB/s")
        best = bench.race({"plain file": plain_whole, "vcnb": cached_whole})
        say("read again", f"{files} of 64 MiB, each whole", best, lambda s: f"{size / s / 2**30:6.2f} GiB/s")


def jobs(bench: Bench) -> None:
    asyncio.run(many_jobs(bench))


async def many_jobs(bench: Bench) -> None:
    from vcnb.cache.config import CacheConfig
    from vcnb.cache.embedded import EmbeddedCache
    from vcnb.cache.jobs.request import Request
    from vcnb.cache.protocol import JobType
    from vcnb.clock import RealClock

    count = bench.count(300_000)
    directory = bench.fresh("jobs")
    config = CacheConfig(running_capacity=0)
    cache = EmbeddedCache(directory, RealClock(), config, capacity=MIB * 64)
    await cache.start()
    took = []
    for number in range(count):
        begun = time.perf_counter()
        await cache.service.submit(Request(JobType.LOAD, f"file:///data/set-{number:06}"))
        took.append(time.perf_counter() - begun)
    await cache.stop()
    cache = EmbeddedCache(directory, RealClock(), config, capacity=MIB * 64)
    begun = time.perf_counter()
    await cache.start()
    started = time.perf_counter() - begun
    waiting = await cache.store.waiting_count()
    began = time.perf_counter()
    await cache.service.job(JobType.LOAD, "file:///data/set-000000")
    again = time.perf_counter() - began
    await cache.stop()
    took.sort()
    print(
        f"waiting jobs: {waiting} held; submit p50 {statistics.median(took) * 1e3:.3f} ms, "
        f"p99 {took[len(took) * 99 // 100] * 1e3:.3f} ms; start with them {started:.2f} s, "
        f"and the first answer {again * 1e3:.1f} ms after it"
    )


def http(bench: Bench) -> None:
    port = 18_000 + os.getpid() % 1000
    bench.tree("web/large", bench.count(64), 16 * MIB)
    bench.tree("web/small", bench.count(2000), 64 << 10)
    server = subprocess.Popen([sys.executable, "-c", SERVER, str(bench.root / "web"), str(port)])
    try:
        for name in ("large", "small"):
            root = bench.root / "web" / name
            paths = sorted(path.relative_to(bench.root / "web") for path in root.rglob("*") if path.is_file())
            urls = [f"http://127.0.0.1:{port}/{path}" for path in paths]
            index = bench.root / f"index-{name}"
            index.write_text("\n".join(urls))
            size = sum(path.stat().st_size for path in root.rglob("*") if path.is_file())
            sides = {
                "curl": lambda: curled(bench, urls),  # noqa: B023 run at once
                "vcnb": lambda: bench.load(None, len(urls), index_file=str(index)),  # noqa: B023
            }
            curled(bench, urls)
            best = bench.race(sides)
            say(f"http, {name}", f"{len(urls)} files, {size >> 20} MiB", best, lambda s: f"{size / s / MIB:6.0f} MiB/s")  # noqa: B023
    finally:
        server.terminate()
        server.wait()


def curled(bench: Bench, urls: list[str]) -> float:
    """All files with curl, 64 at a time, which it finds itself best with here."""
    target = bench.fresh("curl")
    config = bench.root / "curl.conf"
    config.write_text("".join(f'url="{url}"\noutput="{target}/{number}"\n' for number, url in enumerate(urls)))
    begun = time.perf_counter()
    command = ["curl", "-sS", "--fail", "--retry", "9", "--retry-connrefused", "--create-dirs", "--parallel"]
    subprocess.run([*command, "--parallel-max", "64", "-K", str(config)], check=True, stderr=subprocess.DEVNULL)
    seconds = time.perf_counter() - begun
    shutil.rmtree(target)
    return seconds


SECTIONS = {"large": large, "small": small, "read": read, "jobs": jobs, "http": http}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sections", nargs="*", choices=[[], *SECTIONS])
    parser.add_argument("--dir", type=Path, default=Path(tempfile.gettempdir()))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--scale", type=float, default=1.0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="vcnb-bench-", dir=options.dir) as root:
        bench = Bench(Path(root), options.rounds, options.scale)
        for name in options.sections or SECTIONS:
            SECTIONS[name](bench)


if __name__ == "__main__":
    main()
