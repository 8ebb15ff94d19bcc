"""Random flows: whatever happens to them, they end, in order, and never change their mind.

Graphs of up to 60 nodes with conditions, switches, forEach, loops, retries, statuses to wait for and time limits; jobs
end well or badly, are paused and removed; the controller starts again in between.
"""

from __future__ import annotations

import os
import random
from collections.abc import Mapping
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from unit.flow.flow_model import ENDED, FlowModel, flow_of
from vcnb.clock import parse_time

TERMINAL = {"Succeeded", "Failed", "TimedOut", "Skipped", "Omitted", "Cancelled"}
FAILED = {"Failed", "TimedOut"}
STATUSES = ("Succeeded", "Completed", "Failed", "Skipped", "Omitted", "Aborted", "Running", "Finished")
EXAMPLES = int(os.environ.get("VCNB_PROPERTY_EXAMPLES", "60"))
"""The quick profile; a long run sets the variable."""


def a_flow(rng: random.Random, size: int) -> dict[str, Any]:
    nodes = [a_node(rng, number) for number in range(size)]
    for entry in nodes:
        if "switch" in entry:
            _choose_among_followers(rng, entry, nodes)
    spec: dict[str, Any] = {"failurePolicy": rng.choice(["FailFast", "Continue"])}
    if rng.randint(0, 3) == 0:
        spec["maxParallel"] = rng.randint(1, 4)
    if rng.randint(0, 9) == 0:
        spec["activeDeadlineSeconds"] = rng.randint(1, 500)
    return flow_of(*nodes, **spec)


def a_node(rng: random.Random, number: int) -> dict[str, Any]:
    entry: dict[str, Any] = {"name": f"n{number}", "templateRef": "t"}
    earlier = rng.sample(range(number), rng.randint(0, min(4, number)))
    plain, with_status = [], []
    for target in earlier:
        if rng.randint(0, 3):
            plain.append(f"n{target}")
        else:
            phases = rng.sample(STATUSES, rng.randint(1, 2))
            with_status.append({"name": f"n{target}", "phases": phases})
    depends: dict[str, Any] = {"targets": plain} if plain else {}
    if with_status:
        depends["targetsWithStatus"] = with_status
    if earlier and rng.randint(0, 3) == 0:
        depends["strategy"] = "any"
    if earlier and rng.randint(0, 4) == 0:
        depends |= {"timeoutSeconds": rng.randint(1, 60), "onTimeout": rng.choice(["Fail", "Skip", "Run"])}
    if depends:
        entry["dependsOn"] = depends
    conditions = [None] * 6 + ["true", "false", "1"]
    if earlier:
        conditions += [f'flows["n{earlier[0]}"].phase == "Succeeded"', f'flows["n{earlier[0]}"].durationSeconds < 7.0']
    if (when := rng.choice(conditions)) is not None:
        entry["when"] = when
    if rng.randint(0, 4) == 0:
        entry["allowFailure"] = True
    kind = rng.choice(["job"] * 6 + ["switch", "forEach", "loop"])
    if kind == "switch":
        entry.pop("templateRef")
        return {**entry, "switch": {}}
    if kind == "forEach":
        loop: dict[str, Any] = {"range": {"end": rng.randint(0, 4)}, "tolerateFailures": rng.randint(0, 2)}
        loop["onFailure"] = rng.choice(["Leave", "Terminate"])
        entry["forEach"] = loop | ({"maxParallel": 2} if rng.random() < 0.5 else {})
    elif kind == "loop":
        until = rng.choice(["iteration == 1", "true", "false", "self.phase == 'Succeeded'"])
        entry["loop"] = {"until": until, "maxIterations": 3, "delaySeconds": rng.randint(0, 5)}
        entry["loop"]["continueOnFailure"] = rng.random() < 0.5
    if rng.randint(0, 2) == 0:
        entry["retry"] = {"limit": rng.randint(0, 2), "backoff": {"seconds": rng.randint(0, 20)}}
    return entry


def _choose_among_followers(rng: random.Random, entry: dict[str, Any], nodes: list[dict[str, Any]]) -> None:
    name = entry["name"]
    followers = [node["name"] for node in nodes if name in (node.get("dependsOn") or {}).get("targets", ())]
    cut = rng.randint(0, len(followers))
    entry["switch"] = {
        "on": rng.choice(["1", "2", "3", "1/0"]),
        "cases": [{"value": 1, "next": followers[:cut]}, {"value": 2, "next": followers[cut:]}],
        "noMatch": rng.choice(["Fail", "Skip"]),
    }


# What must hold


class Watched:
    """A model with the rules checked after every pass, by a reading of them that shares nothing with the controller."""

    def __init__(self, flow: dict[str, Any]) -> None:
        self.model = FlowModel(flow)
        self.spec: dict[str, Mapping[str, Any]] = {node["name"]: node for node in flow["spec"]["flows"]}
        self.decided: dict[tuple[str, str], Any] = {}
        self.ran: set[str] = set()

    def settle(self) -> None:
        model = self.model
        for _ in range(1000):
            before = dict(model.nodes)
            decision = model.step()
            self.check(before)
            if not (decision.again or model.changed):
                break
        else:
            raise AssertionError("the flow does not come to rest")
        anew = model.decide_anew()
        assert anew.status is None, "a controller that starts now would write something else"
        assert not anew.create

    def check(self, before: Mapping[str, Mapping[str, Any]]) -> None:
        for name, entry in self.model.nodes.items():
            old = before.get(name, {"phase": "Waiting"})
            if old["phase"] in TERMINAL:
                assert entry["phase"] == old["phase"], f"{name} was {old['phase']} and is {entry['phase']}"
            for decision in ("condition", "selected", "next", "items", "depsWaitStartedAt", "startTime"):
                if decision in old:
                    assert entry.get(decision) == old[decision], f"{name} has changed {decision}"
            if entry.get("startTime") and not old.get("startTime"):
                assert self.may_start(name, entry), f"{name} has started too early: {entry}"
        assert self.model.phase == self.expected_phase()
        self.check_parallel()

    def may_start(self, name: str, entry: Mapping[str, Any]) -> bool:
        """Whether the dependencies of a node are met (or its time limit lets it run)."""
        depends = self.spec[name].get("dependsOn") or {}
        met = [self.plain(target, depends) for target in depends.get("targets", ())]
        met += [self.with_status(each["name"], each["phases"]) for each in depends.get("targetsWithStatus", ())]
        if not met or all(met) or (depends.get("strategy") == "any" and any(met)):
            return True
        since = self.model.nodes[name].get("depsWaitStartedAt")
        over = since is not None and self.model.now >= parse_time(since) + depends["timeoutSeconds"] - 1e-6
        return over and depends.get("onTimeout") == "Run"

    def plain(self, target: str, depends: Mapping[str, Any]) -> bool:
        phase = self.model.nodes[target]["phase"]
        if phase == "Succeeded" or (phase in FAILED and self.spec[target].get("allowFailure")):
            return True
        return phase == "Skipped" and depends.get("strategy") != "any"

    def with_status(self, target: str, wanted: list[str]) -> bool:
        entry = self.model.nodes[target]
        phase = entry["phase"]
        holds = {
            "Succeeded": phase == "Succeeded",
            "Completed": phase == "Succeeded",
            "Failed": phase in FAILED,
            "Skipped": phase == "Skipped",
            "Omitted": phase == "Omitted",
            "Finished": phase in TERMINAL,
            "Running": bool(entry.get("ran")),
            "Aborted": bool(entry.get("paused")),
        }
        return any(holds[each] for each in wanted)

    def handled(self, name: str) -> bool:
        if self.spec[name].get("allowFailure"):
            return True
        waits = [
            each for node in self.spec.values() for each in (node.get("dependsOn") or {}).get("targetsWithStatus", ())
        ]
        return any(each["name"] == name and {"Failed", "Finished"} & set(each["phases"]) for each in waits)

    def expected_phase(self) -> str:
        model, nodes = self.model, self.model.nodes
        if not nodes:
            return "Succeed"
        over = all(entry["phase"] in TERMINAL for entry in nodes.values())
        bad = [n for n, entry in nodes.items() if entry["phase"] in FAILED and not self.handled(n)]
        if (model.status.get("state") or {}).get("reason") == "DeadlineExceeded":
            return "Failed"
        if bad and (over or model.flow["spec"]["failurePolicy"] == "FailFast"):
            return "Failed"
        if over:
            # On its way from nothing to its end a flow shows itself Running for one pass.
            return "Running" if model.decisions[-1].again else "Succeed"
        begun = any(entry["phase"] != "Waiting" for entry in nodes.values())
        if not self.model.progress.spec.extended:  # type: ignore[union-attr]
            begun = (
                bool(model.status.get("runningJobs") or model.status.get("completedJobs")) or model.phase == "Running"
            )
        return "Running" if begun else "Pending"

    def check_parallel(self) -> None:
        limit = self.model.flow["spec"].get("maxParallel")
        closed = self.model.phase == "Failed"
        assert limit is None or closed or len(self.model.active) <= limit, f"{self.model.active} of {limit}"


def act(rng: random.Random, watched: Watched) -> None:
    """Something happens."""
    model = watched.model
    active = sorted(model.active)
    finished = sorted(name for name, job in model.jobs.items() if name not in active)
    kinds = (
        ["restart", "time"]
        + ["move"] * 8 * bool(active)
        + ["remove finished"] * bool(finished)
        + ["remove"] * bool(active)
    )
    kind = rng.choice(kinds)
    if kind == "restart":
        model.restart()
    elif kind == "time":
        model.now += rng.choice([0.5, 3.0, 20.0, 100.0])
    elif kind == "remove":
        model.remove(rng.choice(active))
    elif kind == "remove finished":
        model.remove(rng.choice(finished))
    else:
        for name in rng.sample(active, rng.randint(1, min(3, len(active)))):
            phase = rng.choice(["Pending", "Running", "Aborted", "Completed", "Completed", "Failed", "Terminated"])
            model.move(name, phase, code=0 if phase == "Completed" else 1 if phase in ENDED else None)
        if rng.random() < 0.2:
            model.restart()  # before anybody has looked


@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
@given(size=st.integers(1, 60), events=st.integers(0, 40), seed=st.integers(0, 2**32 - 1))
def test_a_flow_ends_in_order_and_never_changes_its_mind(size: int, events: int, seed: int):
    rng = random.Random(seed)
    watched = Watched(a_flow(rng, size))
    watched.settle()
    for _ in range(events):
        act(rng, watched)
        watched.settle()
    drain(rng, watched)


def drain(rng: random.Random, watched: Watched) -> None:
    """Everything that runs ends, and time passes, until the flow is over."""
    model = watched.model
    for _ in range(2000):
        if all(phase in TERMINAL for phase in model.phases.values()):
            break
        for name in sorted(model.active):
            good = rng.random() < 0.8
            model.move(name, "Completed" if good else "Failed", code=0 if good else 1)
        if not model.changed:
            assert model.wake_at is not None, f"the flow waits for nothing: {model.phases}"
            model.now = max(model.now, model.wake_at)
        watched.settle()
    assert all(phase in TERMINAL for phase in model.phases.values())
    assert model.phase in {"Succeed", "Failed"}
    for name in model.active:
        model.move(name, "Completed")
    watched.settle()
