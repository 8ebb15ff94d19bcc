"""How a function, sweep or notebook runs as a job: options in, a Job out."""

from __future__ import annotations

import dataclasses
import difflib
import re
import secrets
import types
from collections.abc import Mapping, Sequence
from typing import Any, Self

from vcnb.client.functions.payload import LOADER, Packed
from vcnb.client.functions.wire import FUNCTION, NONCE, PAYLOAD, RUN
from vcnb.errors import VcnbError
from vcnb.resources.builders import Job, Policy, Task

__all__ = ["LOST", "RunOptions", "job_name"]

LOST = (137, 143)
"""Exit codes of a pod that was ended from outside: SIGKILL (memory ran out, somebody killed it) and SIGTERM (a drain)."""

_LETTERS = "bcdfghjklmnpqrstvwxz2456789"


@dataclasses.dataclass(frozen=True)
class RunOptions:
    """Options of ``cluster.function``, ``cluster.sweep`` and ``cluster.notebook``.

    ``replicas``: how many pods run one call of ``submit`` together, as a gang: all start together, and when one fails the
    others are stopped (default 1; a map or a sweep has one pod per item, each for itself).
    ``resources``: of each pod, e.g. ``{"cpu": 1, "memory": "2Gi"}``. ``image``: must have this Python version.
    ``retries``: how often a failed item is run again (default 0). A call that raises, crashes or takes too long is run
    again in its pod; a pod that is killed or evicted is replaced, and only that one, as long as the job has lost
    fewer than retries x items pods. A gang starts again as a whole.
    ``timeout``: seconds for one attempt (default: none). ``env``: environment variables. ``queue``, ``namespace``,
    ``priority_class``, ``ttl`` (seconds until a finished job, its results with it, is deleted), ``labels``,
    ``annotations``, ``plugins``, ``policies``, ``volumes``: as of a ``vcnb.Job``.
    ``name``: the job's name; default: one made up from the function's name. ``min_available``: so many pods must be able
    to start together (default: all replicas of a call, 1 of a map). ``modules``: modules whose code travels along;
    the function's own does anyway, unless it is installed. ``container`` and ``pod``: further fields of the container
    and of the pod's spec, by their JSON names.
    """

    replicas: int = 1
    resources: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    image: str | None = None
    queue: str | None = None
    retries: int = 0
    timeout: float | None = None
    env: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    name: str | None = None
    namespace: str | None = None
    min_available: int | None = None
    priority_class: str | None = None
    ttl: int | None = None
    labels: Mapping[str, str] = dataclasses.field(default_factory=dict)
    annotations: Mapping[str, str] = dataclasses.field(default_factory=dict)
    plugins: Mapping[str, Sequence[str]] | Sequence[str] = dataclasses.field(default_factory=dict)
    policies: Sequence[Policy | Mapping[str, Any]] = ()
    volumes: Sequence[Mapping[str, Any]] | Mapping[str, str] = ()
    modules: Sequence[types.ModuleType | str] = ()
    container: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    pod: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    def __post_init__(self) -> None:
        if not isinstance(self.replicas, int) or self.replicas < 1:
            raise VcnbError(f"replicas must be a whole number from 1, not {self.replicas!r}")
        if not isinstance(self.retries, int) or self.retries < 0:
            raise VcnbError(f"retries must be a whole number from 0, not {self.retries!r}")
        if self.timeout is not None and not (isinstance(self.timeout, (int, float)) and self.timeout > 0):
            raise VcnbError(f"timeout must be a number of seconds above 0, not {self.timeout!r}")

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Self:
        """Options by name. Raises VcnbError for an unknown one, with the nearest known."""
        return cls().replace(given)

    def replace(self, given: Mapping[str, Any]) -> Self:
        """These options with others in their place."""
        known = [field.name for field in dataclasses.fields(self)]
        for name in given:
            if name not in known:
                near = difflib.get_close_matches(name, known, n=1)
                hint = f"did you mean {near[0]!r}?" if near else "known: " + ", ".join(known)
                raise VcnbError(f"there is no option {name!r}; {hint}")
        return dataclasses.replace(self, **given)

    @property
    def gang(self) -> bool:
        """Whether a call runs in several pods that need each other."""
        return self.replicas > 1

    def job(self, kind: str, task: str, of: str, name: str, packed: Packed, secret: str, pods: int) -> Job:
        """The Job that runs a payload in so many pods. The same one on every cluster."""
        gang = kind == "call" and self.gang
        least = self.min_available or (pods if gang else 1)
        return Job(
            name=name,
            namespace=self.namespace,
            queue=self.queue,
            min_available=least,
            min_success=None if gang else pods,
            max_retry=self._max_retry(pods, gang=gang),
            policies=[*self.policies, *self._own_policies(gang=gang)],
            plugins=self._plugins(),
            volumes=self.volumes,
            priority_class_name=self.priority_class,
            ttl_seconds_after_finished=self.ttl,
            labels={**self.labels, RUN: kind},
            annotations={**self.annotations, RUN: kind, FUNCTION: of, NONCE: packed.nonce, PAYLOAD: secret},
            tasks=[
                Task(
                    name=task,
                    replicas=pods,
                    min_available=pods if gang else 1,
                    image=self.image,
                    command=["python", "-c", LOADER],
                    env={**self.env, **packed.env(secret)},
                    resources=self.resources,
                    container={"terminationMessagePolicy": "FallbackToLogsOnError", **self.container},
                    pod=self.pod,
                )
            ],
        )

    def _max_retry(self, pods: int, *, gang: bool) -> int | None:
        """Volcano fails a job as soon as it has been restarted ``maxRetry`` times, so one more than wanted."""
        if gang:
            return self.retries + 1
        return self.retries * pods + 1 if self.retries else None

    def _own_policies(self, *, gang: bool) -> list[Policy]:
        """A gang starts again as a whole; of a map only the lost pod is replaced (a call that fails is tried in its pod)."""
        taken = [policy.to_manifest() if isinstance(policy, Policy) else policy for policy in self.policies]
        if gang:
            events = {event for policy in taken for event in (policy.get("event"), *(policy.get("events") or ()))}
            return [] if "PodFailed" in events or "*" in events else [Policy(event="PodFailed", action="RestartJob")]
        codes = {policy.get("exitCode") for policy in taken}
        wanted = [code for code in LOST if code not in codes] if self.retries else []
        return [Policy(exit_code=code, action="RestartPod") for code in wanted]

    def _plugins(self) -> dict[str, Sequence[str]]:
        """``env`` is always on: it numbers the pods."""
        asked = dict(self.plugins) if isinstance(self.plugins, Mapping) else dict.fromkeys(self.plugins, ())
        return {"env": (), **asked}


def job_name(of: str) -> str:
    """A fresh name for a job that runs ``of``: ``train-x7k2p``."""
    base = re.sub(r"[^a-z0-9]+", "-", of.lower()).strip("-")[:40].strip("-")
    if not base or not base[0].isalpha():
        base = f"run-{base}".strip("-")
    return f"{base}-{''.join(secrets.choice(_LETTERS) for _ in range(5))}"
