"""The state machine of queues, cell by cell (scheduling reference, section 11), and what a tally counts."""

from __future__ import annotations

import pytest

from vcnb.controllers.queue.states import next_state
from vcnb.controllers.queue.tally import Tally, as_resource_list, holding_of

DRAIN = ("Closed", "Closing")  # without and with PodGroups

TABLE = [
    ("Open", "OpenQueue", ("Open", "Open")),
    ("Open", "CloseQueue", DRAIN),
    ("Open", "SyncQueue", ("Open", "Open")),
    ("", "SyncQueue", ("Open", "Open")),
    ("", "CloseQueue", DRAIN),
    ("Closing", "OpenQueue", ("Open", "Open")),
    ("Closing", "CloseQueue", DRAIN),
    ("Closing", "SyncQueue", DRAIN),
    ("Closed", "OpenQueue", ("Open", "Open")),
    ("Closed", "CloseQueue", ("Closed", "Closed")),
    ("Closed", "SyncQueue", ("Closed", "Closed")),
    ("Unknown", "OpenQueue", ("Open", "Open")),
    ("Unknown", "CloseQueue", DRAIN),
    ("Unknown", "SyncQueue", ("Unknown", "Unknown")),
    ("Open", "FlyQueue", ("Open", "Open")),
]


@pytest.mark.parametrize(("state", "action", "after"), TABLE)
@pytest.mark.parametrize("groups", [False, True])
def test_next_state(state, action, after, groups):
    assert next_state(state, action, groups=groups) == after[groups]


def pod(name="a-w-0", node="n1", phase="Running", group="a", **meta):
    return {
        "metadata": {
            "name": name,
            "namespace": "ns",
            "annotations": {"scheduling.k8s.io/group-name": group} if group else {},
            **meta,
        },
        "spec": {
            **({"nodeName": node} if node else {}),
            "containers": [{"name": "c", "resources": {"requests": {"cpu": "500m"}, "limits": {"memory": "1Gi"}}}],
        },
        "status": {"phase": phase},
    }


def test_a_pod_with_a_node_holds_its_requests_and_one_place():
    tally = Tally()
    tally.put_group("ns/a", "q", "Running")

    tally.put_pod("ns/a-w-0", holding_of(pod()))
    tally.put_pod("ns/a-w-1", holding_of(pod("a-w-1")))

    assert as_resource_list(tally.held(["q"])) == {"cpu": "1", "memory": "2Gi", "pods": "2"}


@pytest.mark.parametrize(
    "gone",
    [
        pod(phase="Succeeded"),
        pod(phase="Failed"),
        pod(node=""),
        pod(group=""),
        pod(deletionTimestamp="2026-01-01T00:00:00Z"),
    ],
    ids=["succeeded", "failed", "no node", "no group", "terminating"],
)
def test_a_pod_that_does_not_run_holds_nothing(gone):
    tally = Tally()
    tally.put_group("ns/a", "q", "Running")
    tally.put_pod("ns/a-w-0", holding_of(pod()))

    tally.put_pod("ns/a-w-0", holding_of(gone, tally.holding("ns/a-w-0")))

    assert tally.held(["q"]) == {}


def test_pods_may_be_seen_before_their_group_and_a_group_may_move():
    tally = Tally()
    tally.put_pod("ns/a-w-0", holding_of(pod()))
    assert tally.held(["q"]) == {}

    tally.put_group("ns/a", "q", "")
    assert tally.phases("q") == {"Pending": 1}
    assert tally.held(["q"])

    tally.put_group("ns/a", "r", "Inqueue")
    assert not tally.has_groups("q")
    assert tally.held(["q"]) == {}
    assert tally.phases("r") == {"Inqueue": 1}
    assert tally.held(["r"])

    tally.drop_group("ns/a")
    tally.put_pod("ns/a-w-0", None)
    assert not tally.has_groups("r")
    assert tally.held(["r"]) == {}
    assert not tally._groups
