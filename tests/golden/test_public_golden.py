"""Traces through ``vcnb.connect``: the same cluster with its thread, its admission and its engine changes nothing."""

from __future__ import annotations

from typing import Any

import pytest

import vcnb
from golden.inprocess import NAMESPACE_NAME
from golden.replay import Trace, replay, traces
from vcnb.resources.kinds import NAMESPACE

SOME = [*traces("job-endings.json"), *traces("job-timers.json"), *traces("job-moves.json"), *traces("job-objects.json")]


class PublicCluster:
    """What a replay needs, taken from a cluster that people connect to."""

    def __init__(self, cluster: Any) -> None:
        self.namespace = NAMESPACE_NAME
        self.simulator = cluster.simulator
        self.engine = cluster._engine
        self.store = cluster._engine.store
        self.run = cluster._bridge.run
        self.simulator.scheduler = "manual"
        self.simulator.collect_garbage = False
        namespace = {"apiVersion": "v1", "kind": NAMESPACE.kind, "metadata": {"name": NAMESPACE_NAME}}
        self.run(self.store.create(namespace))


@pytest.mark.parametrize("trace", SOME, ids=[trace["name"] for trace in SOME])
def test_through_the_public_api(trace: Trace):
    with vcnb.connect("memory://?runtime=simulated&clock=virtual", compat="strict") as cluster:
        mismatch = replay(trace, PublicCluster(cluster))  # type: ignore[arg-type]

    assert mismatch is None, f"\n{mismatch}"
