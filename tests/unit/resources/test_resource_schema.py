"""The structural check: every problem at once, in plain words, with what was meant."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vcnb.errors import Problem
from vcnb.resources.kinds import KINDS
from vcnb.resources.phases import ALL_EVENTS
from vcnb.resources.schema import check


def job(**spec):
    return {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": {"name": "j"}, "spec": spec}


def with_container(**container):
    return job(tasks=[{"template": {"spec": {"containers": [{"name": "c", "image": "i", **container}]}}}])


def flow(*nodes, **spec):
    return {
        "apiVersion": "flow.volcano.sh/v1alpha1",
        "kind": "JobFlow",
        "metadata": {"name": "f"},
        "spec": {"flows": list(nodes), **spec},
    }


def only(obj):
    problems = check(obj)
    assert len(problems) == 1, problems
    return problems[0]


FIELDS = st.sampled_from([
    "spec", "metadata", "tasks", "template", "containers", "name", "env", "value", "resources", "limits", "cpu", "plugins",
    "policies", "event", "flows", "patch", "volumes", "ports", "replicas", "labels", "data", "initContainers",
])  # fmt: skip
CONTAINER = "spec.tasks[0].template.spec.containers[0]"


def test_a_well_formed_job_has_no_problem():
    assert check(with_container(command=["true"], resources={"requests": {"cpu": 0.5, "memory": "1Gi"}})) == []


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_every_kind_can_be_checked(kind):
    obj = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": "x", "labels": {"a": 1}}}
    assert Problem("metadata.labels.a", None, 'must be text, not number 1; write it in quotes: "1"') in check(obj)


@pytest.mark.parametrize(
    ("obj", "path", "part"),
    [
        ({}, "apiVersion", "is required"),
        ({"kind": "Job"}, "apiVersion", "write apiVersion: batch.volcano.sh/v1alpha1"),
        ({"apiVersion": "batch.volcano.sh/v1alpha1"}, "kind", "write kind: Job or CronJob"),
        ({"apiVersion": "batch/v1", "kind": "Job"}, "apiVersion", "did you mean apiVersion: batch.volcano.sh/v1alpha1"),
        ({"apiVersion": "v1", "kind": "Jobb"}, "kind", "did you mean Job"),
    ],
)
def test_unknown_kind(obj, path, part):
    problem = only(obj)
    assert problem.path == path
    assert part in problem.message


@pytest.mark.parametrize(
    ("obj", "path", "message"),
    [
        (job(minavailable=1), "spec.minavailable", "unknown field; did you mean minAvailable?"),
        (job(min_available=1), "spec.min_available", "unknown field; did you mean minAvailable?"),
        (job(image="x"), "spec.image", "unknown field; it belongs in tasks[].template.spec.containers[]"),
        (job(tasks=[{"replica": 1}]), "spec.tasks[0].replica", "unknown field; did you mean replicas?"),
        (with_container(imagePullpolicy="Always"), CONTAINER + ".imagePullpolicy",
         "unknown field; did you mean imagePullPolicy?"),
        ({**job(), "specs": {}}, "specs", "unknown field; did you mean spec?"),
        ({**job(), "metadata": {"name": "j", "label": {}}}, "metadata.label", "unknown field; did you mean labels?"),
    ],
)  # fmt: skip
def test_unknown_fields(obj, path, message):
    assert only(obj) == Problem(path, None, message)


def test_an_unknown_field_that_is_near_nothing_lists_what_is_known():
    assert "known here: maxRetry, minAvailable" in only(job(wibble=1)).message


@pytest.mark.parametrize(
    ("obj", "path", "message"),
    [
        (job(minAvailable="abc"), "spec.minAvailable", "must be a whole number, not text 'abc'"),
        (job(minAvailable="3"), "spec.minAvailable",
         "must be a whole number, not text '3'; write it without quotes: 3"),
        (job(minAvailable=1.5), "spec.minAvailable", "must be a whole number, not number 1.5"),
        (job(minAvailable=True), "spec.minAvailable", "must be a whole number, not the boolean true"),
        (job(queue=5), "spec.queue", 'must be text, not number 5; write it in quotes: "5"'),
        (job(queue=False), "spec.queue",
         "must be text, not the boolean false; write it in quotes (YAML takes unquoted yes, no, on, off, true and false for booleans)"),
        (job(tasks={"name": "a"}), "spec.tasks", "must be a list, not a mapping; begin each item with '- '"),
        (with_container(command="ls"), CONTAINER + ".command",
         "must be a list, not text 'ls'; a list of one item is written ['ls']"),
        (with_container(tty="yes"), CONTAINER + ".tty",
         "must be true or false, not text 'yes'; write true or false without quotes"),
        (with_container(resources=[{"cpu": 1}]), CONTAINER + ".resources", "must be a mapping, not a list; take away the '- '"),
        (with_container(resources={"limits": {"cpu": []}}), CONTAINER + ".resources.limits.cpu",
         "must be a quantity, not a list"),
        (job(policies=[{"timeout": 30}]), "spec.policies[0].timeout",
         "must be a duration such as 30s, not number 30; write it with its unit: 30s"),
        (job(runningEstimate="soon"), "spec.runningEstimate",
         "'soon' is no duration; write numbers with units h, m, s, ms, us or ns, such as 90s or 1h15m"),
        (with_container(args=["a", None]), CONTAINER + ".args[1]", "must be text, but nothing is written here"),
        (with_container(livenessProbe={"httpGet": {"port": 1.5}}), CONTAINER + ".livenessProbe.httpGet.port",
         "must be a whole number or text, not number 1.5"),
    ],
)  # fmt: skip
def test_wrong_types(obj, path, message):
    assert only(obj) == Problem(path, None, message)


@pytest.mark.parametrize(
    ("obj", "path", "message"),
    [
        (job(maxRetry=-1), "spec.maxRetry", "must be at least 0, not -1"),
        (job(minSuccess=0), "spec.minSuccess", "must be at least 1, not 0"),
        (job(minAvailable=2**31), "spec.minAvailable", "must be at most 2147483647, not 2147483648"),
        (job(tasks=[]), "spec.tasks", "must have at least 1 item"),
        (job(schedulerName="s" * 64), "spec.schedulerName", "has 64 characters; at most 63 are allowed"),
        (job(policies=[{"event": "PodFaild"}]), "spec.policies[0].event",
         f"must be {', '.join(ALL_EVENTS[:-1])} or JobUpdated, not 'PodFaild'; did you mean PodFailed?"),
        (job(tasks=[{"name": "Task-1"}]), "spec.tasks[0].name",
         "'Task-1' may only have lower-case letters, digits and '-', and must begin and end with a letter or digit"),
        (job(volumes=[{"mountPath": ""}]), "spec.volumes[0].mountPath", "must not be empty"),
        (job(volumes=[{"mountPath": "/a:b"}]), "spec.volumes[0].mountPath", "'/a:b' must not contain ':'"),
        (job(volumes=[{}]), "spec.volumes[0].mountPath", "is required"),
        (with_container(resources={"requests": {"cpu": "lots"}}), CONTAINER + ".resources.requests.cpu",
         "'lots' is no quantity; write a number with at most one suffix of n u m k M G T P E, Ki Mi Gi Ti Pi Ei, or an exponent such as e3"),
        (job(plugins={"env": None}), "spec.plugins.env",
         "has no arguments behind it and would be dropped; write env: [] for a plugin without arguments"),
    ],
)  # fmt: skip
def test_wrong_values(obj, path, message):
    assert only(obj) == Problem(path, None, message)


def test_a_key_with_dots_is_quoted_in_the_path():
    obj = with_container(resources={"limits": {"nvidia.com/gpu": "x"}})
    assert only(obj).path == CONTAINER + '.resources.limits["nvidia.com/gpu"]'


def test_a_missing_pod_spec_field_is_required():
    assert only(job(tasks=[{"template": {"spec": {}}}])).path == "spec.tasks[0].template.spec.containers"
    assert only({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}}) == Problem("spec", None, "is required")


def test_nulls_are_as_good_as_absent():
    assert check(job(queue=None, tasks=None, policies=None, ttlSecondsAfterFinished=None)) == []
    assert check({**with_container(env=None, resources={"limits": {"cpu": None}}), "status": None}) == []
    assert check({**job(), "metadata": {"name": "j", "labels": {"a": None}, "creationTimestamp": None}}) == []


def test_a_null_where_something_is_required():
    assert only(job(tasks=[{"template": {"spec": {"containers": None}}}])).message == (
        "must be a list, but nothing is written here"
    )


def test_whole_numbers_with_a_point_are_whole_numbers():
    assert check(job(minAvailable=3.0)) == []
    assert only(job(minAvailable=-3.0)).message == "must be at least 0, not -3"


def test_what_admission_fills_in_may_be_empty():
    assert check(job(queue="", schedulerName="", tasks=[{"name": ""}])) == []
    template = {**job(queue=""), "apiVersion": "flow.volcano.sh/v1alpha1", "kind": "JobTemplate"}
    assert only(template).path == "spec.queue"


def test_an_object_that_was_read_back_passes():
    obj = job(tasks=[{"name": "a", "template": {"metadata": {"creationTimestamp": None}}}])
    obj["metadata"] |= {
        "uid": "u", "resourceVersion": "5", "generation": 1, "creationTimestamp": "2026-01-01T00:00:00Z",
        "managedFields": [{"manager": "kubectl"}], "selfLink": "/x", "deletionTimestamp": "2026-01-01T00:00:00Z",
        "deletionGracePeriodSeconds": 0, "finalizers": ["f"],
        "ownerReferences": [{"apiVersion": "v1", "kind": "X", "name": "x", "uid": "u", "controller": True}],
    }  # fmt: skip
    obj["status"] = {"anything": [1, None]}
    assert check(obj) == []


def test_repeated_keys_of_lists():
    containers = [{"name": "a"}, {"name": "b"}, {"name": "a"}]
    obj = job(tasks=[{"template": {"spec": {"containers": containers}}}])
    assert only(obj) == Problem(
        "spec.tasks[0].template.spec.containers[2].name",
        None,
        "name 'a' is used twice, first at spec.tasks[0].template.spec.containers[0]",
    )


def test_ports_differ_by_number_and_protocol():
    ports = [{"containerPort": 1}, {"containerPort": 1, "protocol": "UDP"}, {"containerPort": 1, "protocol": "TCP"}]
    assert only(with_container(ports=ports)).path == CONTAINER + ".ports[2].containerPort"


def test_a_core_pod_may_repeat_variables_but_no_volumes():
    env = [{"name": "A", "value": "1"}, {"name": "A", "value": "2"}]
    spec = {"containers": [{"name": "c", "env": env}], "volumes": [{"name": "v"}, {"name": "v"}]}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec}
    assert only(pod).path == "spec.volumes[1].name"
    assert only(with_container(env=env)).path == CONTAINER + ".env[1].name"


def test_problems_stand_in_the_order_of_the_object():
    obj = job(maxRetry=-1, tasks=[{"replicas": -1, "name": "A"}], queue="Q", minAvailable="x")
    assert [problem.path for problem in check(obj)] == [
        "spec.maxRetry", "spec.tasks[0].replicas", "spec.tasks[0].name", "spec.queue", "spec.minAvailable",
    ]  # fmt: skip


def test_secret_values_are_not_shown():
    found = only(with_container(env=[{"name": "API_TOKEN", "value": 4711}]))
    assert found.path == CONTAINER + ".env[0].value"
    assert "4711" not in found.message
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "stringData": {"a": 4711}}
    assert "4711" not in only(secret).message


def test_the_object_is_not_touched():
    obj = with_container(resources={"limits": {"cpu": 1}})
    before = repr(obj)
    check(obj)
    assert repr(obj) == before


# JobFlow


def test_every_extension_of_a_flow_is_known():
    nodes = [
        {"name": "a", "templateRef": "t", "when": "params.x > 1", "allowFailure": True,
         "retry": {"limit": 2, "on": ["Failed"], "backoff": {"seconds": 1.5, "factor": 2, "maxSeconds": 60},
                   "when": "true", "keepFailed": False},
         "outputs": {"auc": {"task": "w", "index": 0, "container": "c", "path": "metrics.auc"}}},
        {"name": "s", "switch": {"on": "params.mode", "cases": [
            {"name": "full", "value": "full", "next": ["b"]}, {"when": "true", "next": []}, {"value": None, "next": ["b"]},
        ], "default": ["c"], "noMatch": "Skip"}},
        {"name": "b", "forEach": {"items": [1, None, {"a": 1}], "maxParallel": 2, "tolerateFailures": "10%",
                                  "onFailure": "Leave"}},
        {"name": "r", "forEach": {"range": {"end": 3, "start": 0, "step": 1}, "tolerateFailures": 1}},
        {"name": "i", "forEach": {"itemsFrom": "params.items"}},
        {"name": "c", "loop": {"until": "iteration > 2", "maxIterations": 5, "delaySeconds": 0, "onLimit": "Fail",
                               "continueOnFailure": True}},
        {"name": "d", "dependsOn": {
            "targets": ["a"], "strategy": "any", "timeoutSeconds": 60, "onTimeout": "Skip",
            "targetsWithStatus": [{"name": "b", "phases": ["Failed", "Finished"]}],
            "probe": {"periodSeconds": 5, "timeoutSeconds": 1, "httpGetList": [
                {"taskName": "w", "path": "/", "port": 80, "httpHeader": {"name": "a", "value": "b"}}],
                "tcpSocketList": [{"port": 1}], "taskStatusList": [{"taskName": "w", "phase": "Running"}]},
        }},
    ]  # fmt: skip
    spec = {
        "jobRetainPolicy": "delete", "params": {"x": 1, "mode": None}, "failurePolicy": "Continue", "maxParallel": 2,
        "activeDeadlineSeconds": 60, "suspend": False, "plugins": {"svc": []},
        "scheduling": {"queue": "q", "priorityClassName": "p", "gangs": [{"name": "g", "nodes": ["a"], "timeoutSeconds": 5}]},
    }  # fmt: skip
    assert check(flow(*nodes, **spec)) == []


@pytest.mark.parametrize(
    ("node", "path"),
    [
        ({"name": ""}, "name"),
        ({}, "name"),
        ({"name": "a", "dependsOn": {"strategy": "some"}}, "dependsOn.strategy"),
        ({"name": "a", "loop": {"until": "true", "maxIterations": 1001}}, "loop.maxIterations"),
        ({"name": "a", "loop": {"maxIterations": 1}}, "loop.until"),
        ({"name": "a", "retry": {"limit": -1}}, "retry.limit"),
        ({"name": "a", "retry": {"limit": 1, "on": ["Aborted"]}}, "retry.on[0]"),
        ({"name": "a", "retry": {"limit": 1, "backoff": {"factor": 0.5}}}, "retry.backoff.factor"),
        ({"name": "a", "when": "x" * 4097}, "when"),
        ({"name": "a", "when": True}, "when"),
        ({"name": "a", "switch": {"cases": []}}, "switch.cases"),
        ({"name": "a", "dependsOn": {"targetsWithStatus": [{"name": "b", "phases": ["Done"]}]}},
         "dependsOn.targetsWithStatus[0].phases[0]"),
        ({"name": "a", "forEach": {"maxParallel": 0}}, "forEach.maxParallel"),
    ],
)  # fmt: skip
def test_mistakes_in_extensions(node, path):
    assert only(flow(node)).path == f"spec.flows[0].{path}"


@pytest.mark.parametrize("field", ["jobSpec", "spec"])
def test_a_patch_is_only_part_of_a_job_spec(field):
    patch = {
        "plugins": {"svc": None},
        "minAvailable": "${{ params.n }}",
        "tasks": [{"name": None, "replicas": "${{ item }}", "template": {"spec": {"containers": [{"env": [{"name": "A", "value": "${{ 1 }}"}]}]}}}],
    }  # fmt: skip
    assert check(flow({"name": "a", "patch": {field: patch}})) == []
    wrong = only(flow({"name": "a", "patch": {field: {"tasks": [{"replica": 1}]}}}))
    assert wrong == Problem(
        f"spec.flows[0].patch.{field}.tasks[0].replica", None, "unknown field; did you mean replicas?"
    )


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(FIELDS | st.text(), inner, max_size=4),
    max_leaves=30,
)


@given(st.sampled_from(KINDS), st.dictionaries(FIELDS | st.text(), JSON, max_size=6))
def test_no_object_breaks_the_check(kind, fields):
    check({**fields, "apiVersion": kind.api_version, "kind": kind.kind})


@given(JSON)
def test_no_spec_breaks_the_check(spec):
    for problem in check(job(tasks=[{"template": {"spec": spec}}], plugins=spec)):
        assert problem.path.startswith("spec.")
        assert problem.message
