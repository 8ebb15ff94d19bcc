"""Everything that the controllers write by default has its place in the definitions of ``vcnb crds``: nothing is pruned."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from golden.inprocess import InProcessCluster
from golden.replay import Player, Trace, traces
from scenario.flows.flow_scene import FLOW, FlowScene, node
from vcnb.controllers.flow.advance import RETRY
from vcnb.kube.crds import CUSTOM_KINDS, custom_resource_definition
from vcnb.resources.kinds import JOB, JOBFLOW

SCHEMAS = {
    kind: custom_resource_definition(kind)["spec"]["versions"][0]["schema"]["openAPIV3Schema"] for kind in CUSTOM_KINDS
}
SOME = [*traces("job-*.json")[::9], *traces("flow-cases.json")[::3]]


def pruned(schema: Mapping[str, Any], value: Any, path: str) -> Iterator[str]:
    """What a server would drop or refuse of a value."""
    if schema.get("x-kubernetes-preserve-unknown-fields"):
        return
    if "enum" in schema and value not in schema["enum"]:
        yield f"{path} is {value!r}"
    if isinstance(value, Mapping):
        fields, others = schema.get("properties", {}), schema.get("additionalProperties")
        for key, below in value.items():
            if key in fields:
                yield from pruned(fields[key], below, f"{path}.{key}")
            elif others is None:
                yield f"{path}.{key}"
            else:
                yield from pruned(others, below, f"{path}.{key}")
    elif isinstance(value, list):
        for item in value:
            yield from pruned(schema["items"], item, f"{path}[]")


def lost(store: Any) -> set[str]:
    """What a server would drop of all objects of a store."""
    return {
        f"{kind}{place}"
        for kind in CUSTOM_KINDS
        for obj in store.peek_all(kind)
        for field in ("spec", "status")
        for place in pruned(SCHEMAS[kind]["properties"].get(field, {}), obj.get(field) or {}, f".{field}")
    }


@pytest.mark.parametrize("trace", SOME, ids=[trace["name"] for trace in SOME])
def test_what_is_written_is_kept(trace: Trace) -> None:
    with InProcessCluster(compat="default") as cluster:
        player = Player(cluster)
        for step in trace["steps"]:
            player.play(step["do"])
            assert lost(cluster.store) == set()


def test_what_a_flow_that_decides_writes_is_kept() -> None:
    with FlowScene("default") as scene:
        scene.flow(
            node("a", retry={"limit": 1}),
            node("b<a", forEach={"items": [1, 2]}),
            node("c<b", when="params.go"),
            params={"go": True},
            activeDeadlineSeconds=600,
        )
        scene.fail("a")
        assert lost(scene.store) == set()
        scene.patch(JOBFLOW, FLOW, {"spec": {"suspend": True}})
        scene.wait(5)
        assert lost(scene.store) == set()
        scene.patch(JOBFLOW, FLOW, {"spec": {"suspend": False}})
        scene.wait(60)
        scene.fail("a-r1")
        scene.patch(JOBFLOW, FLOW, {"metadata": {"annotations": {RETRY: "1"}}})
        assert lost(scene.store) == set()

        assert {"nodes", "history", "handledRequests", "startTime"} <= set(scene.status)


def test_what_a_command_leaves_is_kept() -> None:
    trace = next(trace for trace in traces("job-commands.json") if trace["name"] == "command-running-AbortJob")
    with InProcessCluster(compat="default") as cluster:
        player = Player(cluster)
        for step in trace["steps"]:
            player.play(step["do"])
        (job,) = cluster.store.peek_all(JOB)

        assert {"executedCommands", "history", "lastSeen"} <= set(job["status"])
        assert lost(cluster.store) == set()
