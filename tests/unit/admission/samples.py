"""Small objects to judge, and a world to judge them in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from vcnb.admission import Review, Rules, review

POD = {"restartPolicy": "Never", "containers": [{"name": "c", "image": "busybox"}]}


class FakeWorld:
    """Queues default (Open) and root; whatever else a test puts in."""

    def __init__(self, *objects: Mapping[str, Any]) -> None:
        self.objects = [queue("root", state="Open"), queue("default", state="Open"), *objects]

    def _find(self, kind: str, name: str, namespace: str | None = None) -> Any:
        for obj in reversed(self.objects):
            meta = obj["metadata"]
            if (
                obj["kind"] == kind
                and meta["name"] == name
                and meta.get("namespace", "default") in {namespace, "default"}
            ):
                return obj
        return None

    def queue(self, name: str) -> Any:
        return self._find("Queue", name)

    def queues(self) -> list[Any]:
        return [obj for obj in self.objects if obj["kind"] == "Queue"]

    def namespace(self, name: str) -> Any:
        return self._find("Namespace", name)

    def template(self, namespace: str, name: str) -> Any:
        return self._find("JobTemplate", name, namespace)

    def priority_class(self, name: str) -> Any:
        return self._find("PriorityClass", name)


def pod(**fields: Any) -> dict[str, Any]:
    """A pod spec: one container with an image; fields replace."""
    return {**POD, **fields}


def container(**fields: Any) -> dict[str, Any]:
    return {"name": "c", "image": "busybox", **fields}


def task(name: str | None = "w", replicas: int | None = 2, **fields: Any) -> dict[str, Any]:
    """A task; None leaves a field out."""
    built = {"name": name, "replicas": replicas, "template": {"spec": POD}, **fields}
    return {key: value for key, value in built.items() if value is not None}


def job(*tasks: Any, name: str = "j", **spec: Any) -> dict[str, Any]:
    """A Job with one task ``w`` of two pods unless tasks are given."""
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {"tasks": list(tasks) or [task()], **spec},
    }


def queue(name: str = "q", *, state: str = "", pods: int = 0, annotations: Any = None, **spec: Any) -> dict[str, Any]:
    built: dict[str, Any] = {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Queue",
        "metadata": {"name": name},
        "spec": {"weight": 1, **spec},
    }
    if annotations:
        built["metadata"]["annotations"] = annotations
    status = {**({"state": state} if state else {}), **({"allocated": {"pods": pods}} if pods else {})}
    return {**built, "status": status} if status else built


def flow(*nodes: Any, name: str = "f", **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "flow.volcano.sh/v1alpha1",
        "kind": "JobFlow",
        "metadata": {"name": name},
        "spec": {"flows": list(nodes), **spec},
    }


def node(name: str, *targets: str, **fields: Any) -> dict[str, Any]:
    waits = {"dependsOn": {"targets": list(targets)}} if targets else {}
    return {"name": name, **waits, **fields}


def template(name: str, *tasks: Any, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "flow.volcano.sh/v1alpha1",
        "kind": "JobTemplate",
        "metadata": {"name": name},
        "spec": {"tasks": list(tasks) or [task()], **spec},
    }


def cronjob(schedule: str = "@hourly", name: str = "c", job_spec: Any = None, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "CronJob",
        "metadata": {"name": name},
        "spec": {"schedule": schedule, "jobTemplate": {"spec": job_spec or {"tasks": [task()]}}, **spec},
    }


def podgroup(**spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": "g"},
        "spec": {"minMember": 1, **spec},
    }


def create(obj: Any, *world: Any, strict: bool = True, rules: Rules | None = None) -> Review:
    return review("CREATE", obj, None, FakeWorld(*world), strict=strict, rules=rules or Rules())


def update(new: Any, old: Any, *world: Any, strict: bool = True) -> Review:
    return review("UPDATE", new, old, FakeWorld(*world), strict=strict)


def delete(old: Any, *world: Any, rules: Rules | None = None) -> Review:
    return review("DELETE", None, old, FakeWorld(old, *world), rules=rules or Rules())


def stored(obj: Any, *world: Any) -> dict[str, Any]:
    """The object as it is stored; it must be accepted."""
    answer = create(obj, *world)
    assert not answer.problems, answer.problems
    return dict(answer.object)


def paths(answer: Review) -> list[str]:
    return [problem.path for problem in answer.problems]


def only(answer: Review) -> tuple[str, str]:
    """Path and message of the one problem there is."""
    assert len(answer.problems) == 1, answer.problems
    return answer.problems[0].path, answer.problems[0].message


def warned(answer: Review) -> list[str]:
    assert not answer.problems, answer.problems
    return [problem.path for problem in answer.warnings]
