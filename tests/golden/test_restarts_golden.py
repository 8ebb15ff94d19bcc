"""Level-triggered: controllers that are restarted after every step of a trace do what those do that stay up.

By default that holds for every phase, counter and pod; upstream loses timers and what happens meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from golden import observe
from golden.inprocess import InProcessCluster
from golden.replay import Player, Trace, traces

SOME = [
    *traces("job-policies.json"),
    *traces("job-retries.json"),
    *traces("job-timers.json"),
    *traces("job-random.json")[::5],
]


def _steps(trace: Trace, *, restart: bool) -> Iterator[dict[str, Any]]:
    with InProcessCluster(compat="default") as cluster:
        player = Player(cluster)
        for step in trace["steps"]:
            player.play(step["do"])
            if restart:
                cluster.simulator.restart_controllers()
            yield observe.see(cluster.store, cluster.namespace)


@pytest.mark.parametrize("trace", SOME, ids=[trace["name"] for trace in SOME])
def test_restarted_after_every_step(trace: Trace):
    for number, (up, restarted) in enumerate(
        zip(_steps(trace, restart=False), _steps(trace, restart=True), strict=True)
    ):
        assert restarted == up, f"step {number}: {trace['steps'][number]['do']}"
