"""``--diff`` and ``cluster.diff``: what would change against what is stored."""

import atexit

import pytest
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output
from traitlets.config import Config

import vcnb
from vcnb.client.comparing import Diff
from vcnb.notebook import current

YAML = """\
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata:
  name: train
spec:
  tasks:
  - name: w
    replicas: {replicas}
    template: {{spec: {{containers: [{{name: m, image: b, env: [{{name: API_TOKEN, value: "{token}"}}]}}]}}}}
"""


@pytest.fixture(scope="module")
def kernel():
    shell = InteractiveShell(config=Config(HistoryManager={"enabled": False, "hist_file": ":memory:"}))
    shell.run_cell("%load_ext vcnb")
    yield shell
    atexit.unregister(shell.atexit_operations)
    shell.atexit_operations()


@pytest.fixture
def cluster():
    with vcnb.connect("memory://?runtime=simulated&clock=virtual") as made:
        yield made


@pytest.fixture
def shell(kernel, cluster, monkeypatch):
    monkeypatch.setattr(current, "_current", cluster)
    return kernel


def run(shell, text):
    with capture_output() as captured:
        result = shell.run_cell(text)
    return result.result, captured.stdout, result.error_in_exec


def yaml(replicas=2, token="s3cret"):
    return YAML.format(replicas=replicas, token=token)


def test_what_is_not_there_is_new_and_stays_out(cluster):
    found = cluster.diff(yaml())

    assert (found.changed, found[0].title) == (True, "Job default/train: new")
    assert all(line.startswith("+") for line in found[0].lines[3:])
    assert len(cluster.jobs) == 0


def test_the_same_text_is_no_change_though_defaults_were_filled_in_and_it_runs(cluster):
    job = cluster.submit(yaml())
    for pod in job.pods:
        cluster.simulator.run(pod)

    found = cluster.diff(yaml())

    assert (found.changed, str(found)) == (False, "Job default/train: no change")


def test_a_number_that_differs_is_two_lines(cluster):
    cluster.submit(yaml(2))

    found = cluster.diff(yaml(3))

    changed = [line.split() for line in found[0].lines[2:] if line[0] in "+-"]
    assert ["-", "replicas:", "2"] in changed
    assert ["+", "replicas:", "3"] in changed
    assert found[0].title == "Job default/train: changed"


def test_secrets_are_masked_and_one_that_differs_says_so(cluster):
    cluster.submit(yaml(token="one-secret"))

    same, other = cluster.diff(yaml(token="one-secret")), cluster.diff(yaml(token="two-secret"))

    assert not same.changed
    assert other.changed
    assert "****** (changed)" in str(other)
    assert "secret" not in str(other) + other._repr_html_()


def test_several_documents_are_told_one_by_one(cluster):
    cluster.submit(yaml())

    found = cluster.diff([yaml(), vcnb.Queue(name="fast")])

    assert [change.title for change in found] == ["Job default/train: no change", "Queue fast: new"]


def test_mistakes_are_told_as_by_submit(cluster):
    with pytest.raises(vcnb.InvalidObject, match="replica"):
        cluster.diff(yaml().replace("replicas", "replicsa"))


def test_html_marks_lines_by_sign_and_colour_and_escapes(cluster):
    cluster.submit(yaml())

    html = cluster.diff(yaml().replace("image: b", 'image: "<b>"'))._repr_html_()

    assert "<b>" not in html
    assert "&lt;b&gt;" in html
    assert html.count("color:#2e7d32") >= 1
    assert "<style" not in html


def test_a_cell_shows_the_difference_and_submits_nothing(shell, cluster):
    cluster.submit(yaml(2))

    value, out, error = run(shell, f"%%vcjob --diff --out found\n{yaml(3)}")

    assert error is None
    assert type(value) is Diff
    assert shell.user_ns["found"] is value
    assert "replicas: 3" in out
    assert cluster.jobs["train"].spec["tasks"][0]["replicas"] == 2


def test_a_script_cell_against_its_last_run(shell):
    run(shell, "%%vcjob hello --replicas 2 --no-wait\nprint(1)")

    same, _, _ = run(shell, "%%vcjob hello --replicas 2 --diff\nprint(1)")
    other, _, _ = run(shell, "%%vcjob hello --replicas 2 --diff\nprint(2)")

    assert not same.changed
    assert [line for line in other[0].lines[2:] if line.startswith("+")] != []


def test_a_script_without_a_name_is_a_new_job_each_time(shell):
    value, _, _ = run(shell, "%%vcjob --diff\nprint(1)")

    assert value[0].title == "Job default/cell-…: new"


def test_a_mistake_has_the_line_of_the_cell(shell):
    _, _, error = run(shell, f"%%vcjob --diff\n{yaml().replace('replicas', 'replicsa')}")

    assert [problem.line for problem in error.errors] == [9]


FLOW = "%%jobflow pipe --no-wait {more}\nfirst: ! echo {word}\nsecond: work(x=1) --after first\n"


def test_a_flow_of_the_short_form(shell):
    run(shell, "def work(x): return x")
    run(shell, FLOW.format(more="", word="one"))

    same, _, error = run(shell, FLOW.format(more="--diff", word="one"))
    other, _, _ = run(shell, FLOW.format(more="--diff", word="two"))

    assert error is None
    assert not same.changed, str(same)
    assert [change.title for change in other if change.changed] == ["JobTemplate default/pipe-first: changed"]


def test_a_function_that_was_changed_is_another_payload(shell):
    run(shell, "def work(x): return x")
    run(shell, FLOW.format(more="", word="one"))
    run(shell, "def work(x): return x + 1")

    found, _, _ = run(shell, FLOW.format(more="--diff", word="one"))

    changed = [change for change in found if change.changed]
    assert [change.name for change in changed] == ["pipe-second"]
    assert "vcnb/run-payload: payload " in str(changed[0].lines)


def test_a_flow_object_can_be_compared(cluster):
    flow = vcnb.Flow("pipeline")
    flow.add("load", vcnb.Job(name="load", tasks=[vcnb.Task("w", command=["true"])]))

    assert cluster.diff(flow).changed
    cluster.submit(flow)
    assert not cluster.diff(flow).changed
