"""Jobs on a real API server, through ``vcnb controller`` as a process, with a kubelet as fast as it can be.

    python benchmarks/kube.py [--jobs 200] [--pods 10] [--workers 16]

It needs a kube-apiserver and etcd (``make kube-assets``, or KUBEBUILDER_ASSETS). Everything runs on this machine: etcd
without fsync, the API server, the controller, and a process that plays scheduler and kubelet: it admits every PodGroup
and takes every pod to Running and Succeeded as soon as it sees it. Reported are pods per second from the first submission
to the last job Completed, requests per pod by verb and resource, status writes per job, and the time from a job's
submission until its first pod is seen. On a machine that does other things, too, compare the CPU time per pod.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections import Counter
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[0] = str(ROOT / "tests")  # in place of this folder, where this file has the name of a package of the tests

from kube.apiserver import ApiServer  # noqa: E402
from vcnb.clock import RealClock  # noqa: E402
from vcnb.errors import ApiError  # noqa: E402
from vcnb.kube.crds import custom_resource_definitions  # noqa: E402
from vcnb.loop import EngineLoop  # noqa: E402
from vcnb.resources.kinds import JOB, POD, PODGROUP  # noqa: E402
from vcnb.store.kubernetes import KubernetesStore, open_store  # noqa: E402

TOKEN = "benchmark"
LIMIT = 600.0


def job(number: int, pods: int) -> dict[str, Any]:
    container = {"name": "main", "image": "python:3.11", "resources": {"requests": {"cpu": "1"}}}
    template = {"spec": {"containers": [container], "restartPolicy": "Never"}}
    task = {"name": "worker", "replicas": pods, "minAvailable": pods, "maxRetry": 3, "template": template}
    return {
        "apiVersion": JOB.api_version,
        "kind": JOB.kind,
        "metadata": {"name": f"job-{number:04d}", "namespace": "default"},
        "spec": {
            "queue": "default",
            "schedulerName": "volcano",
            "maxRetry": 3,
            "minAvailable": pods,
            "tasks": [task],
        },
    }


# The kubelet


class Kubelet:
    """Admits, runs and ends everything at once. Notes when the first pod of each job was seen."""

    def __init__(self, store: KubernetesStore) -> None:
        self.store = store
        self.first: dict[str, float] = {}
        self.seen: set[tuple[str, str]] = set()

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._follow(PODGROUP, self._group, group))
            group.create_task(self._follow(POD, self._pod, group))

    async def _follow(self, kind: Any, handle: Any, group: asyncio.TaskGroup) -> None:
        watch = await self.store.watch(kind)
        while events := await watch.batch():
            for event in events:
                if event.type in {"ADDED", "MODIFIED"} and (work := handle(event.object)) is not None:
                    group.create_task(work)

    def _group(self, obj: Any) -> Any:
        if (obj.get("status") or {}).get("phase", "Pending") == "Pending" and self._once(obj, "Inqueue"):
            return self._patch(PODGROUP, obj, {"phase": "Inqueue"})
        return None

    def _pod(self, obj: Any) -> Any:
        if obj["metadata"].get("deletionTimestamp"):
            return None
        self.first.setdefault(obj["metadata"]["annotations"]["volcano.sh/job-name"], time.time())
        if obj["status"]["phase"] == "Pending" and self._once(obj, "Running"):
            return self._patch(POD, obj, {"phase": "Running"})
        if obj["status"]["phase"] == "Running" and self._once(obj, "Succeeded"):
            return self._patch(POD, obj, {"phase": "Succeeded"})
        return None

    def _once(self, obj: Any, phase: str) -> bool:
        key = (obj["metadata"]["uid"], phase)
        new = key not in self.seen
        self.seen.add(key)
        return new

    async def _patch(self, kind: Any, obj: Any, status: dict[str, Any]) -> None:
        meta = obj["metadata"]
        subresource = "status" if kind.status else ""
        try:
            await self.store.patch(kind, meta["name"], meta["namespace"], {"status": status}, subresource=subresource)
        except ApiError as error:
            print(f"{kind} {meta['name']}: {error}", file=sys.stderr)


async def run_kubelet(kubeconfig: str) -> None:
    store = await open_store(kubeconfig=kubeconfig, clock=RealClock())
    kubelet = Kubelet(store)
    running = asyncio.ensure_future(kubelet.run())
    print("ready", flush=True)
    await asyncio.to_thread(sys.stdin.readline)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    print(json.dumps(kubelet.first), flush=True)
    await store.close()


# The benchmark


def controller(server: ApiServer, log: Path, options: list[str]) -> subprocess.Popen[bytes]:
    command = [
        *(sys.executable, "-c", "from vcnb.cli.main import main; main()"),
        *("controller", f"--kubeconfig={server.kubeconfig}", "--bind=127.0.0.1:0", "--lease-namespace=default"),
        *options,
    ]
    environment = {**os.environ, "VCNB_METRICS_TOKEN": TOKEN}
    return subprocess.Popen(command, stderr=log.open("wb"), stdin=subprocess.DEVNULL, env=environment)


def address(log: Path) -> str:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        found = re.search(r"(http://\S+)/healthz", log.read_text())
        if found:
            return found[1]
        time.sleep(0.05)
    raise SystemExit(f"the controller did not start:\n{log.read_text()}")


def ask(url: str) -> str:
    request = urllib.request.Request(url, headers={"Authorization": f"Bearer {TOKEN}"})
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(request, timeout=10) as answer:
        return str(answer.read().decode())


def wait_ready(base: str) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            if "leading" in ask(f"{base}/readyz"):
                return
        except OSError:
            pass
        time.sleep(0.05)
    raise SystemExit("the controller is not ready")


def requests(base: str) -> Counter[tuple[str, str]]:
    pattern = r'^vcnb_requests_total\{verb="(.*)",resource="(.*)"\} (\d+)$'
    return Counter(
        {(verb, what): int(n) for verb, what, n in re.findall(pattern, ask(f"{base}/metrics"), re.MULTILINE)}
    )


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def drive(server: ApiServer, jobs: int, pods: int) -> tuple[dict[str, float], float]:
    """Submit everything, wait until all is Completed; when each was submitted, and how long all took."""
    store = await open_store(kubeconfig=str(server.kubeconfig), clock=RealClock())
    watch = await store.watch(JOB)
    submitted: dict[str, float] = {}
    began = time.time()

    async def submit() -> None:
        for number in range(jobs):
            submitted[f"job-{number:04d}"] = time.time()
            await store.create(job(number, pods))

    submitting = asyncio.ensure_future(submit())
    done: set[str] = set()
    async with asyncio.timeout(LIMIT):
        while len(done) < jobs:
            for event in await watch.batch():
                if ((event.object.get("status") or {}).get("state") or {}).get("phase") == "Completed":
                    done.add(event.object["metadata"]["name"])
    took = time.time() - began
    await submitting
    await watch.close()
    await store.close()
    return submitted, took


def measure(folder: Path, jobs: int, pods: int, options: list[str]) -> dict[str, Any]:
    log = folder / "controller.txt"
    with ApiServer(folder / "server") as server:
        for definition in custom_resource_definitions():
            server.apply_crd(definition)
        leader = controller(server, log, options)
        command = [sys.executable, __file__, "--kubelet", str(server.kubeconfig)]
        kubelet = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        try:
            processes = {"controller": leader.pid, "kubelet": kubelet.pid, **server.pids}
            base = address(log)
            wait_ready(base)
            assert kubelet.stdout is not None
            kubelet.stdout.readline()
            before, cpu = requests(base), {name: cpu_seconds(pid) for name, pid in processes.items()}
            submitted, took = run(drive(server, jobs, pods))
            time.sleep(2)  # what is still on its way counts, too
            made = requests(base) - before
            cpu = {name: round(cpu_seconds(pid) - cpu[name], 2) for name, pid in processes.items()}
            out, _ = kubelet.communicate("\n", timeout=60)
            first = json.loads(out.strip().splitlines()[-1])
        finally:
            for process in (leader, kubelet):
                process.terminate()
                process.wait(30)
    waits = sorted(first[name] - when for name, when in submitted.items())
    total = jobs * pods
    return {
        "jobs": jobs,
        "pods per job": pods,
        "seconds": round(took, 2),
        "pods per second": round(total / took, 1),
        "CPU seconds": cpu,
        "CPU milliseconds per pod, all": round(sum(cpu.values()) / total * 1000, 1),
        "status writes per job": round(made["update", "jobs/status"] / jobs, 2) or None,
        "first pod after, median s": round(median(waits), 3),
        "first pod after, 90 % s": round(waits[int(len(waits) * 0.9)], 3),
        "requests per pod": {
            f"{verb} {what}": round(count / total, 3) for (verb, what), count in sorted(made.items()) if count
        },
        "requests per pod, all": round(made.total() / total, 3),
    }


def run(work: Any) -> Any:
    with asyncio.Runner(loop_factory=EngineLoop) as runner:
        return runner.run(work)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=200)
    parser.add_argument("--pods", type=int, default=10)
    parser.add_argument("--kubelet", help=argparse.SUPPRESS)
    options, further = parser.parse_known_args()
    if options.kubelet:
        run(run_kubelet(options.kubelet))
        return
    with tempfile.TemporaryDirectory() as folder:
        print(json.dumps(measure(Path(folder), options.jobs, options.pods, further), indent=2))


if __name__ == "__main__":
    main()
