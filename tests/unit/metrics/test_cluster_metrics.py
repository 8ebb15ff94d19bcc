"""``cluster.metrics()``: Volcano's names, the right numbers, and who may read them over HTTP."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator

import pytest
from click.testing import CliRunner
from prometheus_client.parser import text_string_to_metric_families

import vcnb
from vcnb.cli.main import main
from vcnb.client.metrics import MetricsServer

COMPLETED = "volcano_job_completed_phase_count"
FAILED = "volcano_job_failed_phase_count"
LATENCY = "volcano_controller_job_to_pod_creation_latency_milliseconds"


@pytest.fixture
def cluster() -> Iterator[vcnb.Cluster]:
    with vcnb.connect("memory://?runtime=simulated&clock=virtual") as made:
        yield made


def _job(name: str, **spec: object) -> vcnb.Job:
    return vcnb.Job(name=name, tasks=[vcnb.Task("w", replicas=2, image="busybox")], **spec)


def _finish(cluster: vcnb.Cluster, name: str, *, well: bool) -> None:
    job = cluster.submit(_job(name))
    for index in (0, 1):
        if well:
            cluster.simulator.succeed(("w", index), job=job)
        else:
            cluster.simulator.fail(("w", index), job=job)


def test_jobs_that_completed_and_failed_are_counted_by_job_and_queue(cluster: vcnb.Cluster):
    _finish(cluster, "good", well=True)
    _finish(cluster, "bad", well=False)

    metrics = cluster.metrics()

    assert metrics.value(COMPLETED, job_name="default/good", queue_name="default") == 1
    assert metrics.value(FAILED, job_name="default/bad", queue_name="default") == 1
    assert metrics.value(COMPLETED) == metrics.value(FAILED) == 1


def test_a_count_is_taken_once_although_the_status_is_written_at_the_second_attempt(cluster: vcnb.Cluster):
    job = cluster.submit(_job("j"))
    cluster.simulator.run(("w", 1), job=job)
    cluster.simulator.succeed(("w", 0), job=job)
    cluster.simulator.fail_next("update_status", kind="Job", times=3)
    cluster.simulator.succeed(("w", 1), job=job)
    cluster.simulator.advance(1)

    assert job.phase == "Completed"
    assert cluster.metrics().value(COMPLETED) == 1


def test_strict_counts_at_every_attempt_as_upstream_does():
    with vcnb.connect("memory://?runtime=simulated&clock=virtual", compat="strict") as cluster:
        job = cluster.submit(_job("j"))
        cluster.simulator.run(("w", 1), job=job)
        cluster.simulator.succeed(("w", 0), job=job)
        cluster.simulator.fail_next("update_status", kind="Job", times=3)
        cluster.simulator.succeed(("w", 1), job=job)
        cluster.simulator.advance(1)

        assert cluster.metrics().value(COMPLETED) == 4


def test_terminated_and_aborted_jobs_are_not_counted(cluster: vcnb.Cluster):
    for name, verb in (("t", "terminate"), ("a", "suspend")):
        job = cluster.submit(_job(name))
        getattr(job, verb)()
        cluster.simulator.reap()

    assert [cluster.jobs[name].phase for name in ("t", "a")] == ["Terminated", "Aborted"]
    assert cluster.metrics().value(COMPLETED) == cluster.metrics().value(FAILED) == 0


def test_the_counters_of_a_deleted_job_go(cluster: vcnb.Cluster):
    _finish(cluster, "good", well=True)

    cluster.jobs["good"].delete()

    assert cluster.metrics().value(COMPLETED) == 0


def test_the_latency_of_each_created_pod_is_observed(cluster: vcnb.Cluster):
    cluster.simulator.scheduler = "manual"
    job = cluster.submit(_job("j"))
    cluster.simulator.advance(0.2)
    cluster.simulator.admit(job)

    metrics = cluster.metrics()

    assert metrics.value(f"{LATENCY}_count") == 2
    assert metrics.value(f"{LATENCY}_sum") == pytest.approx(400)
    bounds = [sample.labels["le"] for sample in metrics if sample.name == f"{LATENCY}_bucket"]
    assert len(bounds) == 31
    assert (float(bounds[0]), float(bounds[29]), bounds[30]) == (50, pytest.approx(60000), "+Inf")
    assert float(bounds[1]) == pytest.approx(50 * 1200 ** (1 / 29), rel=1e-4)


def test_podgroups_of_each_queue_are_shown_by_phase(cluster: vcnb.Cluster):
    cluster.submit({"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": {"name": "q"}})
    cluster.submit(_job("j", queue="q"))

    metrics = cluster.metrics()

    shown = {phase: metrics.value(f"volcano_queue_pod_group_{phase}_count", queue_name="q") for phase in PHASES}
    assert shown == {"inqueue": 0, "pending": 0, "running": 1, "unknown": 0, "completed": 0}


PHASES = ("inqueue", "pending", "running", "unknown", "completed")


def test_the_text_is_the_exposition_format_with_types_and_help(cluster: vcnb.Cluster):
    _finish(cluster, "good", well=True)

    text = cluster.metrics().text

    types = dict(re.findall(r"^# TYPE (\S+) (\S+)$", text, re.MULTILINE))
    gauges = {f"volcano_queue_pod_group_{phase}_count": "gauge" for phase in PHASES}
    assert types.items() >= ({COMPLETED: "counter", FAILED: "counter", LATENCY: "histogram"} | gauges).items()
    assert set(types) == set(re.findall(r"^# HELP (\S+) .+$", text, re.MULTILINE))
    assert f'\n{COMPLETED}{{job_name="default/good",queue_name="default"}} 1.0\n' in text
    assert {family.name for family in text_string_to_metric_families(text)} >= {LATENCY}


def test_as_a_table(cluster: vcnb.Cluster):
    _finish(cluster, "good", well=True)

    table = cluster.metrics().to_pandas()

    assert list(table.columns) == ["name", "labels", "value"]
    (row,) = table[table.name == COMPLETED].to_dict("records")
    assert row == {"name": COMPLETED, "labels": {"job_name": "default/good", "queue_name": "default"}, "value": 1.0}


def test_the_repr_is_short_and_without_buckets(cluster: vcnb.Cluster):
    assert "no job has finished" in repr(cluster.metrics())
    _finish(cluster, "good", well=True)

    lines = repr(cluster.metrics()).splitlines()

    assert f"{COMPLETED}{{job_name=default/good, queue_name=default}} 1" in lines
    assert f"{LATENCY}_count 2" in lines
    assert not any("bucket" in line or line.endswith(" 0") for line in lines)


def test_the_awaitable_twin(cluster: vcnb.Cluster):
    async def read() -> str:
        return (await cluster.metrics_async()).text

    assert COMPLETED in asyncio.run(read())


def test_without_controllers_nothing_is_counted():
    with (
        vcnb.connect("memory://?runtime=simulated&clock=virtual&controllers=off") as cluster,
        pytest.raises(vcnb.VcnbError, match="controllers are off"),
    ):
        cluster.metrics()


def _get(url: str, **headers: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=10) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


def test_the_server_answers_whoever_has_the_token():
    with MetricsServer(lambda: "numbers 1\n") as server:
        plain = _get(server.url)
        wrong = _get(server.url, Authorization="Bearer guess")
        right = _get(server.url, Authorization=f"Bearer {server.token}")
        query = _get(f"{server.url}?token={server.token}")
        elsewhere = _get(f"{server.url}/more?token={server.token}")

    assert [status for status, _ in (plain, wrong, right, query, elsewhere)] == [401, 401, 200, 200, 404]
    assert right[1] == query[1] == "numbers 1\n"
    assert "numbers" not in plain[1] + wrong[1]
    assert server.url.startswith("http://127.0.0.1:")


def test_the_server_says_when_there_is_nothing_to_read():
    def closed() -> str:
        raise vcnb.VcnbError("this cluster was closed")

    with MetricsServer(closed) as server:
        assert _get(f"{server.url}?token={server.token}") == (503, "this cluster was closed\n")


def test_the_command_prints_the_text():
    result = CliRunner().invoke(main, ["--cluster", "memory://?runtime=simulated&clock=virtual", "metrics"])

    assert result.exit_code == 0
    assert f"# TYPE {COMPLETED} counter" in result.output


def test_the_command_serves_until_it_is_stopped():
    command = [sys.executable, "-c", "from vcnb.cli.main import main; main()"]
    options = ["--cluster", "memory://?runtime=simulated&clock=virtual", "metrics", "--serve", "0"]
    with subprocess.Popen(command + options, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        status, text = _get(url)
        process.terminate()
        process.communicate(timeout=30)

    assert (status, process.returncode) == (200, 0)
    assert LATENCY in text


def test_a_port_that_is_taken_is_an_error_in_one_line():
    with MetricsServer(str) as server:
        port = server.url.rpartition(":")[2].partition("/")[0]
        result = CliRunner().invoke(
            main, ["--cluster", "memory://?runtime=simulated&clock=virtual", "metrics", "--serve", port]
        )

    assert result.exit_code == 1
    assert result.stderr == f"error: port {port} of 127.0.0.1 cannot be used: Address already in use; choose another\n"


def test_the_magic_gives_the_metrics(cluster: vcnb.Cluster):
    from vcnb.notebook.current import set_current
    from vcnb.notebook.settings import VERBS

    set_current(cluster)
    try:
        assert COMPLETED in VERBS["metrics"](None, []).text
    finally:
        set_current(None)
