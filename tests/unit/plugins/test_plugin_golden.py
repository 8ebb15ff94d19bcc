"""What the hooks write equals what the real controller wrote, in every recording of ``job-objects.json``."""

import base64
import json
from pathlib import Path

import pytest

from unit.plugins.plugin_cases import STRICT, Api, Keys, bare_pod, hook
from vcnb.controllers.job.plugins import plugins_of

RECORDINGS = Path(__file__).parents[2] / "golden" / "job-objects.json"
TRACES = {t["name"]: t for t in json.loads(RECORDINGS.read_text()) if t["name"].startswith("plugin-")}


def submitted(trace: dict) -> dict:
    (manifest,) = [step["do"][1] for step in trace["steps"] if step["do"][0] == "submit"]
    return {**manifest, "metadata": {**manifest["metadata"], "namespace": "<namespace>", "uid": "<uid:j>"}}


def first_detail(trace: dict) -> dict:
    """The first text of details that shows pods, when there is one."""
    shown = [step["detail"] for step in trace["steps"] if "detail" in step]
    return next((detail for detail in shown if any(key.startswith("Pod/") for key in detail)), shown[0])


class NamespacedApi(Api):
    """The recordings hide the namespace."""

    async def create(self, obj):
        made = await super().create({**obj, "metadata": {**obj["metadata"], "namespace": "default"}})
        assert obj["metadata"]["namespace"] == "<namespace>"
        return made

    async def get(self, kind, name, namespace=None):
        return await super().get(kind, name, "default")


def shown_container(container: dict) -> dict:
    """As the recordings show one: lists sorted, resources left out."""
    lists = {
        key: sorted(container[key], key=lambda entry: json.dumps(entry, sort_keys=True))
        for key in ("env", "ports", "volumeMounts")
        if container.get(key)
    }
    shown = {key: value for key, value in container.items() if key not in {"resources", *lists}}
    return {**shown, **lists}


def shown_pod(pod: dict) -> dict:
    spec = pod["spec"]
    return {
        "containers": [shown_container(container) for container in spec["containers"]],
        "initContainers": [shown_container(container) for container in spec.get("initContainers", ())],
        "hostname": spec.get("hostname"),
        "subdomain": spec.get("subdomain"),
        "volumes": sorted(spec.get("volumes", ()), key=lambda volume: volume["name"]),
        "rank": pod["metadata"]["annotations"].get("hccl/rankIndex"),
    }


def expected_pod(recorded: dict) -> dict:
    rank = recorded["annotations"].get("hccl/rankIndex")
    kept = {key: recorded[key] for key in ("containers", "initContainers", "hostname", "subdomain", "volumes")}
    kept["containers"] = [shown_container(container) for container in kept["containers"]]
    kept["initContainers"] = [shown_container(container) for container in kept["initContainers"]]
    kept["volumes"] = sorted(kept["volumes"], key=lambda volume: volume["name"])
    return {**kept, "rank": rank}


def shown_object(kind: str, obj: dict) -> dict:
    if kind == "ConfigMap":
        return obj["data"]
    if kind == "Secret":
        config = base64.b64decode(obj["data"]["config"]).decode()
        return {"keys": sorted(obj["data"]), "type": obj["type"], "plain": {"config": config}}
    if kind == "Service":
        # An address is given by the cluster where the Service asks for none.
        fields = ("ports", "publishNotReadyAddresses", "selector")
        return {
            **{field: obj["spec"].get(field) for field in fields},
            "clusterIP": obj["spec"].get("clusterIP", "<ip>"),
        }
    return obj["spec"]


@pytest.mark.parametrize("name", TRACES)
def test_pods_equal_the_recording(name):
    owner, recorded = submitted(TRACES[name]), first_detail(TRACES[name])
    pods = {key.removeprefix("Pod/"): pod for key, pod in recorded.items() if key.startswith("Pod/")}
    for spec in owner["spec"]["tasks"]:
        for index in range(spec["replicas"]):
            draft = bare_pod(owner, spec["name"], index)
            for plugin in plugins_of(owner, STRICT):
                plugin.on_pod_create(draft, owner)
            expected = pods.pop(draft["metadata"]["name"], None)
            assert expected is None or shown_pod(draft) == expected_pod(expected)
    assert not pods


@pytest.mark.parametrize("name", TRACES)
def test_objects_equal_the_recording(name):
    trace, recorded = TRACES[name], first_detail(TRACES[name])
    api, controlled = NamespacedApi(), {}
    hook("on_job_add", submitted(trace), controlled, api, STRICT, Keys())
    admitted = next(step["see"] for step in trace["steps"] if step["do"][0] == "admit_all")
    names = [(kind, name) for kind, names in admitted.get("others", {}).items() for name in names]
    assert api.there() == sorted(names)
    assert sorted(controlled) == sorted(admitted["jobs"]["j"].get("controlledResources", ()))
    for (kind, name_), obj in api.objects.items():
        if f"{kind}/{name_}" in recorded:
            assert shown_object(kind, obj) == recorded[f"{kind}/{name_}"]


def ended(trace: dict) -> bool:
    return trace["steps"][-1]["see"]["jobs"]["j"]["phase"] in {"Completed", "Aborted"}


@pytest.mark.parametrize("name", [name for name, trace in TRACES.items() if ended(trace)])
def test_objects_of_a_finished_job_are_gone_as_recorded(name):
    trace = TRACES[name]
    last = trace["steps"][-1]["see"]
    api, controlled = NamespacedApi(), {}
    hook("on_job_add", submitted(trace), controlled, api, STRICT, Keys())
    hook("on_job_delete", submitted(trace), controlled, api, STRICT, Keys())
    assert api.there() == []
    assert not last.get("others")
    assert sorted(controlled) == sorted(last["jobs"]["j"].get("controlledResources") or ())
