"""Manifests: text to objects that know their lines, and back."""

import json
from enum import StrEnum
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vcnb.errors import InvalidObject, Problem
from vcnb.resources.manifest import MAX_BYTES, ManifestNotFound, dump, is_file_name, load
from vcnb.resources.schema import check

JOB = """\
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata:
  name: j
spec:
  minAvailable: 1
  tasks:
  - name: a
    replicas: 1
    template:
      spec:
        containers:
        - name: c
          image: i
"""


def object_of(text):
    (document,) = load(text)
    return document.object


def values(text):
    return object_of(f"kind: Job\nspec:\n  {text}\n")["spec"]


def refused(source):
    with pytest.raises(InvalidObject) as caught:
        load(source)
    return caught.value.errors


def the_problem(source):
    problems = refused(source)
    assert len(problems) == 1, problems
    return problems[0]


# Lines


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("", 1),
        ("kind", 2),
        ("metadata.name", 4),
        ("spec.tasks", 7),
        ("spec.tasks[0]", 8),
        ("spec.tasks[0].name", 8),
        ("spec.tasks[0].replicas", 9),
        ("spec.tasks[0].template.spec.containers[0].image", 14),
        ("spec.tasks[0].template.spec.containers[0].command[2]", 13),
        ("spec.tasks[0].template.spec.containers[4]", 12),
        ("spec.queue", 5),
        ("metadata.labels.x", 3),
        ("status", 1),
    ],
)
def test_line_of_a_path_or_of_the_nearest_part_above(path, line):
    (document,) = load(JOB)
    assert document.line(path) == line


def test_lines_in_the_second_document():
    first, second = load(f"# a comment\n{JOB}---\n{JOB}")
    assert (first.line("kind"), second.line("kind")) == (3, 18)


def test_lines_through_aliases_and_merges():
    text = "kind: Job\nbase: &base\n  a: 1\n  b: 2\nspec:\n  <<: *base\n  b: 3\nlist:\n- *base\n"
    (document,) = load(text)
    assert document.object["spec"] == {"a": 1, "b": 3}
    assert document.object["list"] == [{"a": 1, "b": 2}]
    assert (document.line("spec.a"), document.line("spec.b")) == (3, 7)


def test_lines_in_flow_style_and_json():
    (document,) = load('{"kind": "Job",\n "spec": {"queue": "q",\n  "labels": {"a.b/c": 1}}}')
    assert (document.line("spec.queue"), document.line('spec.labels["a.b/c"]')) == (2, 3)


def test_a_mapping_has_no_lines():
    (document,) = load({"kind": "Job"})
    assert document.line("kind") is None
    assert document.locate(Problem("kind", None, "m")) == Problem("kind", None, "m")


def test_lines_of_list_items_are_those_of_the_text():
    first, second = load(
        "apiVersion: v1\nkind: List\nitems:\n- kind: Job\n  spec: {}\n- kind: Queue\n  spec:\n    weight: 1\n"
    )
    assert (first.object["kind"], second.object["kind"]) == ("Job", "Queue")
    assert (first.line("spec"), second.line("spec.weight"), second.line("metadata")) == (5, 8, 6)


# Sources


def test_file(tmp_path):
    path = tmp_path / "job.yaml"
    path.write_text(JOB)
    for source in (path, str(path), f" {path} "):
        (document,) = load(source)
        assert document.object["kind"] == "Job"
        assert document.source == str(path)


def test_file_of_any_name_by_path(tmp_path):
    path = tmp_path / "manifest"
    path.write_bytes(b"\xef\xbb\xbf" + JOB.encode())
    assert load(path)[0].object["metadata"] == {"name": "j"}


@pytest.mark.parametrize(
    ("text", "is_name"),
    [
        ("a.yaml", True),
        ("b/c.yml", True),
        ("d.JSON", True),
        ("kind: Job", False),
        ("a.yaml\nb", False),
        ("a.txt", False),
    ],
)
def test_what_is_a_file_name(text, is_name):
    assert is_file_name(text) == is_name


def test_missing_file():
    with pytest.raises(ManifestNotFound, match="no such file") as caught:
        load("nowhere/job.yaml")
    assert isinstance(caught.value, FileNotFoundError)
    assert "nowhere/job.yaml" in str(caught.value)


def test_directory_binary_and_too_large(tmp_path):
    assert "cannot be read" in the_problem(tmp_path).message
    (tmp_path / "b.yaml").write_bytes(b"a: 1\nb: \xff\n")
    assert the_problem(tmp_path / "b.yaml") == Problem("", 2, "the file is not UTF-8 text")
    (tmp_path / "c.yaml").write_bytes(b"a" * (MAX_BYTES + 1))
    assert "at most" in the_problem(tmp_path / "c.yaml").message
    assert "too long" in the_problem("a\n" * MAX_BYTES).message
    assert "too large" in the_problem({"a": "x" * MAX_BYTES}).message


def test_several_documents_and_empty_ones():
    documents = load(f"---\n---\n{JOB}---\n# nothing\n---\n{JOB}")
    assert [document.object["kind"] for document in documents] == ["Job", "Job"]


def test_json_text_and_json_lists():
    assert object_of(json.dumps({"kind": "Job", "spec": {"a": 1.5, "b": "\U0001f600", "c": "a/b"}}))["spec"] == {
        "a": 1.5, "b": "\U0001f600", "c": "a/b",
    }  # fmt: skip
    assert object_of('{"kind": "Job",\n\t"a": 1e3, "b": "\\ud83d\\ude00"}') == {
        "kind": "Job",
        "a": 1000.0,
        "b": "\U0001f600",
    }
    assert [document.object["kind"] for document in load('[{"kind": "Job"}, {"kind": "Queue"}]')] == ["Job", "Queue"]


def test_mappings_and_lists_of_mappings():
    assert [document.object for document in load([{"kind": "Job"}, {"kind": "Queue"}])] == [
        {"kind": "Job"},
        {"kind": "Queue"},
    ]
    nested = {"kind": "List", "items": [{"kind": "Job"}, {"kind": "List", "items": [{"kind": "Queue"}]}]}
    assert [document.object["kind"] for document in load(nested)] == ["Job", "Queue"]


def test_a_mapping_becomes_plain_json_and_is_copied():
    class Word(StrEnum):
        A = "a"

    given = {"kind": Word.A, "spec": {"n": np.int64(3), "f": np.float64(0.5), "t": (1, 2), "x": None, "b": True}}
    (document,) = load(given)
    assert document.object == {"kind": "a", "spec": {"n": 3, "f": 0.5, "t": [1, 2], "x": None, "b": True}}
    assert type(document.object["kind"]) is str
    assert type(document.object["spec"]["n"]) is int
    assert document.object["spec"] is not given["spec"]


def test_what_json_cannot_say():
    problems = refused({"kind": "Job", "a": {1}, "b": [float("nan")], "c": {2: 3}, "d": b"x"})
    assert [str(problem) for problem in problems] == [
        "a: is a set, which JSON has no form for",
        "b[0]: is nan, which JSON has no form for",
        "c: has the key 2, which is no text",
        "d: is a bytes, which JSON has no form for",
    ]
    endless = {}
    endless["a"] = endless
    assert "nested more than" in the_problem(endless).message


def test_other_types_are_a_type_error():
    with pytest.raises(TypeError, match="not int"):
        load(3)


# Broken text


@pytest.mark.parametrize(
    "text", ["", "\n", "# only a comment\n", "---\n---\n", "null\n", "[]", '{"kind": "List", "items": []}']
)
def test_no_object(text):
    assert the_problem(text).message == "there is no object in it"


def test_a_text_that_is_no_object():
    assert "neither an object" in the_problem("hello").message
    assert the_problem("- 1\n- 2\n").path == "[0]"
    assert the_problem("apiVersion: v1\nkind: List\nitems: {}\n").path == "items"
    assert the_problem("apiVersion: v1\nkind: List\nitems:\n- kind: Job\n- 3\n") == Problem(
        "items[1]", 5, "must be a mapping with apiVersion, kind and metadata"
    )


@pytest.mark.parametrize(
    ("text", "line", "column", "hint"),
    [
        ("kind: Job\nspec:\n\ta: 1\n", 3, 1, "never with tabs"),
        ("kind: Job\nspec:\n  a: b: c\n", 3, 7, "into quotes"),
        ("kind: Job\nspec:\n  a: 1\n b: 2\n", 4, 2, "check the indentation"),
        ("kind: Job\nspec: [1, 2\nname: x\n", 3, 5, "not closed"),
        ("kind: 'Job\n", 1, 1, "not closed"),
        ("kind: *Job\n", 1, 7, "begins with * must be in quotes"),
        ("kind: @Job\n", 1, 7, "into quotes"),
        ("a: 1\nspec:\n- a\n-b\n", 4, 1, "check the indentation"),
    ],
)
def test_broken_yaml_has_line_column_and_hint(text, line, column, hint):
    problem = the_problem(text)
    assert problem.line == line
    assert f"at column {column}:" in problem.message
    assert hint in problem.message


def test_broken_json_file(tmp_path):
    path = tmp_path / "job.json"
    path.write_text('{"kind": "Job",\n "spec": {,}}')
    assert the_problem(path).line == 2
    assert "this is no JSON, at column 11" in the_problem(path).message


@pytest.mark.parametrize("text", ['{"kind": "Job", "a": NaN}', '{"kind": "Job", "a": 1e999}', "kind: Job\na: .inf\n"])
def test_numbers_that_json_does_not_know(text):
    assert any("no number that JSON knows" in problem.message for problem in refused(text))


def test_control_characters():
    assert the_problem("kind: Job\na: \x01\n") == Problem(
        "", 2, "the character U+0001 may not stand in YAML; take it away"
    )


@pytest.mark.parametrize(
    "text", ["kind: Job\nspec:\n  a: 1\n  b: 2\n  a: 3\n", '{"kind": "Job",\n\n "spec": {"a": 1,\n "b": 2, "a":\n 3}}']
)
def test_a_key_that_stands_twice(text):
    problem = next(problem for problem in refused(text) if problem.path == "spec.a")
    assert problem.message.startswith("is written twice, first in line 3")
    assert problem.line == (5 if text.startswith("kind") else 4)


def test_a_key_twice_is_told_together_with_all_else():
    problems = refused(JOB.replace("  minAvailable: 1\n", "  minAvailable: 1\n  minAvailable: x\n  wibble: 1\n"))
    assert [(problem.path, problem.line) for problem in problems] == [("spec.minAvailable", 7), ("spec.wibble", 8)]


def test_tags_are_refused():
    problems = refused("kind: Job\na: !!binary aGk=\nb: !foo {}\nc: !!set {x}\n")
    assert [problem.path for problem in problems if "the tag" in problem.message] == ["a", "b", "c"]


def test_bombs_are_refused():
    bomb = "kind: Job\na0: &a0 [x,x,x,x,x,x,x,x,x,x]\n" + "".join(
        f"a{i}: &a{i} [{','.join([f'*a{i - 1}'] * 10)}]\n" for i in range(1, 9)
    )
    assert "enormous" in the_problem(bomb).message
    assert "contains itself" in the_problem("kind: Job\na: &a [*a]\n").message
    assert "levels deep" in the_problem("kind: " + "[" * 150 + "]" * 150).message
    assert "nesting" in the_problem("kind: " + "[" * 5000).message
    assert "no YAML" in the_problem("[" * 100_000).message


def test_half_characters_are_refused():
    assert the_problem("kind: Job\na: \ud800\n") == Problem("", 2, "half a character ('\\ud800'); take it away")
    assert the_problem('{"kind": "Job", "a": "\\ud800"}').path == "a"
    assert the_problem({"kind": "Job", "a": ["\ud800"]}).path == "a[0]"


ODD = st.text(st.sampled_from("ab:-[]{}&*!|>'\"%#@`,?~ \n\t01.\ud800\x00\ufeff\x85\u2028\\<="), max_size=60)


@given(ODD | st.text())
def test_any_text_is_read_or_refused(text):
    documents, errors = [], []
    try:
        documents = load("kind: Job\n" + text)
    except InvalidObject as error:
        errors = error.errors
    assert documents or errors
    assert all(isinstance(document.object, dict) for document in documents)


# YAML 1.1 and what was meant


def test_plain_values():
    assert values("a: {b: yes, c: off, d: y, e: 0755, f: 1:30, g: 1e3, h: 1.5, i: ~, j: 2026-01-01, k: =, l: 0x1F}")["a"] == {
        "b": True, "c": False, "d": "y", "e": 493, "f": 90, "g": "1e3", "h": 1.5, "i": None, "j": "2026-01-01", "k": "=",
        "l": 31,
    }  # fmt: skip


def test_keys_are_always_text():
    assert values("switch: {on: x, yes: 1, 1: 2, null: 3, 2026-01-01: 4}")["switch"] == {
        "on": "x", "yes": 1, "1": 2, "null": 3, "2026-01-01": 4,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("spelling", "read"), [("yes", "the boolean true"), ("0755", "number 493"), ("1:30", "number 90")]
)
def test_text_that_yaml_reads_as_something_else(spelling, read):
    (document,) = load(JOB.replace("name: j", f"name: {spelling}"))
    (problem,) = check(document.object)
    assert str(document.locate(problem)) == (
        f'line 4: metadata.name: must be text, not {read} (YAML reads {spelling} as that); write it in quotes: "{spelling}"'
    )


def test_a_secret_spelling_is_not_shown():
    env = "          env:\n          - name: DB_PASSWORD\n            value: 0755\n"
    (document,) = load(JOB + env)
    (problem,) = check(document.object)
    assert "755" not in str(document.locate(problem))
    assert document.locate(problem).line == 17


def test_twenty_mistakes_are_told_at_once_with_their_lines():
    text = """\
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata:
  name: 5
  label: {a: b}
spec:
  minavailable: 1
  maxRetry: -1
  queue: Not_A_Queue
  schedulerNam: volcano
  minSuccess: 0
  plugins:
    env:
  policies:
  - event: PodFaild
    action: RestartJob
    timeout: soon
  - exitCode: one
  volumes:
  - volumeClaimName: data
  tasks:
  - name: Worker
    replicas: three
    minAvailable: 1.5
    topologyPolicy: strict
    image: busybox
    template:
      spec:
        restartPolicy: Never
        containers:
        - name: main
          image: busybox
          command: sleep 1
          env:
          - name: DEBUG
            value: on
          resources:
            limits:
              cpu: lots
        - image: other
        - name: main
"""
    (document,) = load(text)
    found = [document.locate(problem) for problem in check(document.object)]
    assert [(problem.line, problem.path.rpartition(".")[2]) for problem in found] == [
        (4, "name"), (5, "label"), (7, "minavailable"), (8, "maxRetry"), (9, "queue"), (10, "schedulerNam"),
        (11, "minSuccess"), (13, "env"), (15, "event"), (17, "timeout"), (18, "exitCode"), (20, "mountPath"),
        (22, "name"), (23, "replicas"), (24, "minAvailable"), (25, "topologyPolicy"), (26, "image"), (33, "command"),
        (36, "value"), (39, "cpu"), (40, "name"), (41, "name"),
    ]  # fmt: skip
    error = InvalidObject(found, "Job 5")
    assert len(str(error).splitlines()) == 23
    assert "line 15: spec.policies[0].event: must be *, PodPending" in str(error)


# Out again


def test_dump_has_the_conventional_order_and_blocks():
    obj = {
        "status": {"phase": "x"},
        "spec": {"script": "a\n  b\n", "list": [{"b": 1, "a": (1, 2)}], "empty": {}},
        "metadata": {"labels": {"z": "1"}, "name": "x"},
        "kind": "K",
        "apiVersion": "v1",
    }
    assert (
        dump(obj)
        == """\
apiVersion: v1
kind: K
metadata:
  name: x
  labels:
    z: '1'
spec:
  script: |
    a
      b
  list:
  - b: 1
    a:
    - 1
    - 2
  empty: {}
status:
  phase: x
"""
    )
    assert next(iter(obj)) == "status"


def test_dump_repeats_shared_parts():
    shared = {"a": [1]}
    assert "&" not in dump({"x": shared, "y": shared})


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)
WORDS = st.sampled_from(["yes", "no", "y", "on", "null", "~", "1e3", "0755", "0o7", "1:30", "2026-01-01", "=", "<<", "- a",
                         "a: b", "#", " a", "a ", "a\n", "\n", "a\n\n", " a\nb", "|", "\ta\nb", "a \nb", "'", '"', "", "\u2028"])  # fmt: skip


@given(st.dictionaries(st.text(min_size=1) | WORDS, JSON | WORDS, min_size=1))
def test_what_is_dumped_loads_again(obj):
    obj["kind"] = "Job"
    obj = json.loads(json.dumps(obj))
    obj = _without_surrogates(obj)
    assert object_of(dump(obj)) == obj


def _without_surrogates(value):
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, dict):
        return {_without_surrogates(key): _without_surrogates(item) for key, item in value.items()}
    return [_without_surrogates(item) for item in value] if isinstance(value, list) else value


def test_a_dumped_manifest_keeps_its_meaning():
    assert object_of(dump(object_of(JOB))) == object_of(JOB)
    assert Path(__file__).suffix not in dump(object_of(JOB))
