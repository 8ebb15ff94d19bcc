"""What people get wrong: one error that names everything, with lines, and nothing is stored."""

import pytest

import vcnb

TWENTY_MISTAKES = """\
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata:
  name: Bad_Name
  labels: {a: 1}
spec:
  minAvailble: 3
  minAvailable: 30
  queue: nowhere
  maxRetry: "x"
  ttlSecondsAfterFinished: -1
  plugins: {sv: [], env: 3}
  policies:
    - {event: PodFaild, action: RestartJob}
    - {event: PodFailed, action: Nope}
    - {action: AbortJob}
    - {exitCode: 0, action: AbortJob}
  tasks:
    - name: worker
      replicas: -2
      template:
        spec:
          containers:
            - name: a
              imagee: x
              resources: {requests: {cpu: "1x"}}
            - {name: a, image: y, env: [{nme: A}]}
    - name: worker
      replicas: two
      dependsOn: {name: [foo]}
      template: {spec: {containers: []}}
    - name: Up
      replicas: yes
      template:
        spec: {restartPolicy: Sometimes, containers: [{name: x, image: z, command: echo hi}]}
---
apiVersion: scheduling.volcano.sh/v1beta1
kind: Queue
metadata: {name: q}
spec: {wieght: 1}
"""

EXPECTED = [
    (4, "metadata.name", "may only have lower-case letters"),
    (5, "metadata.labels.a", "write it in quotes"),
    (7, "spec.minAvailble", "did you mean minAvailable?"),
    (8, "spec.minAvailable", "30 is more than"),
    (9, "spec.queue", "there is no queue 'nowhere'"),
    (10, "spec.maxRetry", "must be a whole number"),
    (11, "spec.ttlSecondsAfterFinished", "must be at least 0"),
    (12, "spec.plugins.sv", "did you mean 'svc'?"),
    (12, "spec.plugins.env", "must be a list"),
    (14, "spec.policies[0].event", "did you mean PodFailed?"),
    (15, "spec.policies[1].action", "is no action"),
    (16, "spec.policies[2]", "says not when to act"),
    (17, "spec.policies[3].exitCode", "0 is success"),
    (20, "spec.tasks[0].replicas", "must be at least 0"),
    (24, "spec.tasks[0].template.spec.containers[0].image", "is required"),
    (25, "spec.tasks[0].template.spec.containers[0].imagee", "did you mean image?"),
    (26, "spec.tasks[0].template.spec.containers[0].resources.requests.cpu", "is no quantity"),
    (27, "spec.tasks[0].template.spec.containers[1].name", "is used twice"),
    (27, "spec.tasks[0].template.spec.containers[1].env[0].nme", "did you mean name?"),
    (28, "spec.tasks[1].name", "is already the name of spec.tasks[0]"),
    (29, "spec.tasks[1].replicas", "must be a whole number"),
    (30, "spec.tasks[1].dependsOn.name[0]", "there is no task 'foo'"),
    (31, "spec.tasks[1].template.spec.containers", "at least one container is required"),
    (32, "spec.tasks[2].name", "may only have lower-case letters"),
    (33, "spec.tasks[2].replicas", "not the boolean true"),
    (35, "spec.tasks[2].template.spec.restartPolicy", "is not one of"),
    (35, "spec.tasks[2].template.spec.containers[0].command", "must be a list"),
    (40, "spec.wieght", "did you mean weight?"),
]


@pytest.fixture
def cluster():
    with vcnb.connect("memory://?runtime=simulated&clock=virtual") as made:
        yield made


def job(name="j", **options):
    return vcnb.Job(name=name, tasks=[vcnb.Task("w", image="busybox", command=["true"], **options)])


@pytest.mark.parametrize("verb", ["submit", "apply", "validate"])
def test_all_mistakes_of_all_documents_come_in_one_error_with_their_lines(cluster, verb):
    with pytest.raises(vcnb.InvalidObject) as refused:
        getattr(cluster, verb)(TWENTY_MISTAKES)

    found = refused.value.errors
    for line, path, message in EXPECTED:
        assert any((error.line, error.path) == (line, path) and message in error.message for error in found), path
    assert [error.line for error in found] == sorted(error.line for error in found)
    assert (len(cluster.jobs), [queue.name for queue in cluster.queues]) == (0, ["default", "root"])


@pytest.mark.parametrize(
    ("text", "path", "line", "message"),
    [
        ("", "", None, "there is no object in it"),
        ("a: [b\nc: d", "", 2, "this is no YAML"),
        ("kind: Job\n\tname: x", "", 2, "never with tabs"),
        ("kind: Job\nmetadata: {name: x}", "apiVersion", 1, "is required; write apiVersion: batch.volcano.sh/v1alpha1"),
        ("apiVersion: batch.volcano.sh/v1alpha1", "kind", 1, "is required; write kind: Job"),
        ("apiVersion: v1\nkind: Jb", "kind", 2, "unknown kind 'Jb'"),
        ("apiVersion: batch/v1\nkind: Job", "apiVersion", 1, "did you mean apiVersion: batch.volcano.sh/v1alpha1"),
        ("apiVersion: v1\nkind: Pod\nmetadata: x", "metadata", 3, "is missing or no mapping"),
        (
            "apiVersion: batch.volcano.sh/v1alpha1\nkind: Job\nmetadata: {name: x}\nspec: {tasks: []}",
            "spec.tasks",
            4,
            "1",
        ),
    ],
)
def test_a_text_that_is_no_object_says_what_is_missing(cluster, text, path, line, message):
    with pytest.raises(vcnb.InvalidObject) as refused:
        cluster.submit(text)

    (error,) = refused.value.errors
    assert (error.path, error.line) == (path, line)
    assert message in error.message


@pytest.mark.parametrize("verb", ["submit", "apply", "validate"])
def test_the_same_object_twice_is_refused_before_anything_is_stored(cluster, verb):
    with pytest.raises(vcnb.InvalidObject, match="name of an earlier Job here") as refused:
        getattr(cluster, verb)([job("a"), job("b"), job("a")])

    assert [error.path for error in refused.value.errors] == ["metadata.name"]
    assert len(cluster.jobs) == 0


def test_the_same_name_of_another_kind_or_namespace_is_another_object(cluster):
    other = {**job("a").to_manifest(), "metadata": {"name": "a", "namespace": "other"}}

    handles = cluster.submit([job("a"), vcnb.Queue(name="a"), other])

    assert [(handle.kind, handle.namespace) for handle in handles] == [
        ("Job", "default"),
        ("Queue", ""),
        ("Job", "other"),
    ]


def test_no_objects_at_all_are_a_mistake(cluster):
    with pytest.raises(vcnb.InvalidObject, match="no object in it"):
        cluster.submit([])


@pytest.mark.parametrize("source", [None, 5, b"kind: Job"])
def test_what_is_no_manifest_is_said_by_its_type(cluster, source):
    with pytest.raises(TypeError, match=f"a manifest is a path, a text.*not {type(source).__name__}"):
        cluster.submit(source)


def test_the_value_of_a_secret_is_in_no_error(cluster):
    written = job().to_manifest()
    container = written["spec"]["tasks"][0]["template"]["spec"]["containers"][0]
    container["env"] = [{"name": "API_TOKEN", "value": {"swordfish": 1}}, {"name": "DB_PASSWORD", "value": 471147}]

    with pytest.raises(vcnb.InvalidObject) as refused:
        cluster.submit(written)

    assert [error.message for error in refused.value.errors] == [
        "must be text, not a mapping; write it in quotes",
        "must be text, not number; write it in quotes",
    ]
    assert "swordfish" not in str(refused.value)


def test_an_object_that_was_read_may_be_applied_again_without_its_status(cluster):
    handle = cluster.submit(job())
    read = handle.object

    (again,) = cluster.apply({**read, "status": {"state": {"phase": "Completed"}}})

    assert (again.uid, again.phase) == (handle.uid, "Pending")


def test_an_object_that_was_read_before_it_changed_is_stale(cluster):
    handle = cluster.submit(job())
    read = handle.object
    handle.scale({"w": 3})

    with pytest.raises(vcnb.Conflict):
        cluster.apply(read)
