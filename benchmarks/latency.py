"""How long from ``submit`` to the first process running, and from the process's end to ``wait`` returning.

    python benchmarks/latency.py [--jobs 100]

One cluster with real processes; jobs of one pod (`/bin/true`-like: `sh -c :`), one after the other. The process's own start is
read from its pod's ``startedAt``; both stamps come from this machine's clock.
"""

from __future__ import annotations

import argparse
import statistics
import time
from typing import Any

import vcnb


def quantile(values: list[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jobs", type=int, default=100)
    options = parser.parse_args()
    for runtime in (None, "process", "sandbox"):
        name = runtime or "default"
        started, whole = [], []
        with vcnb.connect("memory://", runtime=runtime) as cluster:
            for number in range(options.jobs):
                began = time.time()
                job: Any = cluster.submit(
                    vcnb.Job(
                        name=f"j{number}", tasks=[vcnb.Task("w", replicas=1, image="bash", command=["sh", "-c", ":"])]
                    )
                )
                job.wait()
                whole.append(time.time() - began)
                status = job.pods[0].status["containerStatuses"][0]["state"]["terminated"]
                from vcnb.clock import parse_time

                started.append(parse_time(status["startedAt"]) - began)
                job.delete()
        print(
            f"{name:8} submit -> process running: p50 {statistics.median(started) * 1000:.1f} ms, "
            f"p95 {quantile(started, 0.95) * 1000:.1f} ms; submit -> wait() returned: "
            f"p50 {statistics.median(whole) * 1000:.1f} ms"
        )


if __name__ == "__main__":
    main()
