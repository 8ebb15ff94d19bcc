"""``cluster.notebook``: notebooks as jobs, in real kernels."""

import asyncio
import os
import signal
import time
from pathlib import Path

import pytest

import vcnb
from integration.papermill.books import errors, read, statuses, write
from vcnb.client.functions.parameters import ParameterError

pytestmark = [pytest.mark.integration, pytest.mark.timeout(120)]

WAIT = 90


@pytest.fixture(scope="module")
def cluster():
    with vcnb.connect("memory://") as made:
        yield made


def until(condition):
    end = time.monotonic() + WAIT
    while not (found := condition()):
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.02)
    return found


def test_a_notebook_runs_with_its_parameters_and_comes_back_executed(cluster, tmp_path):
    source = write(
        tmp_path / "train.ipynb", "import vcnb; vcnb.glue('loss', lr * 2)", "print('hello', lr)", parameters="lr = 1"
    )

    job = cluster.notebook(source, parameters={"lr": 0.5})
    found = job.result(timeout=WAIT)

    assert found.outputs == {"loss": 1.0}
    assert Path(found.path) == tmp_path / f"{job.name}.ipynb"
    saved = read(found.path)
    assert statuses(saved) == ["completed"] * 4
    assert saved.cells[3].outputs[0].text == "hello 0.5\n"
    assert saved.metadata.papermill.parameters == {"lr": 0.5}
    assert (saved.metadata.papermill.exception, saved.metadata.papermill.duration > 0) == (None, True)
    assert "hello 0.5\n" in job.logs()
    assert "@vcnb" not in job.logs()
    assert (found.notebook.cells[3].outputs[0].text, str(job.progress())) == ("hello 0.5\n", "4 of 4 done")


def test_a_failing_cell_is_in_the_error_and_the_notebook_is_saved(cluster, tmp_path):
    source = write(tmp_path / "bad.ipynb", "print('one')", "1/0", "print('three')")
    out = tmp_path / "folder" / "out.ipynb"

    job = cluster.notebook(source, output=str(out))
    with pytest.raises(vcnb.NotebookFailed) as error:
        job.result(timeout=WAIT)

    told = error.value
    assert (told.cell, told.ename, told.evalue, told.path) == (1, "ZeroDivisionError", "division by zero", str(out))
    assert "cell 2 (In [2]): ZeroDivisionError: division by zero" in str(told)
    assert statuses(read(out)) == ["completed", "failed", "pending"]
    with pytest.raises(vcnb.JobFailed, match="ZeroDivisionError"):
        job.wait()
    assert job.why().startswith(f"Job {job.name} failed")
    assert "ZeroDivisionError: division by zero" in job.why()


def test_a_notebook_whose_pod_is_killed_keeps_the_outputs_it_had(tmp_path):
    source = write(
        tmp_path / "lost.ipynb",
        "print('kept')",
        f"import os; open({str(tmp_path / 'pid')!r}, 'w').write(str(os.getppid()))\nimport time; time.sleep(60)",
        "3",
    )
    with vcnb.connect("memory://?runtime=process") as cluster:
        job = cluster.notebook(source)
        until(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text())
        assert statuses(job.so_far().notebook) == ["completed", "running", "pending"]
        runner = int((tmp_path / "pid").read_text())
        supervisor = int(Path(f"/proc/{runner}/stat").read_text().rpartition(") ")[2].split()[1])
        os.kill(supervisor, signal.SIGKILL)

        with pytest.raises(vcnb.NotebookFailed, match=r"cell 2 .* PodLost: its pod ended with exit code 137"):
            job.result(timeout=WAIT)

    saved = read(tmp_path / f"{job.name}.ipynb")
    assert statuses(saved) == ["completed", "failed", "pending"]
    assert saved.cells[0].outputs[0].text == "kept\n"


def test_a_dead_kernel_and_a_slow_cell_fail_their_cell(cluster, tmp_path):
    dead = cluster.notebook(write(tmp_path / "dead.ipynb", "1", "import os; os._exit(1)", "3", "4"))
    slow = cluster.notebook(write(tmp_path / "slow.ipynb", "1", "import time; time.sleep(60)", "3"), cell_timeout=1)
    whole = cluster.notebook(write(tmp_path / "whole.ipynb", "import time; time.sleep(60)"), timeout=3)

    for job, ename in ((dead, "DeadKernelError"), (slow, "CellTimeoutError"), (whole, "CellTimeoutError")):
        with pytest.raises(vcnb.NotebookFailed) as error:
            job.result(timeout=WAIT)
        assert error.value.ename == ename
    assert statuses(read(tmp_path / f"{dead.name}.ipynb")) == ["completed", "failed", "pending", "pending"]
    assert statuses(read(tmp_path / f"{slow.name}.ipynb")) == ["completed", "failed", "pending"]


def test_parameters_are_checked_before_anything_is_submitted(cluster, tmp_path):
    source = write(tmp_path / "train.ipynb", "1", parameters="lr = 1\nseed = 2")
    before = len(cluster.jobs)

    with pytest.raises(ParameterError, match="did you mean 'seed'"):
        cluster.notebook(source, parameters={"sed": 1})
    with pytest.raises(vcnb.VcnbError, match="cannot be read"):
        cluster.notebook(tmp_path / "no.ipynb")
    (tmp_path / "text.ipynb").write_text("no notebook")
    with pytest.raises(vcnb.VcnbError, match="is no notebook"):
        cluster.notebook(tmp_path / "text.ipynb")
    with pytest.raises(vcnb.VcnbError, match="did you mean 'kernel'"):
        cluster.notebook(source, kernl="x")

    assert len(cluster.jobs) == before


def test_a_kernel_that_does_not_exist_is_said_and_no_cell_is_called_run(cluster, tmp_path):
    job = cluster.notebook(write(tmp_path / "x.ipynb", "1"), kernel="no-such-kernel")

    with pytest.raises(vcnb.NotebookFailed, match="the kernel no-such-kernel: No such kernel"):
        job.result(timeout=WAIT)
    assert statuses(job.so_far().notebook) == ["pending"]


def test_a_failed_notebook_is_run_again_when_asked_for(cluster, tmp_path):
    cell = (
        f"import pathlib; mark = pathlib.Path({str(tmp_path / 'mark')!r})\nif not mark.exists():\n    mark.touch(); 1/0"
    )

    job = cluster.notebook(write(tmp_path / "again.ipynb", cell, "'fine'"), retries=1)

    assert statuses(job.result(timeout=WAIT).notebook) == ["completed", "completed"]


def test_outputs_that_do_not_fit_are_left_out_and_say_so(cluster, tmp_path):
    large = "import os, base64; print('small'); from IPython.display import display, HTML\n"
    large += "display(HTML(base64.b85encode(os.urandom(6_000_000)).decode()))"

    found = cluster.notebook(write(tmp_path / "large.ipynb", large, "'after'")).result(timeout=WAIT)

    texts = [output.get("text", "") for output in found.notebook.cells[0].outputs]
    assert texts[0] == "small\n"
    assert "bytes was left out: too large" in texts[1]
    assert found.notebook.cells[1].outputs[0].data["text/plain"] == "'after'"


def test_glue_works_in_a_kernel_without_vcnb(cluster, tmp_path):
    hide = "import sys, importlib.util as u; print(u.find_spec('vcnb') is None)"
    source = write(tmp_path / "bare.ipynb", hide, "import vcnb; vcnb.glue('a', 1)", "vcnb.connect()")
    bare = tmp_path / "bare"
    bare.mkdir()
    (bare / "sitecustomize.py").write_text(
        "import sys\n"
        "class Hide:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        return None\n"
        "import importlib.util as u\n"
        "real = u.find_spec\n"
        "u.find_spec = lambda name, *a: None if name == 'vcnb' else real(name, *a)\n"
    )

    job = cluster.notebook(source, env={"PYTHONPATH": str(bare)})
    with pytest.raises(vcnb.NotebookFailed, match=r"only vcnb\.glue\(name, value\) is there"):
        job.result(timeout=WAIT)

    assert job.so_far().outputs == {"a": 1}
    assert job.so_far().notebook.cells[0].outputs[0].text == "True\n"


def test_a_notebook_can_be_awaited_and_found_again_by_name(cluster, tmp_path):
    async def cell():
        job = await cluster.notebook_async(write(tmp_path / "a.ipynb", "import vcnb; vcnb.glue('x', [1])"))
        return job.name, (await job.result_async()).outputs

    name, outputs = asyncio.run(cell())

    assert outputs == cluster.jobs[name].result().outputs == {"x": [1]}
    assert errors(cluster.jobs[name].so_far().notebook) == []


def test_cancelling_a_notebook_leaves_no_kernel(tmp_path):
    source = write(
        tmp_path / "long.ipynb",
        f"import os; open({str(tmp_path / 'pid')!r}, 'w').write(str(os.getpid()))\nimport time; time.sleep(90)",
    )
    with vcnb.connect("memory://?runtime=process") as cluster:
        job = cluster.notebook(source)
        pid = until(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text())
        job.cancel()
        job.wait(timeout=WAIT, check=False)

        assert job.phase == "Terminated"
        until(lambda: not Path(f"/proc/{pid}").exists())
        with pytest.raises(vcnb.NotebookFailed, match="Terminated"):
            job.result()
