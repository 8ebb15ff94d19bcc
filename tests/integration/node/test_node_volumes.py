"""Volumes and values from the store, as real containers see them."""

from __future__ import annotations

import base64

import pytest

from vcnb.resources.kinds import CONFIGMAP, NODE, PERSISTENTVOLUMECLAIM, POD, SECRET

pytestmark = pytest.mark.integration


def config_map(name, **data):
    return {
        "apiVersion": "v1",
        "kind": CONFIGMAP.kind,
        "metadata": {"name": name, "namespace": "default"},
        "data": data,
    }


def secret(name, **data):
    encoded = {key: base64.b64encode(value.encode()).decode() for key, value in data.items()}
    return {
        "apiVersion": "v1",
        "kind": SECRET.kind,
        "metadata": {"name": name, "namespace": "default"},
        "data": encoded,
    }


def told(node, name):
    """The pod, once its node has told something about its containers."""
    pod = node.store.peek(POD, name, "default")
    return pod if (pod.get("status") or {}).get("containerStatuses") else None


def mount(path, **more):
    return {"volumeMounts": [{"name": "v", "mountPath": path, **more}]}


def place(runtime, path="/vol"):
    """Where a container finds the volume v: at its mountPath, or in a variable."""
    return path if runtime == "sandbox" else '"$VCNB_MOUNT_V"'


def test_config_map_and_secret_volumes(run_node, runtime):
    async def scenario(node):
        await node.store.create(config_map("cm", a="1", b="2"))
        await node.store.create(secret("s", key="hidden"))
        at = place(runtime)
        show = f"cd {at}; for f in *; do echo $f $(cat $f) $(stat -c %a $f); done"
        volume = {"name": "v", "configMap": {"name": "cm"}}
        await node.run("a", "sh", "-c", show.replace("$(", "$$("), container=mount("/vol"), volumes=[volume])
        assert node.log("a") == "a 1 644\nb 2 644\n"
        volume = {"name": "v", "secret": {"secretName": "s", "items": [{"key": "key", "path": "k", "mode": 0o400}]}}
        await node.run("b", "sh", "-c", show, container=mount("/vol"), volumes=[volume])
        assert node.log("b") == "k hidden 400\n"

    run_node(scenario, runtime)


def test_a_config_map_volume_follows_its_object(run_node, runtime):
    async def scenario(node):
        await node.store.create(config_map("cm", hosts="one"))
        wait = f"while ! grep two {place(runtime)}/hosts; do sleep 0.02; done; ls {place(runtime)}"
        await node.create(
            "a", "sh", "-c", wait, container=mount("/vol"), volumes=[{"name": "v", "configMap": {"name": "cm"}}]
        )
        await node.phase("a", "Running")
        await node.store.patch(CONFIGMAP, "cm", "default", {"data": {"hosts": "one\ntwo", "more": "x"}})
        await node.phase("a", "Succeeded")
        assert node.log("a").startswith("two\n")

    run_node(scenario, runtime)


def test_a_pod_waits_for_its_config_map(run_node):
    async def scenario(node):
        volume = {"name": "v", "configMap": {"name": "cm"}}
        await node.create("a", "true", container=mount("/vol"), volumes=[volume])
        pod = await node.until(lambda: told(node, "a"))
        waiting = pod["status"]["containerStatuses"][0]["state"]["waiting"]
        assert waiting == {"reason": "ContainerCreating", "message": 'configmap "cm" not found'}
        await node.until(lambda: node.events("FailedMount"))
        await node.store.create(config_map("cm"))
        await node.phase("a", "Succeeded")

    run_node(scenario)


def test_a_container_waits_for_the_secret_of_its_environment(run_node):
    env = [{"name": "T", "valueFrom": {"secretKeyRef": {"name": "s", "key": "key"}}}]

    async def scenario(node):
        await node.create("a", "sh", "-c", "echo $T", container={"env": env})
        pod = await node.until(lambda: told(node, "a"))
        waiting = pod["status"]["containerStatuses"][0]["state"]["waiting"]
        assert waiting == {"reason": "CreateContainerConfigError", "message": 'secret "s" not found'}
        await node.store.create(secret("s", other="x"))
        await node.until(lambda: "find key" in str(node.store.peek(POD, "a", "default")["status"]["containerStatuses"]))
        await node.store.patch(SECRET, "s", "default", {"data": {"key": base64.b64encode(b"val").decode()}})
        await node.phase("a", "Succeeded")
        assert node.log("a") == "val\n"

    run_node(scenario)


def test_a_claim_is_bound_and_keeps_its_data(run_node, runtime):
    volumes = [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]

    async def scenario(node):
        await node.store.create(
            {
                "apiVersion": "v1",
                "kind": PERSISTENTVOLUMECLAIM.kind,
                "metadata": {"name": "data", "namespace": "default"},
                "spec": {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1Gi"}}},
            }
        )

        def bound():
            found = node.store.peek(PERSISTENTVOLUMECLAIM, "data", "default")
            return found if found["status"].get("phase") == "Bound" else None

        claim = await node.until(bound)
        assert claim["status"] == {
            "phase": "Bound",
            "accessModes": ["ReadWriteMany"],
            "capacity": {"storage": "1Gi"},
        }
        at = place(runtime)
        await node.run("a", "sh", "-c", f"echo kept >{at}/x", container=mount("/vol"), volumes=volumes)
        await node.store.delete(POD, "a", "default")
        await node.gone("a")
        await node.run("b", "sh", "-c", f"cat {at}/x", container=mount("/vol"), volumes=volumes)
        assert node.log("b") == "kept\n"
        await node.store.delete(PERSISTENTVOLUMECLAIM, "data", "default")
        await node.until(lambda: not list(node.root.glob("claims/*")))

    run_node(scenario, runtime)


def test_empty_dir_lives_as_long_as_the_pod(run_node, runtime):
    script = "echo x >>{at}/f; test $(wc -l <{at}/f) -ge 2"

    async def scenario(node):
        pod = await node.run(
            "a",
            "sh",
            "-c",
            script.format(at=place(runtime)),
            container=mount("/vol"),
            volumes=[{"name": "v", "emptyDir": {}}],
            restartPolicy="OnFailure",
        )
        assert pod["status"]["containerStatuses"][0]["restartCount"] == 1
        await node.store.delete(POD, "a", "default")
        await node.gone("a")
        await node.until(lambda: not list(node.root.glob("jobs/*/pods/*/volumes")))

    run_node(scenario, runtime)


def test_downward_api_and_host_path(run_node, runtime, tmp_path):
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared" / "f").write_text("from the host\n")

    async def scenario(node):
        items = [
            {"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}},
            {"path": "name", "fieldRef": {"fieldPath": "metadata.name"}},
        ]
        at = place(runtime)
        await node.run(
            "a",
            "sh",
            "-c",
            f"cat {at}/name {at}/labels",
            container=mount("/vol"),
            volumes=[{"name": "v", "downwardAPI": {"items": items}}],
            metadata={"labels": {"x": "y"}},
        )
        assert node.log("a") == 'ax="y"'
        volume = {"name": "v", "hostPath": {"path": str(tmp_path / "shared"), "type": "Directory"}}
        await node.run("b", "sh", "-c", f"cat {at}/f", container=mount("/vol"), volumes=[volume])
        assert node.log("b") == "from the host\n"

    run_node(scenario, runtime)


def test_values_of_fields_and_resources(run_node, runtime):
    def field(name, path):
        return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}}

    env = [
        field("NAME", "metadata.name"),
        field("IP", "status.podIP"),
        field("NODE", "spec.nodeName"),
        {"name": "CPU", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}},
        {"name": "ALL", "value": "$(NAME) on $(NODE) $$(NAME) $(NONE)"},
    ]

    async def scenario(node):
        container = {"env": env, "resources": {"limits": {"cpu": "1500m"}}}
        pod = await node.run("a", "echo", "$(ALL)", "$(IP)", "$(CPU)", container=container)
        assert node.log("a") == f"a on local $(NAME) $(NONE) {pod['status']['podIP']} 2\n"

    run_node(scenario, runtime)


def test_the_process_runtime_says_what_it_cannot_do(run_node):
    async def scenario(node):
        await node.run("a", "true", container=mount("/vol"), volumes=[{"name": "v", "emptyDir": {}}])
        (event,) = await node.until(lambda: node.events("NotMounted"))
        assert "nothing is mounted at /vol" in event["message"]
        assert "$VCNB_MOUNT_<VOLUME>" in event["message"]

    run_node(scenario)


def test_the_node_object(run_node, runtime):
    async def scenario(node):
        found = node.store.peek(NODE, "local")
        assert found["status"]["capacity"] == {"cpu": "4", "memory": "8Gi", "pods": "7"}
        assert found["status"]["allocatable"] == found["status"]["capacity"]
        assert found["status"]["conditions"][0]["type"] == "Ready"
        assert found["status"]["conditions"][0]["status"] == "True"
        assert {"type": "InternalIP", "address": "127.0.0.1"} in found["status"]["addresses"]
        assert found["metadata"]["annotations"]["vcnb/runtime"] == runtime
        assert node.agent.runtime_reason == "asked for"

    run_node(scenario, runtime, cpus=4, memory="8Gi", pods=7)
