"""The vcnb command on a durable embedded cluster: every call is a process's whole life with it."""

import json

import pytest
import yaml
from click.testing import CliRunner

from vcnb.cli.main import main

pytestmark = [pytest.mark.integration, pytest.mark.timeout(120)]

MANIFEST = """\
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: fromfile}
spec:
  tasks:
  - name: w
    replicas: 2
    template:
      spec:
        restartPolicy: Never
        containers:
        - {name: c, image: bash, command: [bash, -c, "echo hello"]}
"""


@pytest.fixture
def vcnb(tmp_path):
    def run(*words, text=None):
        url = f"embedded://cli?dir={tmp_path}/cluster&runtime=process"
        return CliRunner().invoke(main, ["--cluster", url, *words], input=text, catch_exceptions=False)

    return run


def test_run_wait_logs_and_look(vcnb):
    ran = vcnb("job", "run", "-N", "hello", "-r", "2", "--wait", "--", "bash", "-c", "echo hi")

    assert ran.exit_code == 0
    assert ran.output == "run job hello successfully\nhello-default0-0 | hi\nhello-default0-1 | hi\n"
    assert vcnb("logs", "hello").output == "hello-default0-0 | hi\nhello-default0-1 | hi\n"
    assert "✔ Completed" in vcnb("job", "list").output
    assert "Phase:" in vcnb("job", "view", "hello").output
    assert "completed" in vcnb("job", "why", "-N", "hello").output.lower()
    assert json.loads(vcnb("get", "vj", "hello", "-o", "json").output)["metadata"]["name"] == "hello"
    assert yaml.safe_load(vcnb("get", "job", "hello", "-o", "yaml").output)["kind"] == "Job"
    assert vcnb("get", "jobs", "-o", "name").output == "jobs/hello\n"
    assert "hello-default0-0" in vcnb("pod", "list", "-j", "hello").output


def test_a_failing_job_exits_with_1_and_says_why(vcnb):
    ran = vcnb("job", "run", "-N", "bad", "--wait", "--", "bash", "-c", "exit 3")

    assert ran.exit_code == 1
    assert "error: job 'bad' ended Failed" in ran.stderr


def test_apply_describe_and_delete(vcnb, tmp_path):
    file = tmp_path / "job.yaml"
    file.write_text(MANIFEST)

    assert vcnb("validate", "-f", str(file)).output == "valid\n"
    assert vcnb("apply", "-f", str(file)).output == "job/fromfile applied\n"
    assert vcnb("apply", "-f", "-", text=MANIFEST).output == "job/fromfile applied\n"
    assert vcnb("job", "wait", "fromfile").exit_code == 0
    assert "Name:" in vcnb("describe", "job", "fromfile").output
    assert "State" not in vcnb("describe", "queue", "default").stderr
    assert vcnb("delete", "-f", str(file)).output == "job/fromfile deleted\n"
    assert vcnb("job", "list").output == "No resources found\n"


def test_mistakes_are_told_with_their_lines(vcnb, tmp_path):
    file = tmp_path / "bad.yaml"
    file.write_text(MANIFEST.replace("replicas", "replicaz").replace("restartPolicy: Never", "restartPolicy: Maybe"))

    found = vcnb("apply", "-f", str(file))

    assert found.exit_code == 1
    assert "line 7: spec.tasks[0].replicaz: unknown field; did you mean replicas?" in found.stderr
    assert "line 10" in found.stderr


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["get", "jops"], 2, "did you mean"),
        (["get", "job", "nothing"], 1, "there is no job 'nothing'"),
        (["job", "suspend"], 2, "NAME"),
        (["job", "run"], 2, "-N"),
        (["apply", "-f", "missing.yaml"], 1, "missing.yaml"),
        (["queue", "operate", "default", "-a", "update"], 2, "-w"),
        (["delete", "queue", "default"], 1, "default"),
    ],
)
def test_errors_and_exit_codes(vcnb, words, code, said):
    found = vcnb(*words)

    assert found.exit_code == code
    assert said in found.stderr
    assert "Traceback" not in found.output


def test_verbs_of_jobs_and_queues(vcnb):
    assert vcnb("queue", "create", "fast", "-w", "3").exit_code == 0
    assert "fast" in vcnb("queue", "list").output
    assert vcnb("queue", "operate", "fast", "-a", "close").exit_code == 0
    assert "Closed" in vcnb("queue", "get", "fast").output
    assert vcnb("job", "run", "-N", "no", "-q", "fast", "--", "true").exit_code == 1
    assert vcnb("queue", "operate", "fast", "-a", "open").exit_code == 0
    assert vcnb("queue", "delete", "fast").exit_code == 0
    assert vcnb("job", "run", "-N", "long", "--", "sleep", "100").exit_code == 0
    assert vcnb("job", "scale", "long", "-r", "default0=2").exit_code == 0
    assert vcnb("job", "suspend", "long").output == "suspend job long successfully\n"
    assert vcnb("job", "terminate", "long").exit_code == 0
    assert vcnb("job", "delete", "long").exit_code == 0


def test_status(vcnb):
    assert "pods run as  process" in vcnb("status").output
