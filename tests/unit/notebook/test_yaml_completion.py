"""Completion inside YAML cells: ``^`` is the cursor."""

import atexit

import pytest
from IPython.core.completer import provisionalcompleter
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

import vcnb
from vcnb.notebook import current, extension
from vcnb.notebook.yamlcompletion import proposals
from vcnb.notebook.yamlplace import place_at

HEAD = "apiVersion: batch.volcano.sh/v1alpha1\nkind: Job\n"
JOB = f"""{HEAD}metadata:
  name: train   # a comment: with a colon
spec:
  minAvailable: 1
  tasks:
  - name: worker
    replicas: 2
    template:
      spec:
        containers:
        - name: main
          image: python:3.11
          command:
          - python
          - -c
          - |
            print("kind: no")
            for x in y:
              z: 1
          ^
"""


def cursor(text):
    before, _, after = text.partition("^")
    return before + after, before.count("\n"), len(before) - before.rfind("\n") - 1


def place(text):
    return place_at(*cursor(text))


def words(text, magic="%%vcjob"):
    return [each.text for each in proposals(*cursor(text), magic)[1]]


@pytest.mark.parametrize(
    ("text", "path", "partial"),
    [
        ("^", (), ""),
        ("ki^", (), "ki"),
        ("spec:\n  ^", ("spec",), ""),
        ("spec:\n  ta^", ("spec",), "ta"),
        ("spec:\n  tasks:\n  - na^", ("spec", "tasks", "[]"), "na"),
        ("spec:\n  tasks:\n    - na^", ("spec", "tasks", "[]"), "na"),
        ("spec:\n  tasks:\n  - name: w\n    re^", ("spec", "tasks", "[]"), "re"),
        ("spec:\n  tasks:\n  - name: w\n  - ^", ("spec", "tasks", "[]"), ""),
        ("spec:\n  tasks:\n  - name: w\n  qu^", ("spec",), "qu"),
        ("spec:\n  tasks:\n  - name: w\n\n  qu^", ("spec",), "qu"),
        ("spec:\n  tasks:\n  - name: w\nst^", (), "st"),
        ("a:\n- - b^", ("a", "[]", "[]"), "b"),
        ("spec: {que^", ("spec",), "que"),
        ("spec:\n  tasks:\n  - {name: w, rep^", ("spec", "tasks", "[]"), "rep"),
        ("spec: {tasks: [{name: w, template: {sp^", ("spec", "tasks", "[]", "template"), "sp"),
        ("spec: {tasks: [{name: w}], que^", ("spec",), "que"),
        ('"spec":\n  qu^', ("spec",), "qu"),
        ("one: 1\n---\nspec:\n  ^", ("spec",), ""),
        ("spec:\n  queue: # none yet\n  ^", ("spec",), ""),
        ("spec:\n  command: |\n    a\n  ^", ("spec",), ""),
    ],
)
def test_where_a_key_is_written(text, path, partial):
    found = place(text)

    assert (found.path, found.partial, found.value) == (path, partial, False)


@pytest.mark.parametrize(
    ("text", "path", "partial"),
    [
        ("kind: ^", ("kind",), ""),
        ("kind: Jo^", ("kind",), "Jo"),
        ('kind: "Jo^', ("kind",), "Jo"),
        ("spec:\n  policies:\n  - event: Pod^", ("spec", "policies", "[]", "event"), "Pod"),
        ("spec: {queue: d^", ("spec", "queue"), "d"),
        ("spec: {policies: [{event: Pod^", ("spec", "policies", "[]", "event"), "Pod"),
        ("events: [PodFailed, Pod^", ("events", "[]"), "Pod"),
    ],
)
def test_where_a_value_is_written(text, path, partial):
    found = place(text)

    assert (found.path, found.partial, found.value) == (path, partial, True)


@pytest.mark.parametrize(
    "text", ["spec: |\n  wha^t", "spec:\n  a: >-\n    one\n\n    ^", "a: 1 # comm^ent", "# ki^", "- |\n  ki^"]
)
def test_nothing_is_completed_in_a_script_or_a_comment(text):
    assert place(text) is None


def test_after_a_script_the_cursor_is_in_the_container_again():
    assert place(JOB).path == ("spec", "tasks", "[]", "template", "spec", "containers", "[]")


def test_keys_that_are_there_are_not_offered_again():
    found = words(JOB)

    assert {"env:", "resources:", "workingDir: "} <= set(found)
    assert not {"name: ", "image: ", "command:"} & set(found)


def test_keys_below_the_cursor_are_not_offered_either():
    text = f"{HEAD}spec:\n  ^\n  queue: default\n  tasks:\n  - name: w\n    replicas: 1\n"

    found = words(text)

    assert "queue: " not in found
    assert "tasks:" not in found
    assert "minAvailable: " in found


def test_items_of_a_list_each_have_all_keys():
    text = f"{HEAD}spec:\n  tasks:\n  - name: a\n    replicas: 1\n  - name: b\n    ^"

    found = words(text)

    assert "replicas: " in found
    assert "name: " not in found


def test_keys_under_tasks_are_those_of_a_task():
    assert words(f"{HEAD}spec:\n  tasks:\n  - ^") == [
        "dependsOn:",
        "maxRetry: ",
        "minAvailable: ",
        "name: ",
        "partitionPolicy:",
        "policies:",
        "replicas: ",
        "template:",
        "topologyPolicy: ",
    ]


def test_a_scalar_has_no_keys_below_it():
    assert words(f"{HEAD}spec:\n  queue: default\n    ^") == []


def test_kinds_and_versions():
    assert words("kind: ^") == ["Job", "JobFlow", "JobTemplate", "CronJob", "Queue"]
    assert words("kind: ^", "%%jobflow") == ["JobFlow", "JobTemplate", "Queue"]
    assert words("apiVersion: ^\nkind: Queue") == ["scheduling.volcano.sh/v1beta1"]
    assert words("apiVersion: flow.volcano.sh/v1alpha1\nkind: ^") == ["JobFlow", "JobTemplate"]


def test_the_top_level_has_what_a_person_writes():
    assert words(f"{HEAD}^") == ["metadata:", "spec:"]


def test_values_that_are_few():
    events = words(f"{HEAD}spec:\n  policies:\n  - event: Pod^")
    assert {"PodFailed", "PodEvicted"} <= set(events)
    assert all(word.startswith("Pod") for word in events)
    assert "RestartJob" in words(f"{HEAD}spec:\n  policies:\n  - action: R^")
    assert words(f"{HEAD}spec:\n  policies:\n  - events: [PodF^") == ["PodFailed"]
    assert words(f"{HEAD}spec:\n  policies:\n  - events:\n    - PodF^") == ["PodFailed"]
    assert words(f"{HEAD}spec:\n  networkTopology:\n    mode: ^") == ["hard", "soft"]
    assert words("kind: JobFlow\nspec:\n  jobRetainPolicy: d^") == ["delete"]


def test_names_of_plugins_and_resources():
    assert {"svc: []", "env: []", "ssh: []", "pytorch: []"} <= set(words(f"{HEAD}spec:\n  plugins:\n    ^"))
    container = f"{HEAD}spec:\n  tasks:\n  - template:\n      spec:\n        containers:\n        - resources:\n"
    assert words(f"{container}            requests:\n              ^") == ["cpu: ", "memory: "]


def test_each_document_has_the_keys_of_its_kind():
    text = f"{HEAD}spec:\n  tasks: []\n---\nkind: Queue\nspec:\n  ^\n---\nkind: JobFlow\n"

    assert {"weight: ", "capability:"} <= set(words(text))


def test_a_flow_cell_without_a_kind_yet():
    assert "flows:" in words("metadata:\n  name: f\nspec:\n  f^", "%%jobflow")


@pytest.fixture(scope="module")
def shell():
    made = InteractiveShell(config=Config(HistoryManager={"enabled": False, "hist_file": ":memory:"}))
    extension.load(made)
    yield made
    atexit.unregister(made.atexit_operations)
    made.atexit_operations()


def completed(shell, marked):
    before, _, after = marked.partition("^")
    with provisionalcompleter():
        return {each.text: each for each in shell.Completer.completions(before + after, len(before))}


def test_a_shell_completes_keys_and_nothing_of_python(shell):
    found = completed(shell, f"%%vcjob\n{HEAD}spec:\n  min^")

    assert set(found) == {"minAvailable: ", "minSuccess: "}
    assert {each.type for each in found.values()} == {"value"}


def test_a_shell_replaces_what_is_there_of_the_word(shell):
    marked = f"%%vcjob\n{HEAD}spec:\n  policies:\n  - action: Restart^"

    found = completed(shell, marked)["RestartJob"]

    assert marked[found.start : found.end] == "Restart"


def test_a_cell_begins_with_its_version_or_kind(shell):
    assert {"apiVersion: "} <= set(completed(shell, "%%vcjob train\napi^"))


def test_a_script_is_completed_as_python(shell):
    assert not any(text.endswith(": ") for text in completed(shell, "%%vcjob train\nimport os\nmi^"))


def test_names_of_queues_and_templates_come_from_the_cluster(shell, monkeypatch):
    with vcnb.connect("memory://?runtime=simulated&clock=virtual") as cluster:
        monkeypatch.setattr(current, "_current", cluster)
        cluster.submit(vcnb.JobTemplate(name="prepare", tasks=[vcnb.Task("w", command=["true"])]))

        assert "default" in completed(shell, f"%%vcjob\n{HEAD}spec:\n  queue: de^")
        assert set(completed(shell, "%%jobflow\nkind: JobFlow\nspec:\n  flows:\n  - name: pre^")) == {"prepare"}


def test_unloading_takes_it_away(shell):
    extension.unload(shell)
    try:
        assert not any("minAvailable" in text for text in completed(shell, f"%%vcjob\n{HEAD}spec:\n  min^"))
    finally:
        extension.load(shell)
    assert "minAvailable: " in completed(shell, f"%%vcjob\n{HEAD}spec:\n  min^")


def test_every_prefix_of_a_manifest_is_answered_without_an_error():
    text, _, _ = cursor(JOB)

    for end in range(len(text)):
        before = text[:end]
        proposals(before, before.count("\n"), len(before) - before.rfind("\n") - 1)
