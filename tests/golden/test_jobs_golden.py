"""The Job controller does what the recorded controller did, in every trace (compat="strict")."""

from __future__ import annotations

import pytest
from golden.inprocess import InProcessCluster
from golden.orders import FORCED
from golden.replay import Trace, replay, traces

JOB_TRACES = traces("job-*.json")


@pytest.mark.parametrize("trace", JOB_TRACES, ids=[trace["name"] for trace in JOB_TRACES])
def test_job_trace(trace: Trace):
    with InProcessCluster(compat="strict") as cluster:
        mismatch = replay(trace, cluster)

    assert mismatch is None, f"\n{mismatch}"


def test_every_forced_order_is_of_a_trace_and_says_why():
    names = {trace["name"] for trace in JOB_TRACES}

    assert set(FORCED) <= names
    assert all(forced.reason for steps in FORCED.values() for forced in steps)
