"""A job and its surroundings, read once from a snapshot: counts, pods of tasks, actions, warnings."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from vcnb.resources.phases import JobAction, PodPhase
from vcnb.resources.views import EventView, JobView, PodGroupView, PodView, PolicyView, QueueView, TaskView
from vcnb.scene.snapshot import JobSnapshot
from vcnb.scene.words import seconds_of, span

__all__ = ["Action", "Case"]

_STARTED = re.compile(r"Start to execute action (?P<action>\w+)")
_DELAYED = re.compile(r"Execute action (?P<action>\w+) after (?P<delay>\S+)")
_GIVEN_UP = re.compile(r"failed on action (?P<action>\w+) for retry limit reached")
_COMMAND = re.compile(r"Start to execute command (?P<action>\w+)")
_BEHIND = "others go first"
"""The scheduler's code for jobs that are admitted before this one."""
_SAME_MOMENT = 2.0
"""Seconds within which a Command and the action that it asked for are reported."""


@dataclass(frozen=True)
class Action:
    """Something that was done to the job, from its events. ``delay`` is Go's text of a duration, empty for at once."""

    name: str
    time: float
    command: bool = False
    given_up: bool = False
    delay: str = ""


class Case:
    """The snapshot of one job, read for an explanation."""

    def __init__(self, snapshot: JobSnapshot) -> None:
        self.snapshot = snapshot
        self.now = snapshot.now
        self.job = JobView(snapshot.job)
        self.pods = [PodView(pod) for pod in snapshot.pods]
        self.group = PodGroupView(snapshot.podgroup) if snapshot.podgroup is not None else None
        self.queue = QueueView(snapshot.queue) if snapshot.queue is not None else None

    # -- the job -----------------------------------------------------------------------------------------------------

    @property
    def name(self) -> str:
        """As an answer names it: ``Job train``."""
        return f"Job {self.job.name}"

    @property
    def phase(self) -> str:
        """``status.state.phase`` as it is written, also one that is not known."""
        return str((self.job.status.get("state") or {}).get("phase") or "")

    @cached_property
    def tasks(self) -> tuple[TaskView, ...]:
        """The tasks of the spec."""
        return tuple(self.job.tasks)

    @cached_property
    def replicas(self) -> int:
        """Pods of all tasks."""
        return sum(task.replicas for task in self.tasks)

    @property
    def min_available(self) -> int:
        """The gang's size."""
        return self.job.min_available

    @property
    def retries(self) -> int:
        """``status.retryCount``."""
        return int(self.job.status.get("retryCount") or 0)

    @property
    def max_retry(self) -> int:
        """``spec.maxRetry``, 3 when it is not given."""
        return self.job.max_retry or 3

    def count(self, field: str) -> int:
        """How many pods are pending, running, succeeded, failed or terminating.

        Counted among the pods that are there: Volcano writes zeros when it kills a job. Finished pods that somebody has
        removed since still count.
        """
        stored = int(self.job.status.get(field) or 0)
        seen = self._seen.get(field, 0)
        return max(stored, seen) if not self.pods or field in {"succeeded", "failed"} else seen

    @cached_property
    def _seen(self) -> dict[str, int]:
        seen: dict[str, int] = {}
        for pod in self.pods:
            field = "terminating" if pod.terminating else pod.phase.value.lower()
            seen[field] = seen.get(field, 0) + 1
        return seen

    def entered(self) -> float | None:
        """When the present phase began, in seconds since the epoch."""
        for entry in reversed(self.job.status.get("history") or ()):
            if entry.get("phase") == self.phase:
                return seconds_of(entry.get("time"))
        return seconds_of((self.job.status.get("state") or {}).get("lastTransitionTime"))

    def lasting(self) -> str:
        """How long the job has been in its phase (since its creation when it has none); "" for less than a second."""
        since = self.entered() if self.phase else self.job.created
        return span(self.now - since) if since is not None and self.now - since >= 1 else ""

    # -- pods --------------------------------------------------------------------------------------------------------

    def task(self, name: str) -> TaskView | None:
        """The task of that name."""
        return next((task for task in self.tasks if task.name == name), None)

    def pods_of(self, task: str) -> list[PodView]:
        """The task's pods, by index."""
        return [pod for pod in self.pods if pod.task == task]

    @cached_property
    def live(self) -> list[PodView]:
        """Pods that are not being removed and have not finished."""
        return [pod for pod in self.pods if not pod.terminating and not pod.finished]

    @cached_property
    def unbound(self) -> list[PodView]:
        """Live pods without a node."""
        return [pod for pod in self.live if not pod.node_name]

    @cached_property
    def preparing(self) -> list[PodView]:
        """Live pods that have a node and do not run yet."""
        return [pod for pod in self.live if pod.node_name and pod.phase != PodPhase.RUNNING]

    @cached_property
    def started(self) -> int:
        """Pods that run or have finished: what minAvailable is compared with."""
        return self.count("running") + self.count("succeeded") + self.count("failed")

    # -- events ------------------------------------------------------------------------------------------------------

    @cached_property
    def events(self) -> list[EventView]:
        """Events about the job itself, oldest first; not those of an earlier job of the same name."""

        def mine(about: Mapping[str, Any]) -> bool:
            same = about.get("kind") == "Job" and about.get("name") == self.job.name
            return same and about.get("uid", self.job.uid) in (self.job.uid, "")

        return self._about(mine)

    @cached_property
    def group_events(self) -> list[EventView]:
        """Events about the job's PodGroup, oldest first."""
        name = f"{self.job.name}-{self.job.uid}"
        return self._about(lambda about: about.get("kind") == "PodGroup" and about.get("name") == name)

    @cached_property
    def pod_events(self) -> dict[str, list[EventView]]:
        """Events about pods that the job's tasks can have, by pod name; also of pods that are gone."""
        mine = re.compile(
            "|".join(re.escape(f"{self.job.name}-{task.name}-") + "[0-9]+" for task in self.tasks) or "(?!)"
        )
        found: dict[str, list[EventView]] = {}
        for event in self._about(
            lambda about: about.get("kind") == "Pod" and bool(mine.fullmatch(about.get("name", "")))
        ):
            found.setdefault(str(event.involved["name"]), []).append(event)
        return found

    def _about(self, matches: Callable[[Mapping[str, Any]], bool]) -> list[EventView]:
        about = [event for event in map(EventView, self.snapshot.events) if matches(event.involved)]
        return sorted(about, key=lambda event: event.last or 0.0)

    def warning(self, *reasons: str) -> EventView | None:
        """The newest warning about the job with one of these reasons."""
        found = (event for event in reversed(self.events) if event.type == "Warning" and event.reason in reasons)
        return next(found, None)

    @cached_property
    def actions(self) -> list[Action]:
        """What was done to the job, oldest first; Commands that led to one are told from policies."""
        commands = self._matches(_COMMAND)
        done = [
            Action(
                name, time, command=any(name == other and abs(time - at) <= _SAME_MOMENT for other, at, _ in commands)
            )
            for name, time, _ in self._matches(_STARTED)
        ]
        done += [Action(name, time, given_up=True) for name, time, _ in self._matches(_GIVEN_UP)]
        done += [Action(name, time, delay=match["delay"]) for name, time, match in self._matches(_DELAYED)]
        return sorted(done, key=lambda action: action.time)

    def _matches(self, pattern: re.Pattern[str]) -> list[tuple[str, float, re.Match[str]]]:
        found = [(event, pattern.search(event.message)) for event in self.events]
        return [(match["action"], event.last or 0.0, match) for event, match in found if match]

    def last_action(self, *names: JobAction) -> Action | None:
        """The newest action that was started (or given up), of these names or of any."""
        return next(
            (action for action in reversed(self.actions) if not action.delay and (not names or action.name in names)),
            None,
        )

    # -- policies ----------------------------------------------------------------------------------------------------

    def policy(self, event: str, exit_code: int, task: str) -> tuple[PolicyView, str] | None:
        """The policy that answers an event of a pod, and whose it is (``task worker`` or ``the job``)."""
        found = self.task(task)
        scopes: list[tuple[Sequence[PolicyView], str]] = [(found.policies, f"task {task}")] if found else []
        scopes.append((tuple(PolicyView(policy) for policy in self.job.spec.get("policies") or ()), "the job"))
        for policies, whose in scopes:
            for policy in policies:
                by_event = event in policy.events or "*" in policy.events
                if by_event or (policy.exit_code is not None and policy.exit_code == exit_code):
                    return policy, whose
        return None

    # -- the scheduler's facts ---------------------------------------------------------------------------------------

    @cached_property
    def scheduler_facts(self) -> list[str]:
        """What the scheduler says of the group that waits, as sentences."""
        return [_fact_text(fact) for fact in self.snapshot.facts]

    @property
    def never(self) -> str:
        """The scheduler's fact that waiting cannot help, or ""."""
        return next((_fact_text(fact) for fact in self.snapshot.facts if getattr(fact, "never", False)), "")

    @property
    def rivals(self) -> list[str]:
        """Names of jobs that hold the room, the largest first; not those that only stand before this one in the line."""
        facts = [fact for fact in self.snapshot.facts if str(getattr(fact, "code", "")) != _BEHIND]
        return list(dict.fromkeys(name for fact in facts for name in getattr(fact, "jobs", ())))


def _fact_text(fact: Any) -> str:
    return str(getattr(fact, "text", fact)).removeprefix("Unschedulable: never. ")
