"""Jobs, pods and an API for the tests of the Job plugins."""

import asyncio
import base64
import itertools
from collections.abc import Awaitable
from typing import Any

from vcnb.controllers.job.plugins import KeyPair, PluginBehaviour, plugins_of
from vcnb.errors import AlreadyExists, Conflict, NotFound

STRICT = PluginBehaviour.strict()
DEFAULT = PluginBehaviour.default()
BOTH = [STRICT, DEFAULT]


def task(
    name: str, replicas: int = 1, *, containers: list | None = None, init: list | None = None, **spec: Any
) -> dict:
    containers = [{"name": "c", "image": "busybox"}] if containers is None else containers
    template = {"spec": {"restartPolicy": "Never", "containers": containers, **spec}}
    if init:
        template["spec"]["initContainers"] = init
    return {"name": name, "replicas": replicas, "template": template}


def job(name: str, *tasks: dict, plugins: dict | None = None, uid: str = "uid-1") -> dict:
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": "default", "uid": uid, "generation": 1},
        "spec": {"minAvailable": 1, "tasks": list(tasks), "plugins": plugins or {}},
    }


def bare_pod(owner: dict, task_name: str, index: int) -> dict:
    """A pod as the controller has built it before the plugins see it."""
    name = owner["metadata"]["name"]
    template = next(t for t in owner["spec"]["tasks"] if t["name"] == task_name)["template"]
    annotations = {**template.get("metadata", {}).get("annotations", {}), "volcano.sh/task-spec": task_name}
    labels = {"volcano.sh/task-index": str(index), "volcano.sh/task-spec": task_name}
    return {
        "metadata": {"name": f"{name}-{task_name}-{index}", "annotations": annotations, "labels": labels},
        "spec": dict(template["spec"]),
    }


def created(owner: dict, task_name: str, index: int = 0, behaviour: PluginBehaviour = DEFAULT) -> dict:
    """The pod after the hooks of all declared plugins."""
    pod = bare_pod(owner, task_name, index)
    for plugin in plugins_of(owner, behaviour):
        plugin.on_pod_create(pod, owner)
    return pod


def container(pod: dict, at: int = 0) -> dict:
    return pod["spec"]["containers"][at]


def env(pod: dict, at: int = 0) -> list[tuple[str, str | None]]:
    return [(entry["name"], entry.get("value")) for entry in container(pod, at).get("env", ())]


def variables(pod: dict, at: int = 0) -> dict[str, str | None]:
    return dict(env(pod, at))


class Api:
    """Objects in a dict, with uids, versions and preconditions; ``calls`` is what was asked of it."""

    def __init__(self) -> None:
        self.objects: dict[tuple[str, str], dict] = {}
        self.calls: list[tuple[str, str, str]] = []
        self._numbers = itertools.count(1)

    def _note(self, verb: str, kind: str, name: str) -> tuple[str, str]:
        self.calls.append((verb, kind, name))
        return kind, name

    async def get(self, kind: Any, name: str, namespace: str | None = None) -> dict:
        assert namespace == "default"
        key = self._note("get", kind.kind, name)
        if key not in self.objects:
            raise NotFound(f"{key} not found")
        return self.objects[key]

    async def create(self, obj: Any) -> dict:
        key = self._note("create", obj["kind"], obj["metadata"]["name"])
        assert obj["metadata"]["namespace"] == "default"
        if key in self.objects:
            raise AlreadyExists(f"{key} exists")
        number = next(self._numbers)
        metadata = {**obj["metadata"], "uid": f"object-{number}", "resourceVersion": str(number)}
        self.objects[key] = {**obj, "metadata": metadata}
        return self.objects[key]

    async def update(self, obj: Any) -> dict:
        key = self._note("update", obj["kind"], obj["metadata"]["name"])
        if obj["metadata"]["resourceVersion"] != self.objects[key]["metadata"]["resourceVersion"]:
            raise Conflict(f"{key} has changed")
        self.objects[key] = {**obj, "metadata": {**obj["metadata"], "resourceVersion": str(next(self._numbers))}}
        return self.objects[key]

    async def delete(self, kind: Any, name: str, namespace: str | None = None, *, uid: str | None = None) -> dict:
        key = self._note("delete", kind.kind, name)
        if key not in self.objects:
            raise NotFound(f"{key} not found")
        if uid is not None and uid != self.objects[key]["metadata"]["uid"]:
            raise Conflict(f"{key} is another one")
        return self.objects.pop(key)

    def there(self) -> list[tuple[str, str]]:
        return sorted(self.objects)

    def wrote(self) -> list[tuple[str, str, str]]:
        return [call for call in self.calls if call[0] != "get"]

    def data(self, kind: str, name: str) -> dict[str, str]:
        data = self.objects[kind, name]["data"]
        return {k: base64.b64decode(v).decode() for k, v in data.items()} if kind == "Secret" else data


class Keys:
    """Makes key pairs that cost nothing and are all different."""

    def __init__(self) -> None:
        self.made = 0

    async def __call__(self) -> KeyPair:
        self.made += 1
        return KeyPair(f"private-{self.made}", f"ssh-rsa public-{self.made}\n")


def run(awaitable: Awaitable[Any]) -> Any:
    async def main() -> Any:
        return await awaitable

    return asyncio.run(main())


def hook(
    which: str, owner: dict, controlled: dict, api: Api, behaviour: PluginBehaviour = DEFAULT, keys: Any = None
) -> None:
    """Call one hook of every declared plugin, in order."""

    async def main() -> None:
        for plugin in plugins_of(owner, behaviour, make_keys=keys or Keys()):
            await getattr(plugin, which)(owner, controlled, api)

    asyncio.run(main())


def added(owner: dict, behaviour: PluginBehaviour = DEFAULT, keys: Any = None) -> tuple[Api, dict[str, str]]:
    """The objects and the controlled resources after the first sync of a job."""
    api, controlled = Api(), {}
    hook("on_job_add", owner, controlled, api, behaviour, keys)
    return api, controlled
