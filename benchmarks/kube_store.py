"""What the object store on Kubernetes costs: creates, status patches, a list, a watch and deletes of pods on a real API server.

    python benchmarks/kube_store.py [--pods 2000] [--at-once 16]

The server is that of the tests (`make kube-assets`): kube-apiserver and etcd on this machine, so they share its cores with
what is measured. Beside each rate stands the client's own processor time, which does not depend on that. An informer of pods
runs all the time, so a create counts its event as well.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from vcnb.clock import RealClock
from vcnb.resources.kinds import POD
from vcnb.store.informer import Informer
from vcnb.store.kubernetes import KubernetesStore, open_store

sys.path[0] = str(Path(__file__).parents[1] / "tests")  # instead of this folder, which has another ``kube``
from kube.apiserver import ApiServer  # noqa: E402 only to be found there

NAMESPACE = "bench"


def pod(number: int) -> dict[str, Any]:
    container = {"name": "c", "image": "busybox", "command": ["true"]}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"p{number}", "namespace": NAMESPACE, "labels": {"app": "bench"}},
        "spec": {"nodeName": "n", "restartPolicy": "Never", "containers": [container]},
    }


class Bench:
    """Runs one kind of call for all pods, and prints what it took."""

    def __init__(self, store: KubernetesStore, informer: Informer, pods: int, at_once: int) -> None:
        self.store = store
        self.informer = informer
        self.pods = pods
        self.at_once = at_once

    async def all(self, what: str, call: Callable[[int], Awaitable[Any]], done: Callable[[], bool]) -> None:
        numbers = iter(range(self.pods))

        async def some() -> None:
            for number in numbers:
                await call(number)

        began, worked = time.perf_counter(), time.process_time()
        await asyncio.gather(*(some() for _ in range(self.at_once)))
        while not done():  # noqa: ASYNC110 the informer has no event for it
            await asyncio.sleep(0.005)
        took, worked = time.perf_counter() - began, time.process_time() - worked
        print(f"{what:<14}{self.pods / took:>8.0f} /s   {1e3 * worked / self.pods:>6.2f} ms of work each")

    async def run(self) -> None:
        store, informer = self.store, self.informer
        await self.all("create", lambda number: store.create(pod(number)), lambda: len(informer) == self.pods)

        def running() -> bool:
            return all(obj["status"]["phase"] == "Running" for obj in informer.list())

        patch = {"status": {"phase": "Running"}}
        await self.all(
            "status patch",
            lambda number: store.patch(POD, f"p{number}", NAMESPACE, patch, subresource="status"),
            running,
        )
        began, worked = time.perf_counter(), time.process_time()
        listed = await store.list(POD, NAMESPACE)
        took, worked = time.perf_counter() - began, time.process_time() - worked
        count = len(listed.items)
        print(f"{'list':<14}{count / took:>8.0f} /s   {1e3 * worked / count:>6.2f} ms of work each")
        await self.all(
            "delete",
            lambda number: store.delete(POD, f"p{number}", NAMESPACE, grace_period_seconds=0),
            lambda: len(informer) == 0,
        )


async def measure(server: ApiServer, pods: int, at_once: int) -> None:
    store = await open_store("admin", kubeconfig=str(server.kubeconfig), clock=RealClock())
    informer = Informer(store, POD)
    try:
        await informer.start()
        await informer.wait_synced()
        await Bench(store, informer, pods, at_once).run()
    finally:
        await informer.stop()
        await store.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pods", type=int, default=2000)
    parser.add_argument("--at-once", type=int, default=16)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, ApiServer(Path(folder)) as server:
        server.namespace(NAMESPACE)
        asyncio.run(measure(server, given.pods, given.at_once))


if __name__ == "__main__":
    main()
