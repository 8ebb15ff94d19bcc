"""``papermill --engine vcnb``: every run tells the truth, wherever the notebook runs."""

import os
import signal
import subprocess
import sys
import time

import papermill
import pytest

import vcnb
from integration.papermill.books import errors, read, statuses, write
from vcnb.client.functions.parameters import ParameterError

pytestmark = [pytest.mark.integration, pytest.mark.timeout(120)]

WAIT = 90
BAD_JOB = """import vcnb
cluster = vcnb.connect("memory://?runtime=process")
job = cluster.submit(vcnb.Job(name="bad", tasks=[vcnb.Task("w", image="bash", command=["bash", "-c", "exit 3"])]))
"""
LONG_JOB = """import vcnb
cluster = vcnb.connect("embedded://inner?runtime=process", dir={folder!r})
job = cluster.submit(vcnb.Job(name="long", tasks=[vcnb.Task("w", image="bash", command=["sleep", "100"])]))
job.wait("Running")
"""


@pytest.fixture(scope="module")
def cluster():
    with vcnb.connect("memory://") as made:
        yield made


class Engine:
    """Runs notebooks with the engine in one of the two places."""

    def __init__(self, where, cluster, folder):
        self.options = {"where": where, **({"cluster": cluster} if where == "job" else {})}
        self.target = folder / "out.ipynb"

    def __call__(self, source, parameters=None, **options):
        return papermill.execute_notebook(
            str(source),
            str(self.target),
            parameters or {},
            engine_name="vcnb",
            progress_bar=False,
            **self.options,
            **options,
        )


@pytest.fixture(params=["job", "here"])
def run(request, cluster, tmp_path):
    """The engine in both places, one after the other."""
    return Engine(request.param, cluster, tmp_path)


@pytest.fixture
def here(cluster, tmp_path):
    return Engine("here", cluster, tmp_path)


@pytest.fixture
def as_job(cluster, tmp_path):
    return Engine("job", cluster, tmp_path)


@pytest.fixture
def out(tmp_path):
    return lambda: read(tmp_path / "out.ipynb")


def test_a_notebook_runs_and_is_saved_with_its_parameters(run, out, tmp_path):
    run(write(tmp_path / "in.ipynb", "print(x)", "x", parameters="x = 1"), {"x": 5})

    saved = out()
    assert statuses(saved) == ["completed"] * 4
    assert saved.cells[2].outputs[0].text == "5\n"
    assert saved.cells[3].execution_count == 4
    assert saved.metadata.papermill.exception is None
    assert saved.metadata.language_info.name == "python"


def test_a_dead_kernel_fails_its_cell_and_nothing_that_never_ran_is_called_completed(run, out, tmp_path):
    with pytest.raises(papermill.PapermillExecutionError, match="the kernel died while this cell ran"):
        run(write(tmp_path / "in.ipynb", "1", "import os; os._exit(1)", "3", "4"))

    assert statuses(out()) == ["completed", "failed", "pending", "pending"]
    assert out().metadata.papermill.exception is True


def test_a_cell_that_runs_too_long_fails(run, out, tmp_path):
    with pytest.raises(papermill.PapermillExecutionError, match=r"CellTimeoutError: .* time-out of 1 s"):
        run(write(tmp_path / "in.ipynb", "1", "import time; time.sleep(60)", "3"), execution_timeout=1)

    assert statuses(out()) == ["completed", "failed", "pending"]


def test_an_exception_is_told_as_papermill_tells_it(as_job, out, tmp_path):
    with pytest.raises(papermill.PapermillExecutionError) as error:
        as_job(write(tmp_path / "in.ipynb", "1/0", "2"))

    assert (error.value.ename, error.value.evalue) == ("ZeroDivisionError", "division by zero")
    assert statuses(out()) == ["failed", "pending"]


def test_a_usage_error_of_a_magic_keeps_its_message(here, out, tmp_path):
    with pytest.raises(papermill.PapermillExecutionError) as error:
        here(write(tmp_path / "in.ipynb", "%timeit -z 1"))

    assert (error.value.ename, "option -z not recognized" in error.value.evalue) == ("UsageError", True)
    assert errors(out())[0][0] == "UsageError"


def test_leaving_with_exit_code_0_is_a_success(here, tmp_path):
    here(write(tmp_path / "in.ipynb", "import sys; sys.exit(0)", "2"))


def test_a_failed_background_job_at_which_nobody_looked_fails_the_run(run, out, tmp_path):
    with pytest.raises(vcnb.JobFailed, match="no cell looked at what became of job 'bad'") as error:
        run(write(tmp_path / "in.ipynb", BAD_JOB, "2"))

    assert "exit code 3" in str(error.value)
    assert statuses(out()) == ["completed", "completed"]
    assert out().metadata.papermill.exception is True


def test_a_failed_background_flow_at_which_nobody_looked_fails_the_run(here, out, tmp_path):
    flow = (
        "flow = vcnb.Flow('sad')\nflow.add('step', vcnb.Task('w', command=['bash', '-c', 'exit 3']))\n"
        "cluster.submit(flow)\nNone"
    )

    with pytest.raises(vcnb.JobFailed, match="what became of flow 'sad'") as error:
        here(write(tmp_path / "in.ipynb", "import vcnb; cluster = vcnb.connect('memory://')", flow))

    assert "step" in str(error.value)
    assert statuses(out()) == ["completed", "completed"]
    assert out().metadata.papermill.exception is True


def test_a_failed_job_that_was_looked_at_is_the_notebooks_own_business(here, tmp_path):
    here(write(tmp_path / "in.ipynb", BAD_JOB, "job.wait(check=False)"))


def test_a_failed_job_can_be_waived(run, tmp_path):
    run(write(tmp_path / "in.ipynb", BAD_JOB, parameters="x = 1"), {"vcnb_waive": ["bad"]})


def test_jobs_that_a_notebook_leaves_unfinished_are_kept(here, tmp_path):
    folder = str(tmp_path / "inner")

    here(write(tmp_path / "in.ipynb", LONG_JOB.format(folder=folder)), linger=0)

    with vcnb.connect("embedded://inner?runtime=process", dir=folder) as inner:
        job = inner.jobs["long"]
        assert job.phase == "Running"
        job.delete()


def test_jobs_that_a_notebook_leaves_unfinished_are_cancelled_when_asked_for(run, tmp_path):
    folder = str(tmp_path / "inner")

    run(write(tmp_path / "in.ipynb", LONG_JOB.format(folder=folder)), on_exit="cancel", linger=0)

    with vcnb.connect("embedded://inner?runtime=process", dir=folder) as inner:
        assert inner.jobs["long"].wait("Terminated", timeout=WAIT).phase == "Terminated"


def test_jobs_of_a_notebook_that_fails_are_cancelled_too(here, tmp_path):
    folder = str(tmp_path / "inner")

    with pytest.raises(papermill.PapermillExecutionError):
        here(write(tmp_path / "in.ipynb", LONG_JOB.format(folder=folder), "1/0"), on_exit="cancel")

    with vcnb.connect("embedded://inner?runtime=process", dir=folder) as inner:
        assert inner.jobs["long"].wait("Terminated", timeout=WAIT).phase == "Terminated"


@pytest.mark.parametrize(
    ("source", "parameters", "words"),
    [
        ({"parameters": "lr = 1"}, {"lrr": 2}, "did you mean 'lr'"),
        ({"parameters": 'mode: Literal["a", "b"] = "a"\nq: None | str = "x=y"'}, {"z": 2}, "it has: mode, q"),
        ({}, {"lr": 2}, "set again by cell 1; give that cell the tag"),
    ],
)
def test_parameters_that_the_notebook_would_ignore_are_an_error(as_job, out, tmp_path, source, parameters, words):
    with pytest.raises(ParameterError, match=words):
        as_job(write(tmp_path / "in.ipynb", "lr = 3", **source), parameters)

    assert set(statuses(out())) == {"pending"}
    assert out().metadata.papermill.exception is True


def test_streams_go_where_papermill_was_told(as_job, tmp_path):
    with (tmp_path / "stdout").open("w+") as file:
        as_job(write(tmp_path / "in.ipynb", "print('hello')"), stdout_file=file)
        file.seek(0)
        assert file.read() == "hello\n"


def test_a_pod_that_never_runs_the_notebook_says_why(as_job, out, tmp_path):
    with pytest.raises(vcnb.NotebookFailed, match="No such kernel"):
        as_job(write(tmp_path / "in.ipynb", "1", "2"), kernel_name="no-such-kernel")

    assert statuses(out()) == ["pending", "pending"]


# -- the command ------------------------------------------------------------------------------------------------------


def command(folder, *arguments):
    env = {**os.environ, "VCNB_HOME": str(folder / "home"), "VCNB_CLUSTER": "embedded://book"}
    words = [sys.executable, "-m", "papermill", "in.ipynb", "out.ipynb", "--engine", "vcnb", "--no-progress-bar"]
    return subprocess.Popen(
        [*words, *arguments], cwd=folder, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )


def finished(process):
    text, _ = process.communicate(timeout=WAIT)
    return process.returncode, text


def test_the_command_succeeds_and_fails_with_exit_code_and_message(tmp_path):
    write(tmp_path / "in.ipynb", "assert x < 3, 'too large'", parameters="x = 1")

    assert finished(command(tmp_path, "-p", "x", "2"))[0] == 0
    assert statuses(read(tmp_path / "out.ipynb")) == ["completed"] * 3
    code, text = finished(command(tmp_path, "-p", "x", "4"))
    assert (code, "AssertionError: too large" in text) == (1, True)
    code, text = finished(command(tmp_path, "-p", "y", "4", "-p", "vcnb_where", "here"))
    assert (code, "y: the notebook has no such parameter; it has: x" in text) == (1, True)


def known_as_running(path):
    """Whether the engine has heard, and saved, that the second cell runs."""
    try:
        return statuses(read(path))[1] == "running"
    except (OSError, ValueError, LookupError, AttributeError):
        return False  # not there yet, or half written


@pytest.mark.parametrize(("on_exit", "phase"), [("keep", "Completed"), ("cancel", "Terminated")])
def test_a_terminated_command_keeps_or_cancels_its_job_and_says_so(tmp_path, on_exit, phase):
    mark, go = tmp_path / "mark", tmp_path / "go"
    cell = f"import pathlib, time\npathlib.Path({str(mark)!r}).touch()\nwhile not pathlib.Path({str(go)!r}).exists(): time.sleep(0.02)"
    write(tmp_path / "in.ipynb", cell, "2")
    process = command(tmp_path, "-p", "vcnb_on_exit", on_exit)
    end = time.monotonic() + WAIT
    while not (mark.exists() and known_as_running(tmp_path / "out.ipynb")):
        assert time.monotonic() < end
        time.sleep(0.02)

    process.send_signal(signal.SIGTERM)
    code, text = finished(process)

    assert code == 143
    assert ("goes on" if on_exit == "keep" else "cancelled job") in text
    assert statuses(read(tmp_path / "out.ipynb")) == [
        "completed",
        {"keep": "running", "cancel": "failed"}[on_exit],
        "pending",
    ]
    go.touch()
    with vcnb.connect("embedded://book", dir=str(tmp_path / "home" / "clusters" / "book")) as cluster:
        (job,) = cluster.jobs
        job.wait(phase, timeout=WAIT)
        assert job.phase == phase
        if on_exit == "keep":
            assert statuses(job.result().notebook) == ["completed"] * 3
