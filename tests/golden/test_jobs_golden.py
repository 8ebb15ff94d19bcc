"""The Job controller does what the recorded controller did, in every trace (compat="strict")."""

from __future__ import annotations

import pytest

from golden import observe
from golden.compare import difference_at
from golden.inprocess import InProcessCluster
from golden.orders import FORCED
from golden.replay import Player, Trace, replay, traces

JOB_TRACES = traces("job-*.json")


@pytest.mark.parametrize("trace", JOB_TRACES, ids=[trace["name"] for trace in JOB_TRACES])
def test_job_trace(trace: Trace):
    with InProcessCluster(compat="strict") as cluster:
        mismatch = replay(trace, cluster)

    assert mismatch is None, f"\n{mismatch}"


@pytest.mark.parametrize("name", list(FORCED))
def test_the_order_of_the_recording(name: str):
    trace = next(trace for trace in JOB_TRACES if trace["name"] == name)

    with InProcessCluster(compat="strict") as cluster:
        mismatch = replay(trace, cluster, FORCED[name])

    assert mismatch is None, f"\n{FORCED[name].reason}\n{mismatch}"


@pytest.mark.parametrize("name", list(FORCED))
def test_the_usual_order_shows_something_else_there(name: str):
    trace = next(trace for trace in JOB_TRACES if trace["name"] == name)
    forced = FORCED[name]

    with InProcessCluster(compat="strict") as cluster:
        player = Player(cluster)
        for step in trace["steps"][: forced.shown_at + 1]:
            player.play(step["do"])
        seen = observe.see(cluster.store, cluster.namespace)

    assert difference_at(forced.path, forced.usual, seen) == []
