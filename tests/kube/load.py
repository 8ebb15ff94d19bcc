"""Many jobs at once on a server of the tests, and whether each of them ended right."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine
from pathlib import Path
from typing import Any

from kube.kubelet import Kubelet
from vcnb.clock import RealClock
from vcnb.errors import AlreadyExists, VcnbError
from vcnb.loop import EngineLoop
from vcnb.resources.kinds import JOB
from vcnb.store.informer import Informers
from vcnb.store.kubernetes import KubernetesStore, Timeouts, open_store
from vcnb.store.protocol import Obj

__all__ = ["Load", "run_load"]

PATIENCE = 150.0
PODS = 4
KINDS = ("plain", "plain", "again", "gives-up", "enough")
"""What every five jobs do: end well, end well, fail once and are restarted, fail for good, end well in spite of a failure."""


class Load:
    """Jobs of several kinds in one namespace; ``phases`` is what is known of them."""

    def __init__(self, store: KubernetesStore, kubelet: Kubelet, namespace: str, number: int) -> None:
        self.store = store
        self.kubelet = kubelet
        self.namespace = namespace
        self.names = [f"{KINDS[place % len(KINDS)]}-{place}" for place in range(number)]
        self.informers = Informers(store, clock=RealClock())
        self.jobs = self.informers[JOB]
        self._news = asyncio.Event()
        self.jobs.subscribe(self._told, lambda _, new: self._told(new))

    def _told(self, _job: Obj) -> None:
        self._news.set()

    async def submit(self) -> None:
        """Create all of them, however often the server has to be asked."""
        for name in self.names:
            await insisting(lambda name=name: self.store.create(job(name, self.namespace)))  # type: ignore[misc]

    @property
    def phases(self) -> Counter[str]:
        return Counter(phase_of(found) for found in self.jobs.list(self.namespace))

    @property
    def ended(self) -> int:
        return self.phases["Completed"] + self.phases["Failed"]

    async def until(self, reached: Callable[[], bool]) -> None:
        """Wait until something holds, looking whenever a job has changed."""
        try:
            async with asyncio.timeout(PATIENCE):
                while not reached():
                    await self._news.wait()
                    self._news.clear()
        except TimeoutError:
            raise AssertionError(f"after {PATIENCE:g} s the jobs are {dict(self.phases)}{self._left()}") from None

    def _left(self) -> str:
        """What is known of the jobs that have not ended."""
        lines = []
        for found in self.jobs.list(self.namespace):
            name = found["metadata"]["name"]
            if phase_of(found) not in {"Completed", "Failed"}:
                lines.append(f"{name}: {found.get('status')}")
                lines += [
                    f"    {pod['metadata']['name']}: {pod['status']['phase']} {pod['metadata']}"
                    for pod in self.kubelet.pods.list(self.namespace)
                    if pod["metadata"]["annotations"]["volcano.sh/job-name"] == name
                ]
        return "".join(f"\n  {line}" for line in lines)

    async def until_ended(self, number: int | None = None) -> None:
        """Wait until so many jobs have ended (None: all)."""
        wanted = len(self.names) if number is None else number
        await self.until(lambda: self.ended >= wanted)

    def check(self) -> None:
        """Every job has ended as it should, and nothing was made twice."""
        for name in self.names:
            found = self.jobs.get(name, self.namespace)
            assert found is not None, f"{name} is gone"
            kind = name.rpartition("-")[0]
            status = found["status"]
            assert phase_of(found) == ("Failed" if kind == "gives-up" else "Completed"), (name, status)
            assert status.get("retryCount", 0) == {"again": 1, "gives-up": 2}.get(kind, 0), (name, status)
        for key, uids in self.kubelet.uids.items():
            if key.startswith((f"{self.namespace}/plain-", f"{self.namespace}/enough-")):
                assert len(uids) == 1, f"{key} was made {len(uids)} times"


def phase_of(found: Obj) -> str:
    return str(((found.get("status") or {}).get("state") or {}).get("phase") or "")


def job(name: str, namespace: str) -> dict[str, Any]:
    kind = name.rpartition("-")[0]
    container = {"name": "c", "image": "busybox"}
    task = {
        "name": "w",
        "replicas": PODS,
        "minAvailable": PODS,
        "maxRetry": 3,
        "template": {"spec": {"restartPolicy": "Never", "containers": [container]}},
    }
    spec: dict[str, Any] = {
        "queue": "default",
        "schedulerName": "volcano",
        "minAvailable": PODS,
        "maxRetry": 2,
        "tasks": [task],
    }
    if kind == "enough":
        spec["minSuccess"] = PODS - 1
    if kind in {"again", "gives-up"}:
        spec["policies"] = [{"event": "PodFailed", "action": "RestartJob"}]
    return {
        "apiVersion": JOB.api_version,
        "kind": "Job",
        "metadata": {"name": name, "namespace": namespace},
        "spec": spec,
    }


def end(pod: Obj) -> str:
    """How each pod ends, by its job's kind, its index and its job's version."""
    annotations = pod["metadata"]["annotations"]
    kind = annotations["volcano.sh/job-name"].rpartition("-")[0]
    last = pod["metadata"]["name"].endswith(f"-{PODS - 1}")
    if kind == "gives-up" or (kind == "again" and annotations["volcano.sh/job-version"] == "0"):
        return "Failed" if last else ""
    return "Failed" if kind == "enough" and last else "Succeeded"


async def insisting(work: Callable[[], Awaitable[Any]]) -> None:
    """Do something until the server says that it is done, or was."""
    while True:
        try:
            await work()
        except AlreadyExists:
            return
        except VcnbError:
            await asyncio.sleep(0.1)
        else:
            return


def run_load(kubeconfig: Path, namespace: str, number: int, scene: Callable[[Load], Coroutine[Any, Any, None]]) -> None:
    """Submit jobs beside a kubelet, play a scene, wait for all to end, and check them."""

    async def whole() -> None:
        timeouts = Timeouts(request=20.0, connect=5.0)
        store = await open_store(kubeconfig=str(kubeconfig), clock=RealClock(), timeouts=timeouts)
        try:
            async with Kubelet(store, RealClock(), end=end) as kubelet:
                load = Load(store, kubelet, namespace, number)
                await load.informers.start()
                await load.informers.wait_synced()
                submitting = asyncio.ensure_future(load.submit())
                try:
                    await scene(load)
                    await submitting
                    await load.until_ended()
                    load.check()
                finally:
                    submitting.cancel()
                    await asyncio.gather(submitting, return_exceptions=True)
                    await load.informers.stop()
        finally:
            await store.close()

    with asyncio.Runner(loop_factory=EngineLoop) as runner:
        runner.run(whole())
