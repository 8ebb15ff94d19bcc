"""Environment and command line: Kubernetes' rules for ``$(NAME)``, sources of values, what leaks in and what does not."""

from __future__ import annotations

import base64
import sys

import pytest

from vcnb.local.node.environment import (
    MissingObject,
    Sources,
    base_environment,
    command_line,
    container_environment,
    expand,
    is_python_image,
)
from vcnb.local.node.fields import field_value, resource_value

POD = {
    "metadata": {
        "name": "p",
        "namespace": "ns",
        "uid": "u",
        "labels": {"app": "a", "x/y": 'q"z'},
        "annotations": {"note": "n"},
    },
    "spec": {
        "nodeName": "local",
        "containers": [{"name": "main", "resources": {"limits": {"memory": "1Gi"}, "requests": {"cpu": "250m"}}}],
    },
    "status": {"podIP": "127.5.0.1", "hostIP": "127.0.0.1", "podIPs": [{"ip": "127.5.0.1"}]},
}
CONFIG = {"cm": {"data": {"A": "1", "B": "2"}, "binaryData": {"raw": base64.b64encode(b"\xff").decode()}}}
SECRETS = {"s": {"data": {"token": base64.b64encode(b"hidden").decode()}}}
SOURCES = Sources(CONFIG.get, SECRETS.get, {"cpu": "8", "memory": "16Gi"})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("$(A)-$(B)", "1-2"),
        ("$$(A)", "$(A)"),
        ("$$$(A)", "$1"),
        ("$$$$", "$$"),
        ("$(NONE)", "$(NONE)"),
        ("$A $(A", "$A $(A"),
        ("$(date)", "$(date)"),
        ("100%$", "100%$"),
        ("$(A)$(A)", "11"),
    ],
)
def test_expansion(text, expected):
    assert expand(text, {"A": "1", "B": "2"}) == expected


def env(*entries, env_from=(), base=None):
    return container_environment(POD, {"name": "main", "env": entries, "envFrom": env_from}, SOURCES, base or {})


def test_a_value_sees_only_what_stands_before_it():
    assert env({"name": "X", "value": "$(Y)"}, {"name": "Y", "value": "1"}, {"name": "Z", "value": "$(Y)"}) == {
        "X": "$(Y)",
        "Y": "1",
        "Z": "1",
    }


def test_the_last_of_one_name_wins():
    assert env({"name": "X", "value": "1"}, {"name": "X", "value": "2"}, base={"X": "0"}) == {"X": "2"}


def test_the_base_is_not_expanded_from():
    """As in Kubernetes, where the image's variables cannot be referred to."""
    assert env({"name": "X", "value": "$(HOME)"}, base={"HOME": "/h"})["X"] == "$(HOME)"


def test_env_from_comes_before_env():
    found = env(
        {"name": "A", "value": "own $(P_B)"},
        env_from=[{"configMapRef": {"name": "cm"}}, {"prefix": "P_", "configMapRef": {"name": "cm"}}],
    )
    assert (found["A"], found["B"], found["P_A"]) == ("own 2", "2", "1")


def test_key_references():
    def ref(kind, name, key, **more):
        return {"name": "X", "valueFrom": {kind: {"name": name, "key": key, **more}}}

    assert env(ref("configMapKeyRef", "cm", "A")) == {"X": "1"}
    assert env(ref("secretKeyRef", "s", "token")) == {"X": "hidden"}
    assert env(ref("secretKeyRef", "none", "token", optional=True)) == {}
    with pytest.raises(MissingObject, match='secret "none" not found'):
        env(ref("secretKeyRef", "none", "token"))
    with pytest.raises(MissingObject, match='find key nope in configmap "cm"'):
        env(ref("configMapKeyRef", "cm", "nope"))
    with pytest.raises(MissingObject, match='configmap "none" not found'):
        env(env_from=[{"configMapRef": {"name": "none"}}])
    assert env(env_from=[{"secretRef": {"name": "none", "optional": True}}]) == {}


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("metadata.name", "p"),
        ("metadata.namespace", "ns"),
        ("metadata.uid", "u"),
        ("metadata.labels['app']", "a"),
        ("metadata.labels['none']", ""),
        ("metadata.annotations['note']", "n"),
        ("metadata.labels", 'app="a"\nx/y="q\\"z"'),
        ("spec.nodeName", "local"),
        ("spec.serviceAccountName", "default"),
        ("status.podIP", "127.5.0.1"),
        ("status.podIPs", "127.5.0.1"),
        ("status.hostIP", "127.0.0.1"),
    ],
)
def test_fields(path, value):
    assert field_value(POD, path) == value


@pytest.mark.parametrize(
    ("reference", "value"),
    [
        ({"resource": "limits.memory"}, str(2**30)),
        ({"resource": "limits.memory", "divisor": "1Mi"}, "1024"),
        ({"resource": "requests.cpu"}, "1"),
        ({"resource": "requests.cpu", "divisor": "1m"}, "250"),
        ({"resource": "limits.cpu"}, "8"),
        ({"resource": "requests.memory"}, str(2**30)),
        ({"resource": "limits.memory", "containerName": "main"}, str(2**30)),
    ],
)
def test_resources(reference, value):
    assert resource_value(POD, POD["spec"]["containers"][0], reference, SOURCES.allocatable) == value


@pytest.mark.parametrize(
    "image",
    [
        "python",
        "python:3.11-slim",
        "docker.io/library/python:3",
        "jupyter/scipy-notebook",
        "pytorch/pytorch:2.1",
        "continuumio/miniconda3",
        "rayproject/ray:2",
    ],
)
def test_python_images(image):
    assert is_python_image(image)


@pytest.mark.parametrize("image", ["busybox", "nginx:1", "ubuntu:22.04", "myspythonic", "array:1", ""])
def test_other_images(image):
    assert not is_python_image(image)


def test_python_of_a_python_image_is_the_kernels():
    container = {"image": "python:3.11", "command": ["python", "-c"], "args": ["$(X)"]}
    assert command_line(container, {"X": "1", "PATH": "/usr/bin"}) == [sys.executable, "-c", "1"]


def test_python_is_the_kernels_when_there_is_no_other(tmp_path):
    assert command_line({"image": "busybox", "command": ["python3"]}, {"PATH": str(tmp_path)}) == [sys.executable]
    other = tmp_path / "python3"
    other.write_text("#!/bin/sh\n")
    other.chmod(0o755)
    assert command_line({"image": "busybox", "command": ["python3"]}, {"PATH": str(tmp_path)}) == ["python3"]


def test_no_command():
    assert command_line({"image": "nginx"}, {}) == []
    assert command_line({"image": "x", "args": ["a"]}, {}) == ["a"]


def test_the_base_is_small(monkeypatch):
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "x")
    monkeypatch.setenv("TZ", "Europe/Berlin")
    base = base_environment("/work-dir")
    assert set(base) <= {"PATH", "HOME", "LANG", "TZ", "PYTHONUNBUFFERED", "PWD", "USER", "LOGNAME", "VIRTUAL_ENV"}
    assert (base["TZ"], base["PWD"]) == ("Europe/Berlin", "/work-dir")


def test_inheriting(monkeypatch):
    monkeypatch.setenv("CUDA_HOME", "/cuda")
    monkeypatch.setenv("OTHER", "x")
    named = base_environment("/", ["CUDA_HOME", "NOT_SET"])
    assert named["CUDA_HOME"] == "/cuda"
    assert "OTHER" not in named
    assert base_environment("/", True)["OTHER"] == "x"
