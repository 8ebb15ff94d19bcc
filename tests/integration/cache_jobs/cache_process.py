"""A process with a job store of its own: runs one job to its end, and prints how it ended. It may be killed at any time.

python cache_process.py DIRECTORY FILES SECONDS_PER_FILE
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from unit.cache_jobs.cache_fakes import ROOT, FakeMembers, FakeSource, FakeWorker
from vcnb.cache.config import CacheConfig
from vcnb.cache.coordinator.coordinator import Coordinator
from vcnb.cache.service import CacheService
from vcnb.cache.stores.jobs import JobStore
from vcnb.cache.stores.rocks import RocksKv
from vcnb.clock import RealClock
from vcnb.loop import EngineLoop


async def main(directory: str, files: int, seconds: float) -> None:
    clock = RealClock()
    source = FakeSource({f"{ROOT}/{n:04d}": 1000 for n in range(files)})
    workers = [FakeWorker(f"W{n}", source, clock) for n in (1, 2)]  # type: ignore[arg-type]
    for worker in workers:
        worker.seconds = seconds
    members = FakeMembers(workers)
    store = JobStore(RocksKv(Path(directory), clock))
    config = CacheConfig(batch_size=3, interval=0.2)
    coordinator = Coordinator(store, members, source, members.ring, clock, config=config)
    service = CacheService(store, clock, config=config, coordinator=coordinator)
    await coordinator.start()
    answer = await service.load(ROOT, token="the job", verify=True)
    print("started", answer.id, flush=True)
    record = await service.wait(answer.id, check=False)
    report = await service.progress(answer.id)
    await coordinator.stop()
    await store.close()
    ended = {"id": record.uuid, "state": record.state, "epoch": record.epoch, "version": record.version}
    print(json.dumps({**ended, "reason": record.reason, "reads": len(source.reads), **report.to_dict()}), flush=True)


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=EngineLoop) as runner:
        runner.run(main(sys.argv[1], int(sys.argv[2]), float(sys.argv[3])))
