"""How many pods a second the whole control plane takes from submission to Completed, on a simulated kubelet.

    python benchmarks/reconcile.py [--jobs 1000] [--pods 10] [--profile]

Memory store and RocksDB journal run side by side in one process, alternating, and their ratio is printed. The kubelet is
simulated: a bound pod is reported Running, then Succeeded, as soon as it is seen. What is measured is everything else: admission,
the Job controller, the gang scheduler, the store and its watches. `--scale` compares the cost of an event at 100 and at 10,000
jobs.
"""

from __future__ import annotations

import argparse
import asyncio
import cProfile
import pstats
import statistics
import tempfile
import time
from collections.abc import Callable
from typing import Any

from vcnb.client.engine import Engine
from vcnb.client.url import parse_url
from vcnb.loop import EngineLoop
from vcnb.resources import kinds
from vcnb.store.protocol import Obj


def job(number: int, pods: int) -> dict[str, Any]:
    container = {"name": "c", "image": "busybox", "command": ["true"]}
    template = {"spec": {"restartPolicy": "Never", "containers": [container]}}
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": f"j{number}", "namespace": "default"},
        "spec": {"tasks": [{"name": "w", "replicas": pods, "template": template}]},
    }


class Kubelet:
    """Reports every bound pod Running, then Succeeded, as soon as it sees it; finishes deletions at once."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._queue: asyncio.Queue[Obj] = asyncio.Queue()
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        informer = await self._engine.informer(kinds.POD)
        informer.subscribe(added=self._queue.put_nowait, updated=lambda _, new: self._queue.put_nowait(new))
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def _run(self) -> None:
        store = self._engine.store
        while True:
            pod = await self._queue.get()
            meta, status = pod["metadata"], pod.get("status", {})
            if "nodeName" not in pod["spec"] or store.peek(kinds.POD, meta["name"], meta["namespace"]) is not pod:
                continue
            if meta.get("deletionTimestamp"):
                await store.delete(kinds.POD, meta["name"], meta["namespace"], grace_period_seconds=0)
                continue
            phase = {"Pending": "Running", "Running": "Succeeded"}.get(status.get("phase", "Pending"))
            if phase is None:
                continue
            state = {"running": {}} if phase == "Running" else {"terminated": {"exitCode": 0}}
            containers = [{"name": "c", "ready": phase == "Running", "restartCount": 0, "state": state}]
            await store.update_status({**pod, "status": {**status, "phase": phase, "containerStatuses": containers}})

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()


async def run(url: str, jobs: int, pods: int) -> tuple[float, dict[str, int]]:
    """Seconds from the first submission to the last job Completed, and how many writes of each kind there were."""
    engine = Engine(parse_url(url))
    await engine.start()
    kubelet = Kubelet(engine)
    await kubelet.start()
    done = asyncio.Event()
    left = jobs

    def seen(_old: Obj, new: Obj) -> None:
        nonlocal left
        was = _old.get("status", {}).get("state", {}).get("phase")
        if new.get("status", {}).get("state", {}).get("phase") == "Completed" and was != "Completed":
            left -= 1
            if not left:
                done.set()

    (await engine.informer(kinds.JOB)).subscribe(updated=seen)
    writes = count_writes(engine)
    began = time.perf_counter()
    for number in range(jobs):
        await engine.store.create(job(number, pods))
        if number % 20 == 19:
            await asyncio.sleep(0)
    await done.wait()
    took = time.perf_counter() - began
    await kubelet.stop()
    await engine.stop()
    return took, writes


def count_writes(engine: Engine) -> dict[str, int]:
    """Counts the controllers' and kubelet's writes by verb and kind."""
    counts: dict[str, int] = {}
    store: Any = engine.store
    for verb in ("create", "update", "update_status", "patch", "delete"):
        original: Callable[..., Any] = getattr(store, verb)

        def counted(first: Any, *args: Any, _verb: str = verb, _original: Any = original, **options: Any) -> Any:
            kind = first.kind if isinstance(first, kinds.Kind) else first["kind"]
            key = f"{_verb} {kind}"
            counts[key] = counts.get(key, 0) + 1
            return _original(first, *args, **options)

        setattr(store, verb, counted)
    return counts


def measure(url: str, jobs: int, pods: int) -> tuple[float, dict[str, int]]:
    loop = EngineLoop()
    try:
        return loop.run_until_complete(run(url, jobs, pods))
    finally:
        loop.close()


def side_by_side(jobs: int, pods: int, rounds: int) -> None:
    ratios, memory_rates, journal_rates = [], [], []
    for _ in range(rounds):
        in_memory, writes = measure("memory://?runtime=simulated", jobs, pods)
        with tempfile.TemporaryDirectory() as folder:
            journaled, _ = measure(f"embedded://bench?runtime=simulated&dir={folder}/c", jobs, pods)
        memory_rates.append(jobs * pods / in_memory)
        journal_rates.append(jobs * pods / journaled)
        ratios.append(in_memory / journaled)
    print(f"{jobs} jobs x {pods} pods, {rounds} rounds, medians")
    print(f"  memory store       {statistics.median(memory_rates):8.0f} pods/s")
    print(f"  RocksDB journal    {statistics.median(journal_rates):8.0f} pods/s")
    print(f"  journal / memory   {statistics.median(ratios):8.2f}")
    print("  writes a job: " + ", ".join(f"{key} {number / jobs:.1f}" for key, number in sorted(writes.items())))


def scale(pods: int) -> None:
    small = statistics.median(measure("memory://?runtime=simulated", 100, pods)[0] / 100 for _ in range(5))
    large = measure("memory://?runtime=simulated", 10_000, pods)[0] / 10_000
    print(f"cost of a job of {pods} pods: {small * 1000:.2f} ms among 100, {large * 1000:.2f} ms among 10,000 jobs")
    print(f"  ratio {large / small:.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jobs", type=int, default=1000)
    parser.add_argument("--pods", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--scale", action="store_true")
    parser.add_argument("--profile", action="store_true")
    options = parser.parse_args()
    if options.profile:
        profile = cProfile.Profile()
        profile.enable()
        measure("memory://?runtime=simulated", options.jobs, options.pods)
        profile.disable()
        pstats.Stats(profile).sort_stats("tottime").print_stats(45)
    elif options.scale:
        scale(options.pods)
    else:
        side_by_side(options.jobs, options.pods, options.rounds)


if __name__ == "__main__":
    main()
