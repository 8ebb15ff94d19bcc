"""The recorded traces on a real API server: our controllers do there what the recorded ones did (compat="strict").

A simulator plays kubelet, scheduler and people through the API; nothing else of Kubernetes runs, as in the recordings.
Some of every family are played here, with ``VCNB_KUBE_TRACES=all`` (``make nightly-kube``) all of them.
"""

from __future__ import annotations

import os

import pytest

from golden.replay import Trace, replay, traces
from kube.apiserver import ApiServer
from kube.cluster import KubernetesCluster

EVERYTHING = os.environ.get("VCNB_KUBE_TRACES") == "all"

FAMILIES = {
    "job-endings": 8,
    "job-moves": 8,
    "job-commands": 12,
    "job-policies": 10,
    "job-retries": 4,
    "job-timers": 4,
    "job-partitions": 2,
    "job-depends": 3,
    "job-objects": 6,
    "job-scaling": 3,
    "job-random": 10,
    "flow-cases": 8,
    "flow-random": 6,
}
"""How many of each family are played on an ordinary day."""

BESIDE_THE_WORKER = {"timer-pending-fires", "timer-pending-restartpod"}
"""Upstream a delayed action runs beside the job's worker; which of the two comes first is a race that only a store without
latency decides always alike (tests/golden plays them)."""


def chosen(family: str, number: int) -> list[Trace]:
    """Traces of a family, spread over all of it."""
    found = [trace for trace in traces(f"{family}.json") if trace["name"] not in BESIDE_THE_WORKER]
    if EVERYTHING or number >= len(found):
        return found
    return [found[place * len(found) // number] for place in range(number)]


TRACES = [trace for family, number in FAMILIES.items() for trace in chosen(family, number)]


def test_there_are_enough_of_every_family() -> None:
    assert len(TRACES) >= 80
    assert len({trace["name"] for trace in TRACES}) == len(TRACES)


@pytest.mark.parametrize("trace", TRACES, ids=[trace["name"] for trace in TRACES])
def test_trace_on_an_api_server(apiserver: ApiServer, trace: Trace) -> None:
    with KubernetesCluster(apiserver.kubeconfig) as cluster:
        mismatch = replay(trace, cluster)  # type: ignore[arg-type]

    assert mismatch is None, f"\n{mismatch}"
