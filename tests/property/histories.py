"""The steps of random histories, as a state machine of hypothesis."""

from __future__ import annotations

import sys

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from property import invariants
from property.specs import NAMESPACE, jobs
from property.world import REPORTS, TOGETHER, World
from vcnb.resources.kinds import PODGROUP

PICK = st.integers(0, 8)
SECONDS = st.sampled_from((0.01, 1.0, 10.0, 60.0, 300.0, 3600.0))
ACTIONS = ("AbortJob", "ResumeJob", "RestartJob", "TerminateJob", "CompleteJob")
VERBS = ("create", "delete", "patch", "update", "update_status")
ERRORS = ("Conflict", "ServerTimeout", "InternalError", "Forbidden")
KINDS = (None, "Pod", "Job", "PodGroup", "Command", "Service")


class History(RuleBasedStateMachine):
    """What may happen to one job; the cluster has come to rest after each step."""

    def __init__(self) -> None:
        super().__init__()
        self.world = World()

    def teardown(self) -> None:
        self.world.close()

    @initialize(job=jobs(), admits=st.integers(0, 5))
    def submit(self, job, admits):
        self.world.admits = admits > 0
        self.world.submit(job)

    @rule(verb=st.sampled_from(REPORTS), pick=PICK, option=st.integers(0, 3))
    def report(self, verb, pick, option):
        self.world.report(verb, pick, option)

    @rule(reports=st.lists(st.tuples(st.sampled_from(TOGETHER), PICK), min_size=2, max_size=4))
    def together(self, reports):
        self.world.together(reports)

    @rule()
    def run_all(self):
        self.world.run_all()

    @rule()
    def reap(self):
        self.world.reap()

    @rule(action=st.sampled_from(ACTIONS))
    def command(self, action):
        self.world.command(action)

    @rule(task=st.integers(0, 2), replicas=st.integers(0, 4), lower=st.integers(0, 1))
    def scale(self, task, replicas, lower):
        self.world.scale(task, replicas, lower)

    @rule(phase=st.sampled_from(("Inqueue", "Running", "Unknown", "Pending")))
    def podgroup(self, phase):
        self.world.podgroup_becomes(phase)

    @rule(seconds=SECONDS)
    def wait(self, seconds):
        self.world.wait(seconds)

    @precondition(lambda self: self.world.running)
    @rule()
    def crash(self):
        self.world.crash()


class TroubledHistory(History):
    """With faults, crashes between two writes, controllers that are away for a while, and deletions."""

    def __init__(self) -> None:
        super().__init__()
        self.at_ease = True
        """Whether the cluster had time enough to get over what went wrong."""

    def teardown(self) -> None:
        try:
            if sys.exception() is None:  # else a step has failed already
                self.world.finish()
                self.at_ease = True
                self.nothing_is_left_to_do()
                self.every_version_follows_from_the_one_before()
        finally:
            super().teardown()

    @rule(
        verb=st.sampled_from(VERBS),
        kind=st.sampled_from(KINDS),
        times=st.sampled_from((1, 1, 2, 5, 17)),
        skip=st.integers(0, 3),
        error=st.sampled_from(ERRORS),
    )
    def faults(self, verb, kind, times, skip, error):
        self.at_ease = False
        self.world.sim.fail_next(verb, kind, times, skip, error=error)

    @rule(times=st.integers(1, 3))
    def lost_answers(self, times):
        self.at_ease = False
        self.world.flaky.lose_answers(times)

    @rule(calls=st.integers(0, 6))
    def die_soon(self, calls):
        """The controllers die at one of their next writes; ``crash`` brings them back."""
        self.at_ease = False
        self.world.flaky.die_after(calls)

    @precondition(lambda self: self.world.running)
    @rule()
    def stop(self):
        self.at_ease = False
        self.world.sim.stop_controllers()

    @precondition(lambda self: not self.at_ease)
    @rule()
    def recover(self):
        self.world.recover()
        self.at_ease = True

    @rule()
    def delete_podgroup(self):
        self.world.delete_podgroup()

    @rule(job=jobs())
    def again(self, job):
        """The job is deleted, and perhaps another one of the same name comes while its pods are still there."""
        if self.world.job is not None:
            self.world.delete_job()
        else:
            self.world.submit(job)

    @invariant()
    def every_version_follows_from_the_one_before(self):
        self.world.check_calls()
        invariants.check_versions(self.world.stored)

    @invariant()
    def nothing_is_left_to_do(self):
        if self.at_ease and not self.world.flaky.troubled:
            groups = self.world.store.peek_all(PODGROUP, NAMESPACE)
            invariants.check_rest(self.world.job, self.world.pods, groups)
