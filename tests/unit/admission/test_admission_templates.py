"""J8: what Kubernetes demands of a pod template."""

from __future__ import annotations

from typing import Any

import pytest

from unit.admission.samples import container, create, job, only, pod, task
from vcnb.admission.findings import Findings
from vcnb.admission.template import check_pod_spec, check_template

SPEC = "spec.tasks[0].template.spec"
FIRST = f"{SPEC}.containers[0]"


def of(**spec: Any) -> Any:
    return job(task(template={"spec": pod(**spec)}))


def inside(**fields: Any) -> Any:
    return of(containers=[container(**fields)])


BAD: list[tuple[str, Any, str]] = [
    ("no container", of(containers=[]), f"{SPEC}.containers"),
    ("container name", inside(name="Big"), f"{FIRST}.name"),
    ("no name", of(containers=[{"name": "", "image": "x"}]), f"{FIRST}.name"),
    ("init name twice", of(initContainers=[container()]), f"{SPEC}.initContainers[0].name"),
    ("no image", of(containers=[{"name": "c"}]), f"{FIRST}.image"),
    ("blank image", inside(image=" "), f"{FIRST}.image"),
    ("init image", of(initContainers=[{"name": "i"}]), f"{SPEC}.initContainers[0].image"),
    ("pull policy", inside(imagePullPolicy="Sometimes"), f"{FIRST}.imagePullPolicy"),
    ("port 0", inside(ports=[{"containerPort": 0}]), f"{FIRST}.ports[0].containerPort"),
    ("port 65536", inside(ports=[{"containerPort": 65536}]), f"{FIRST}.ports[0].containerPort"),
    ("host port", inside(ports=[{"containerPort": 80, "hostPort": 70000}]), f"{FIRST}.ports[0].hostPort"),
    ("protocol", inside(ports=[{"containerPort": 80, "protocol": "tcp"}]), f"{FIRST}.ports[0].protocol"),
    ("port name", inside(ports=[{"containerPort": 80, "name": "a-very-long-name"}]), f"{FIRST}.ports[0].name"),
    ("port name digits", inside(ports=[{"containerPort": 80, "name": "80"}]), f"{FIRST}.ports[0].name"),
    (
        "port names",
        inside(ports=[{"containerPort": 80, "name": "a"}, {"containerPort": 81, "name": "a"}]),
        f"{FIRST}.ports[1].name",
    ),
    (
        "host network",
        of(hostNetwork=True, containers=[container(ports=[{"containerPort": 80, "hostPort": 81}])]),
        f"{FIRST}.ports[0].hostPort",
    ),
    (
        "host port twice",
        inside(ports=[{"containerPort": 80, "hostPort": 9}, {"containerPort": 81, "hostPort": 9}]),
        f"{FIRST}.ports[1].hostPort",
    ),
    ("env name", inside(env=[{"name": "A=B", "value": "x"}]), f"{FIRST}.env[0].name"),
    ("env digit", inside(env=[{"name": "1A"}]), f"{FIRST}.env[0].name"),
    (
        "env both",
        inside(env=[{"name": "A", "value": "x", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]),
        f"{FIRST}.env[0].valueFrom",
    ),
    ("env from nothing", inside(env=[{"name": "A", "valueFrom": {}}]), f"{FIRST}.env[0].valueFrom"),
    ("envFrom", inside(envFrom=[{"prefix": "A"}]), f"{FIRST}.envFrom[0]"),
    ("undeclared", inside(volumeMounts=[{"name": "v", "mountPath": "/d"}]), f"{FIRST}.volumeMounts[0].name"),
    ("volume name", of(volumes=[{"name": "V", "emptyDir": {}}]), f"{SPEC}.volumes[0].name"),
    ("two sources", of(volumes=[{"name": "v", "emptyDir": {}, "hostPath": {"path": "/"}}]), f"{SPEC}.volumes[0]"),
    (
        "claim",
        of(volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": ""}}]),
        f"{SPEC}.volumes[0].persistentVolumeClaim.claimName",
    ),
    (
        "init probe",
        of(initContainers=[container(name="i", readinessProbe={"exec": {"command": ["a"]}})]),
        f"{SPEC}.initContainers[0].readinessProbe",
    ),
    ("probe of nothing", inside(livenessProbe={"periodSeconds": 1}), f"{FIRST}.livenessProbe"),
    ("negative", inside(resources={"requests": {"cpu": "-1"}}), f"{FIRST}.resources.requests.cpu"),
    (
        "over the limit",
        inside(resources={"requests": {"cpu": "2"}, "limits": {"cpu": "1500m"}}),
        f"{FIRST}.resources.requests.cpu",
    ),
    ("no such resource", inside(resources={"limits": {"gpu": 1}}), f"{FIRST}.resources.limits.gpu"),
    (
        "half a gpu",
        inside(resources={"limits": {"nvidia.com/gpu": "500m"}}),
        f'{FIRST}.resources.limits["nvidia.com/gpu"]',
    ),
    (
        "gpu without limit",
        inside(resources={"requests": {"nvidia.com/gpu": 1}}),
        f'{FIRST}.resources.limits["nvidia.com/gpu"]',
    ),
    (
        "gpu below its limit",
        inside(resources={"requests": {"nvidia.com/gpu": 1}, "limits": {"nvidia.com/gpu": 2}}),
        f'{FIRST}.resources.requests["nvidia.com/gpu"]',
    ),
    ("restart policy", of(restartPolicy="Sometimes"), f"{SPEC}.restartPolicy"),
    ("dns policy", of(dnsPolicy="clusterfirst"), f"{SPEC}.dnsPolicy"),
    ("dns none", of(dnsPolicy="None"), f"{SPEC}.dnsConfig.nameservers"),
    ("deadline 0", of(activeDeadlineSeconds=0), f"{SPEC}.activeDeadlineSeconds"),
    ("deadline large", of(activeDeadlineSeconds=2147483648), f"{SPEC}.activeDeadlineSeconds"),
    ("grace", of(terminationGracePeriodSeconds=-1), f"{SPEC}.terminationGracePeriodSeconds"),
    ("hostname", of(hostname="a.b"), f"{SPEC}.hostname"),
    ("service account", of(serviceAccountName="A"), f"{SPEC}.serviceAccountName"),
    ("node selector", of(nodeSelector={"a b": "c"}), f'{SPEC}.nodeSelector["a b"]'),
    ("toleration", of(tolerations=[{"key": "a", "operator": "Is"}]), f"{SPEC}.tolerations[0].operator"),
    ("toleration of all", of(tolerations=[{"effect": "NoSchedule"}]), f"{SPEC}.tolerations[0].operator"),
    (
        "toleration value",
        of(tolerations=[{"key": "a", "operator": "Exists", "value": "b"}]),
        f"{SPEC}.tolerations[0].value",
    ),
    (
        "label key",
        job(task(template={"metadata": {"labels": {"a b": "c"}}, "spec": pod()})),
        'spec.tasks[0].template.metadata.labels["a b"]',
    ),
    (
        "label value",
        job(task(template={"metadata": {"labels": {"a": "b c"}}, "spec": pod()})),
        "spec.tasks[0].template.metadata.labels.a",
    ),
    (
        "annotation key",
        job(task(template={"metadata": {"annotations": {"/a": "b"}}, "spec": pod()})),
        'spec.tasks[0].template.metadata.annotations["/a"]',
    ),
]


@pytest.mark.parametrize(("obj", "path"), [row[1:] for row in BAD], ids=[row[0] for row in BAD])
def test_refused(obj: Any, path: str) -> None:
    found, message = only(create(obj))

    assert found == path
    assert message


WITHOUT_SCHEMA: list[tuple[str, Any, str]] = [
    ("env without a name", {"env": [{"name": ""}]}, "env[0].name"),
    ("mount without a volume", {"volumeMounts": [{"name": "", "mountPath": "/d"}]}, "volumeMounts[0].name"),
    ("mount without a path", {"volumeMounts": [{"name": "v", "mountPath": ""}]}, "volumeMounts[0].mountPath"),
    (
        "mounted twice",
        {"volumeMounts": [{"name": "v", "mountPath": "/d"}, {"name": "v", "mountPath": "/d"}]},
        "volumeMounts[1].mountPath",
    ),
    ("no quantity", {"resources": {"limits": {"cpu": "lots"}}}, "resources.limits.cpu"),
    ("no resource", {"resources": {"limits": {"a b/c": 1}}}, 'resources.limits["a b/c"]'),
]


@pytest.mark.parametrize(
    ("fields", "path"), [row[1:] for row in WITHOUT_SCHEMA], ids=[row[0] for row in WITHOUT_SCHEMA]
)
def test_what_the_schema_mostly_says_first(fields: Any, path: str) -> None:
    findings = Findings()

    check_pod_spec(pod(containers=[container(**fields)], volumes=[{"name": "v"}]), "spec", findings)

    assert [problem.path for problem in findings.problems] == [f"spec.containers[0].{path}"]


def test_a_near_name_is_suggested() -> None:
    spec = of(
        containers=[container(volumeMounts=[{"name": "dta", "mountPath": "/d"}])],
        volumes=[{"name": "data", "emptyDir": {}}],
    )

    assert "did you mean 'data'?" in only(create(spec))[1]
    assert "did you mean 'OnFailure'?" in only(create(of(restartPolicy="onfailure")))[1]


@pytest.mark.parametrize(
    "obj",
    [
        of(restartPolicy="Always"),
        {**job(), "spec": {"tasks": [task(template={"spec": {"containers": [container()]}})]}},
        inside(securityContext={"privileged": True}),
        inside(
            env=[{"name": "my.env-name_1"}, {"name": "B", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]
        ),
        inside(ports=[{"containerPort": 80, "name": "http"}, {"containerPort": 80, "protocol": "UDP"}]),
        of(hostNetwork=True, containers=[container(ports=[{"containerPort": 80, "hostPort": 80}])]),
        of(volumes=[{"name": "v"}], containers=[container(volumeMounts=[{"name": "v", "mountPath": "/d"}])]),
        inside(resources={"limits": {"nvidia.com/gpu": 1, "cpu": "1"}, "requests": {"cpu": 0.5, "memory": "1Gi"}}),
        of(initContainers=[container(name="i", restartPolicy="Always", startupProbe={"tcpSocket": {"port": 1}})]),
        of(tolerations=[{"operator": "Exists"}, {"key": "a", "value": "b", "effect": "NoExecute"}]),
        of(activeDeadlineSeconds=1),
    ],
)
def test_accepted(obj: Any) -> None:
    assert create(obj).allowed, create(obj).problems


def test_a_template_has_no_ephemeral_containers_and_its_volumes_have_names() -> None:
    findings = Findings()

    spec = pod(
        ephemeralContainers=[container(name="e")], volumes=[{"name": "", "emptyDir": {}}, {"name": "v"}, {"name": "v"}]
    )
    check_template({"spec": spec}, "template", findings)

    assert [problem.path for problem in findings.problems] == [
        "template.spec.volumes[0].name",
        "template.spec.volumes[2].name",
        "template.spec.ephemeralContainers",
    ]
