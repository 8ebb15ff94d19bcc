"""How much the controllers ask of a real API server: one creation per pod, and few writes of a job's status."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kube import crds
from kube.apiserver import ApiServer, NoApiServer, find_assets
from kube.controllers import ControllerRun
from kube.kubelet import Kubelet
from vcnb.clock import RealClock
from vcnb.loop import EngineLoop
from vcnb.resources.kinds import JOB
from vcnb.store.informer import Informers
from vcnb.store.kubernetes import open_store

JOBS, PODS = 5, 10

pytestmark = pytest.mark.timeout(300)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ApiServer]:
    try:
        assets = find_assets()
    except NoApiServer as error:
        pytest.skip(str(error))
    with ApiServer(tmp_path / "server", assets=assets) as made:
        crds.install(made)
        yield made


def job(name: str) -> dict[str, Any]:
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "busybox"}]}}
    task = {"name": "w", "replicas": PODS, "minAvailable": PODS, "maxRetry": 3, "template": template}
    return {
        "apiVersion": JOB.api_version,
        "kind": "Job",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "queue": "default",
            "schedulerName": "volcano",
            "minAvailable": PODS,
            "maxRetry": 3,
            "tasks": [task],
        },
    }


async def play(server: ApiServer) -> None:
    """Submit the jobs and wait for their end."""
    store = await open_store(kubeconfig=str(server.kubeconfig), clock=RealClock())
    informers = Informers(store, clock=RealClock())
    jobs, news = informers[JOB], asyncio.Event()
    jobs.subscribe(None, lambda *_: news.set())
    await informers.start()
    await informers.wait_synced()
    try:
        async with Kubelet(store, RealClock()), asyncio.timeout(150):
            for number in range(JOBS):
                await store.create(job(f"j{number}"))
            while [phase(found) for found in jobs.list()].count("Completed") < JOBS:
                await news.wait()
                news.clear()
    finally:
        await informers.stop()
        await store.close()


def phase(found: Any) -> str:
    return str(((found.get("status") or {}).get("state") or {}).get("phase") or "")


def test_a_plain_job_costs_few_requests(server: ApiServer, tmp_path: Path) -> None:
    with ControllerRun(server.kubeconfig, tmp_path / "log.txt") as controller:
        controller.wait_until("leading")
        before = asked(controller)
        with asyncio.Runner(loop_factory=EngineLoop) as runner:
            runner.run(play(server))
        made = asked(controller) - before

    assert made["create", "pods"] == JOBS * PODS
    assert made["create", "podgroups"] == JOBS
    assert made["update", "jobs/status"] <= 8 * JOBS
    of_jobs = {key for key in made if key[1] not in {"leases", "queues/status", "queues"} and key[0] != "watch"}
    assert of_jobs <= {
        ("create", "pods"),
        ("create", "podgroups"),
        ("delete", "podgroups"),
        ("update", "jobs/status"),
    }


def asked(controller: ControllerRun) -> Counter[tuple[str, str]]:
    pattern = r'^vcnb_requests_total\{verb="(.*)",resource="(.*)"\} (\d+)$'
    found = re.findall(pattern, controller.ask("/metrics"), re.MULTILINE)
    return Counter({(verb, resource): int(count) for verb, resource, count in found})
