"""Volumes of jobs on the embedded cluster: mountPath, emptyDir, configMap, secret, claims."""

from __future__ import annotations

from pathlib import Path

import pytest

import vcnb
from integration.plugins.plugin_jobs import sh, until

pytestmark = [pytest.mark.integration, pytest.mark.timeout(90)]


def mounted(name: str, source: dict, script: str, path: str = "/data", **more) -> vcnb.Task:
    pod = {"volumes": [{"name": "v", **source}], **more.pop("pod", {})}
    return sh(name, script, container={"volumeMounts": [{"name": "v", "mountPath": path}]}, pod=pod, **more)


def test_an_empty_dir_is_shared_by_the_containers_of_a_pod_and_by_nobody_else(run):
    mount = {"volumeMounts": [{"name": "v", "mountPath": "/data"}]}
    init = [
        {
            "name": "i",
            "image": "debian",
            "command": ["sh", "-c", 'test -z "$(ls /data)"; echo $HOSTNAME >>/data/x'],
            **mount,
        }
    ]
    task = mounted("w", {"emptyDir": {}}, "cat /data/x", replicas=2, pod={"initContainers": init})

    handle = run(vcnb.Job(name="empty", tasks=[task]))

    assert handle.logs() == "".join(f"empty-w-{n} | empty-w-{n}\n" for n in range(2))


def test_a_config_map_is_files_that_follow_its_changes(cluster):
    settings = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}, "data": {"lr": "0.1"}}
    cluster.submit(settings)
    watch = 'last=; while true; do now=$(cat /etc/settings/lr); [ "$now" = "$last" ] || echo $now; last=$now; sleep 0.05; done'
    handle = cluster.submit(
        vcnb.Job(name="cm", tasks=[mounted("w", {"configMap": {"name": "settings"}}, watch, path="/etc/settings")])
    )
    until(lambda: handle.logs() == "0.1\n", "the first value")

    cluster.apply({**settings, "data": {"lr": "0.2"}})

    until(lambda: handle.logs() == "0.1\n0.2\n", "the second value")


def test_modes_of_secrets_are_those_that_are_asked_for(run, cluster):
    cluster.submit(
        {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "stringData": {"a": "x", "b": "y"}}
    )
    items = [{"key": "a", "path": "sub/a", "mode": 0o400}, {"key": "b", "path": "b"}]
    source = {"secret": {"secretName": "s", "defaultMode": 0o640, "items": items}}
    script = "cd /secret; stat -L -c '%n %a' sub/a b; cat sub/a b"

    handle = run(vcnb.Job(name="modes", tasks=[mounted("w", source, script, path="/secret")]))

    assert handle.logs() == "sub/a 400\nb 640\nxy"


def test_a_claim_that_the_job_makes_is_shared_by_its_pods_and_kept_while_it_is_there(cluster):
    volumes = [
        {
            "mountPath": "/shared",
            "volumeClaim": {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1Gi"}}},
        }
    ]
    write = sh("writer", "echo from $HOSTNAME >/shared/note.tmp && mv /shared/note.tmp /shared/note")
    read = sh("reader", "until [ -e /shared/note ]; do sleep 0.05; done; cat /shared/note", replicas=2)
    handle = cluster.submit(vcnb.Job(name="pvc", tasks=[write, read], volumes=volumes))

    handle.wait(timeout=30)

    assert handle.logs("reader") == "".join(f"pvc-reader-{n} | from pvc-writer-0\n" for n in range(2))
    assert len(cluster.persistentvolumeclaims) == 1
    handle.delete()
    until(lambda: len(cluster.persistentvolumeclaims) == 0, "the job's own claim to go with it")


def test_a_claim_of_the_users_own_outlives_jobs(run, cluster):
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "models"},
        "spec": {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1Gi"}}},
    }
    cluster.submit(claim)
    volumes = [{"mountPath": "/models", "volumeClaimName": "models"}]

    run(vcnb.Job(name="save", tasks=[sh("w", "echo weights >/models/m")], volumes=volumes)).delete()
    handle = run(vcnb.Job(name="load", tasks=[sh("w", "cat /models/m")], volumes=volumes))

    assert handle.logs() == "weights\n"
    assert not Path("/models").exists()


def test_claims_of_a_durable_cluster_are_kept_over_its_end(tmp_path):
    url = f"embedded://volumes?dir={tmp_path}"
    volumes = [{"mountPath": "/models", "volumeClaimName": "models"}]
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "models"},
        "spec": {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1Gi"}}},
    }
    with vcnb.connect(url) as cluster:
        cluster.submit(claim)
        cluster.submit(vcnb.Job(name="save", tasks=[sh("w", "echo weights >/models/m")], volumes=volumes)).wait(
            timeout=30
        )

    with vcnb.connect(url) as cluster:
        handle = cluster.submit(vcnb.Job(name="load", tasks=[sh("w", "cat /models/m")], volumes=volumes))
        handle.wait(timeout=30)

        assert handle.logs() == "weights\n"
