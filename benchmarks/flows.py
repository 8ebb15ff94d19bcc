"""How the controllers' cost of one flow node grows with the flow: layers 10 wide, 100 nodes against 1,000.

    python benchmarks/flows.py [--nodes 100 1000] [--rounds 3] [--profile]

The kubelet is simulated (see reconcile.py); what is measured is everything else. The flow controller's own share is
measured beside it: the time between the beginning and the end of its passes.
"""

from __future__ import annotations

import argparse
import asyncio
import cProfile
import pstats
import statistics
import time
from typing import Any

from reconcile import Kubelet

from vcnb.client.engine import Engine
from vcnb.client.url import parse_url
from vcnb.controllers.flow import flows
from vcnb.loop import EngineLoop
from vcnb.resources import kinds
from vcnb.store.protocol import Obj

WIDTH = 10


def template() -> dict[str, Any]:
    container = {"name": "c", "image": "busybox", "command": ["true"]}
    pods = {"spec": {"restartPolicy": "Never", "containers": [container]}}
    return {
        "apiVersion": kinds.JOBTEMPLATE.api_version,
        "kind": "JobTemplate",
        "metadata": {"name": "t", "namespace": "default"},
        "spec": {"tasks": [{"name": "w", "replicas": 1, "template": pods}]},
    }


def flow(nodes: int) -> dict[str, Any]:
    entries = []
    for number in range(nodes):
        entry: dict[str, Any] = {"name": f"n{number}", "templateRef": "t"}
        layer = number // WIDTH
        if layer:
            entry["dependsOn"] = {"targets": [f"n{(layer - 1) * WIDTH + k}" for k in range(WIDTH)]}
        entries.append(entry)
    return {
        "apiVersion": kinds.JOBFLOW.api_version,
        "kind": "JobFlow",
        "metadata": {"name": "f", "namespace": "default"},
        "spec": {"flows": entries},
    }


async def run(nodes: int) -> tuple[float, float, int]:
    """Seconds in all, seconds in the flow controller's passes, writes of the flow's status."""
    engine = Engine(parse_url("memory://?runtime=simulated"))
    await engine.start()
    kubelet = Kubelet(engine)
    await kubelet.start()
    await engine.store.create(template())
    done = asyncio.Event()
    writes = 0

    def seen(_: Obj, new: Obj) -> None:
        nonlocal writes
        writes += 1
        if new.get("status", {}).get("state", {}).get("phase") in {"Succeed", "Failed"}:
            done.set()

    (await engine.informer(kinds.JOBFLOW)).subscribe(updated=seen)
    own = 0.0
    sync = flows.Flows._sync  # noqa: SLF001 the time of one pass is nobody else's

    async def timed(self: Any, key: Any) -> None:
        nonlocal own
        began = time.perf_counter()
        await sync(self, key)
        own += time.perf_counter() - began

    flows.Flows._sync = timed  # type: ignore[method-assign] # noqa: SLF001
    try:
        began = time.perf_counter()
        await engine.store.create(flow(nodes))
        await done.wait()
        took = time.perf_counter() - began
    finally:
        flows.Flows._sync = sync  # type: ignore[method-assign] # noqa: SLF001
    await kubelet.stop()
    await engine.stop()
    return took, own, writes


def measure(nodes: int) -> tuple[float, float, int]:
    loop = EngineLoop()
    try:
        return loop.run_until_complete(run(nodes))
    finally:
        loop.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", type=int, nargs=2, default=[100, 1000])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--profile", action="store_true")
    options = parser.parse_args()
    if options.profile:
        profile = cProfile.Profile()
        profile.enable()
        measure(options.nodes[1])
        profile.disable()
        pstats.Stats(profile).sort_stats("tottime").print_stats(45)
        return
    costs = []
    for nodes in options.nodes:
        rounds = [measure(nodes) for _ in range(options.rounds)]
        total = statistics.median(took for took, _, _ in rounds) / nodes * 1000
        own = statistics.median(own for _, own, _ in rounds) / nodes * 1000
        writes = statistics.median(writes for _, _, writes in rounds) / nodes
        costs.append((total, own))
        print(
            f"{nodes:6} nodes: {total:.2f} ms a node, {own:.2f} ms of it the flow's; {writes:.2f} status writes a node"
        )
    (small, small_own), (large, large_own) = costs
    print(f"ratio {large / small:.2f} in all, {large_own / small_own:.2f} of the flow controller")


if __name__ == "__main__":
    main()
