"""The cells of a notebook, in a real kernel, against a real API server: the same magics as on an embedded cluster."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from integration.notebook.kernels import Kernel
from kube.apiserver import ApiServer
from kube.machine import Machine

pytestmark = [pytest.mark.integration, pytest.mark.timeout(180)]

HELLO = """%%vcjob hello --replicas 3 --out job
import os
print("hello from", os.environ["VC_TASK_INDEX"])
"""


@pytest.fixture
def kernel(client_server: ApiServer, machine: Machine, own_namespace: str, tmp_path) -> Iterator[Kernel]:
    url = f"kube://admin?kubeconfig={client_server.kubeconfig}&controllers=on&namespace={own_namespace}"
    made = Kernel({"VCNB_HOME": str(tmp_path), "VCNB_CLUSTER": url})
    yield made
    made.close()


def test_a_cell_is_a_job_on_kubernetes(kernel: Kernel, client_server: ApiServer, own_namespace: str):
    cells = kernel.run_all(
        "%load_ext vcnb",
        HELLO,
        "print(job.phase, job.namespace, len(job.pods))",
        "%vcjob list",
        "print(job.logs())",
        "%vcjob describe hello",
        "%vcnb status",
    )

    assert [cell.status for cell in cells] == ["ok"] * 7
    assert "hello: Completed" in cells[1].text
    assert cells[2].text == f"Completed {own_namespace} 3\n"
    assert "hello" in cells[3].text + str(cells[3].result)
    assert sorted(line.split(" | ")[1] for line in cells[4].text.split("\n") if line) == [
        "hello from 0",
        "hello from 1",
        "hello from 2",
    ]
    stored = client_server.call("GET", f"/apis/batch.volcano.sh/v1alpha1/namespaces/{own_namespace}/jobs/hello")
    assert stored["status"]["state"]["phase"] == "Completed"


def test_a_cell_that_fails_fails_loudly_and_says_why(kernel: Kernel):
    cells = kernel.run_all(
        "%load_ext vcnb", "%%vcjob broken\nraise SystemExit(7)\n", "print('not reached')", stop_on_error=True
    )

    assert cells[1].status == "error"
    assert cells[1].reply["ename"] == "JobFailed"
    assert "exit code 7" in cells[1].reply["evalue"]


def test_a_live_view_follows_a_job_on_kubernetes(kernel: Kernel):
    cells = kernel.run_all(
        "%load_ext vcnb",
        "%vcnb config frontend=live",
        HELLO,
        "job.wait(timeout=60); print(job.phase)",
        "import time\nview = job.view()\ndeadline = time.monotonic() + 20\n"
        "while 'Completed' not in view.cell_head and time.monotonic() < deadline: time.sleep(0.05)\n"
        "print('Completed' in view.cell_head, view.notice)\nview.close()",
        "board = job.cluster.dashboard(); print('hello' in board.cell_jobs); board.close()",
    )

    assert [cell.status for cell in cells] == ["ok"] * 6
    assert cells[4].text == "True \n"
    assert cells[5].text == "True\n"


def test_names_are_completed(kernel: Kernel):
    kernel.run_all("%load_ext vcnb", HELLO)

    reply = kernel.client.complete("%vcjob get hel", reply=True, timeout=30)

    assert "hello" in reply["content"]["matches"]
