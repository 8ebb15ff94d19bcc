"""The same history on two clusters: the controllers of one are restarted and killed at will, those of the other never."""

from __future__ import annotations

import sys
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from golden import observe
from golden.compare import differences
from property import invariants
from property.histories import ACTIONS, PICK, SECONDS
from property.specs import NAMESPACE, jobs
from property.world import REPORTS, TOGETHER, World
from vcnb.controllers.job.events import is_preempted
from vcnb.controllers.job.status import phase_of
from vcnb.resources.names import OUT_OF_SYNC
from vcnb.testing import pod_status

Step = tuple[str, tuple[Any, ...]]

AT_ONCE: st.SearchStrategy[Step] = st.one_of(
    st.tuples(st.just("report"), st.tuples(st.sampled_from(REPORTS), PICK, st.integers(0, 3))),
    st.tuples(st.just("reap"), st.just(())),
    st.tuples(st.just("command"), st.tuples(st.sampled_from(ACTIONS))),
    st.tuples(st.just("scale"), st.tuples(st.integers(0, 2), st.integers(0, 4), st.integers(0, 1))),
    st.tuples(st.just("podgroup_becomes"), st.tuples(st.sampled_from(("Inqueue", "Running", "Unknown")))),
)
"""Steps that are one change, whatever the controllers make of it.

Of several changes that come while no controller looks, any may be answered first.
"""

STEPS: st.SearchStrategy[Step] = st.one_of(
    AT_ONCE,
    st.tuples(
        st.just("together"),
        st.tuples(st.lists(st.tuples(st.sampled_from(TOGETHER), PICK), min_size=2, max_size=4)),
    ),
    st.tuples(st.just("run_all"), st.just(())),
    st.tuples(st.just("wait"), st.tuples(SECONDS)),
)


class Twins(RuleBasedStateMachine):
    """After every step both clusters show the same."""

    def __init__(self) -> None:
        super().__init__()
        self.steady = World()
        self.tried = World()

    def teardown(self) -> None:
        try:
            if sys.exception() is None:
                for world in (self.steady, self.tried):
                    world.finish()
                self.show_the_same()
                invariants.check_versions(self.tried.stored)
        finally:
            for world in (self.steady, self.tried):
                world.close()

    @initialize(job=jobs())
    def submit(self, job):
        for world in (self.steady, self.tried):
            world.submit(job)

    @rule(step=STEPS)
    def both(self, step):
        """Something happens, and nothing goes wrong."""
        _take(self.steady, step)
        _take(self.tried, step)

    @rule(step=AT_ONCE, calls=st.integers(0, 5))
    def both_and_a_crash(self, step, calls):
        """Something happens, and in the midst of what the controllers make of it they die, and come again."""
        calls = calls if _can_be_told(self.steady, step) else _ALL
        _take(self.steady, step)
        self.tried.flaky.die_after(calls)
        _take(self.tried, step)
        self.tried.crash()

    @rule()
    def restart(self):
        self.tried.sim.restart_controllers()

    @invariant()
    def show_the_same(self):
        steady, tried = (_shown(world) for world in (self.steady, self.tried))
        found = differences(steady, tried)
        assert not found, "\n".join(map(str, found))


_ALL = 1_000_000


def _can_be_told(world: World, step: Step) -> bool:
    """Whether controllers that did not see a step can tell it from what it has left.

    That a pod is gone can be told, not that it was preempted. Of several that are, any may be answered first. A job that
    is neither Pending nor Running is asked for nothing that was lost.
    """
    name, arguments = step
    if name != "reap" and not (name == "report" and arguments[0] in {"delete", "evict", "preempt"}):
        return True
    if phase_of(world.job or {}) not in {"Pending", "Running"}:
        return False
    if name != "reap":
        return True
    going = [pod for pod in world.pods if pod_status.is_terminating(pod)]
    asked = [pod for pod in going if not _is_marked(pod)]
    return not asked or (len(going) == 1 and not is_preempted(asked[0]))


def _is_marked(pod: Any) -> bool:
    """Whether the controller removes the pod itself."""
    return OUT_OF_SYNC in (pod["metadata"].get("annotations") or {})


def _take(world: World, step: Step) -> None:
    name, arguments = step
    if name == "scale" and any(pod_status.phase_of(pod) == "Succeeded" for pod in world.pods):
        return  # a task that is complete because it became smaller reports so only when it is seen for the first time
    if name == "report" and arguments[0] == "pending" and not world.waits(*arguments[:2]):
        return  # no kubelet takes a pod that ran back to Pending, and since when it is so would be written nowhere
    getattr(world, name)(*arguments)


def _shown(world: World) -> dict[str, Any]:
    """What a person sees, but for how often a job was killed in order to get there.

    Controllers that die before they have removed the PodGroup of a restarted job keep it: it is admitted already, where
    a new one would be admitted again.
    """
    seen = observe.see(world.store, NAMESPACE)
    for group in seen["podgroups"].values():
        group.pop("phase", None)
    for pod in seen["pods"].values():
        pod.pop("version", None)
    return seen
