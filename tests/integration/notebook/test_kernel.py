"""The magics in a real kernel: cells queued all at once, real pods, errors as one clean message."""

import pytest

from integration.notebook.kernels import Kernel

pytestmark = [pytest.mark.integration, pytest.mark.timeout(180)]

HELLO = """%%vcjob hello --replicas 3 --out job
import os
print("hello from", os.environ["VC_TASK_INDEX"])
"""


MANIFEST = """\
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {{name: {name}}}
spec: {{tasks: [{{replicas: 1, template: {{spec: {{containers: [{{name: m, image: b, command: [echo, hi]}}]}}}}}}]}}
"""

INTERRUPT_ONCE_WAITING = """
import os, signal, threading, time
def interrupt():
    deadline = time.monotonic() + 30
    while not job.cluster._changes._by_uid and time.monotonic() < deadline:
        time.sleep(0.01)
    os.kill(os.getpid(), signal.SIGINT)
threading.Thread(target=interrupt, daemon=True).start()
"""


@pytest.fixture
def kernel(tmp_path):
    made = Kernel({"VCNB_HOME": str(tmp_path), "VCNB_CLUSTER": "memory://"})
    yield made
    made.close()


def test_run_all_answers_every_cell_and_nest_asyncio_is_never_loaded(kernel):
    cells = kernel.run_all(
        "%load_ext vcnb",
        HELLO,
        "print(job.phase, len(job.pods))",
        "%vcjob list",
        "import vcnb; other = vcnb.connect('memory://'); other.jobs.list(); other.close()",
        "result = await job",
        "import sys; print('nest_asyncio' in sys.modules)",
    )

    assert [cell.status for cell in cells] == ["ok"] * 7
    assert cells[2].text == "Completed 3\n"
    assert cells[6].text == "False\n"


def test_an_unattended_cell_prints_progress_waits_and_shows_the_job(kernel):
    _, cell = kernel.run_all("%load_ext vcnb", HELLO)

    assert "hello: Running" in cell.text
    assert "hello: Completed" in cell.text
    assert "Completed" in cell.result["text/html"]
    assert cell.displays == []


def test_a_live_cell_returns_at_once_and_updates_its_display_to_the_end(kernel):
    _, cell, waited = kernel.run_all(
        "%load_ext vcnb",
        "%%vcjob hello --replicas 2 --out job\nimport time; time.sleep(0.5)",
        "job.wait(); import time\n"
        "from vcnb.notebook.live import PAINTER\n"
        "for _ in range(200):\n"
        "    if not PAINTER._views: break\n"
        "    time.sleep(0.02)\n"
        "print(len(PAINTER._views))",
        allow_stdin=True,
    )

    assert cell.status == "ok"
    assert len(cell.displays) == 1
    identity = cell.displays[0]["transient"]["display_id"]
    updates = [update for update in kernel.updates if update["transient"]["display_id"] == identity]
    assert waited.text == "0\n"
    assert "Completed" in updates[-1]["data"]["text/plain"]


def test_the_handle_is_the_value_of_a_live_cell_too(kernel):
    _, cell, value, several, both = kernel.run_all(
        "%load_ext vcnb",
        "%%vcjob hello --out job\nprint(1)",
        "print(_ is job, Out[2] is job)",
        "%%vcjob\n" + "---\n".join(MANIFEST.format(name=name) for name in ("a", "b")),
        "print([job.name for job in _])",
        allow_stdin=True,
    )

    assert (cell.status, cell.result, len(cell.displays)) == ("ok", {}, 1)
    assert value.text == "True True\n"
    assert (several.result, len(several.displays)) == ({}, 2)
    assert both.text == "['a', 'b']\n"


def test_a_failing_job_fails_the_cell_with_its_reason_and_stops_the_run(kernel):
    cells = kernel.run_all(
        "%load_ext vcnb",
        "%%vcjob broken --replicas 2\nimport sys; sys.exit(3)",
        "print('never reached')",
    )

    assert [cell.status for cell in cells] == ["ok", "error", "aborted"]
    assert cells[1].reply["ename"] == "JobFailed"
    assert "exit" in cells[1].reply["evalue"]
    assert "Traceback" not in "\n".join(cells[1].reply["traceback"])


def test_mistakes_are_one_clean_message_with_the_cells_line(kernel):
    cells = kernel.run_all(
        "%load_ext vcnb",
        "%%vcjob x --replica 3\n1",
        "%%vcjob\napiVersion: batch.volcano.sh/v1alpha1\nkind: Job\nmetadata: {name: y}\nspec:\n  taskz: []\n",
        "%vcjob lst",
        "%vcjob get nothing",
        stop_on_error=False,
    )

    assert "did you mean --replicas" in cells[1].streams["stderr"]
    assert cells[2].reply["ename"] == "InvalidObject"
    assert "line 6" in cells[2].reply["evalue"]
    assert "did you mean" in cells[2].reply["evalue"]
    assert "did you mean 'list'" in cells[3].streams["stderr"]
    assert cells[4].reply["ename"] == "NotFound"


def test_an_interrupt_stops_the_wait_not_the_job_and_the_next_cell_does_not_run(kernel):
    kernel.run("%load_ext vcnb")
    kernel.run("%%vcjob long --no-wait --out job\nimport time; time.sleep(60)")
    kernel.run("job.wait('Running')")
    kernel.run(INTERRUPT_ONCE_WAITING)

    cells = kernel.run_all("job.wait()", "print('never reached')")

    assert [cell.status for cell in cells] == ["error", "aborted"]
    assert cells[0].reply["ename"] == "KeyboardInterrupt"
    assert "goes on" in cells[0].streams["stderr"]
    assert kernel.run("print(job.phase); job.delete()").text == "Running\n"


def test_the_body_is_never_expanded_unless_asked(kernel):
    cells = kernel.run_all(
        "%load_ext vcnb\nnumber = 7",
        '%%vcjob plain --replicas 1 --out a\nprint("{number} $number {{ number }}")',
        '%%vcjob templated --replicas 1 --template --out b\nprint("{number} $number {{ number }}")',
        "print(a.logs(), b.logs(), sep='')",
    )

    assert cells[3].text == "{number} $number {{ number }}\n{number} $number 7\n\n"


def test_a_yaml_cell_and_dry_run(kernel):
    yaml = (
        "apiVersion: batch.volcano.sh/v1alpha1\nkind: Job\nmetadata: {name: fromyaml}\nspec:\n  tasks:\n"
        "  - name: w\n    replicas: 2\n    template:\n      spec:\n        restartPolicy: Never\n"
        "        containers:\n        - {name: c, image: bash, command: [bash, -c, echo hi]}\n"
    )
    cells = kernel.run_all(
        "%load_ext vcnb",
        "%%vcjob --dry-run\n" + yaml,
        "%vcjob list",
        "%%vcjob --out y\n" + yaml,
        "print(y.logs())",
    )

    assert "minAvailable: 2" in cells[1].text
    assert cells[2].result["text/plain"] == "no jobs"
    assert cells[4].text == "fromyaml-w-0 | hi\nfromyaml-w-1 | hi\n\n"


def test_verbs(kernel):
    cells = kernel.run_all(
        "%load_ext vcnb",
        "%%vcjob long --no-wait --replicas 2 --out job\nimport time; time.sleep(60)",
        "job.wait('Running')",
        "%vcjob describe long",
        "%vcjob why long",
        "%vcjob suspend long",
        "job.wait('Aborted', check=False); print(job.phase)",
        "%vcjob resume long",
        "job.wait('Running'); print(job.phase)",
        "%vcjob terminate long",
        "job.wait(check=False); print(job.phase)",
        "%vcjob get long -o yaml",
        "%vcjob delete long",
        "%vcjob list",
    )

    assert [cell.status for cell in cells] == ["ok"] * 14
    assert "Name:" in cells[3].text
    assert cells[4].text
    assert [cells[number].text for number in (6, 8, 10)] == ["Aborted\n", "Running\n", "Terminated\n"]
    assert "kind: Job" in cells[11].text
    assert cells[13].result["text/plain"] == "no jobs"
