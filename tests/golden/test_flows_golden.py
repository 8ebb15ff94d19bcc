"""The flow controllers do what the recorded controllers did, in every trace (compat="strict")."""

from __future__ import annotations

import pytest

from golden.inprocess import InProcessCluster
from golden.replay import Trace, replay, traces

FLOW_TRACES = traces("flow-*.json")


@pytest.mark.parametrize("trace", FLOW_TRACES, ids=[trace["name"] for trace in FLOW_TRACES])
def test_flow_trace(trace: Trace):
    with InProcessCluster(compat="strict") as cluster:
        mismatch = replay(trace, cluster)

    assert mismatch is None, f"\n{mismatch}"


def test_all_recorded_flows_are_there():
    assert len(FLOW_TRACES) == 76
