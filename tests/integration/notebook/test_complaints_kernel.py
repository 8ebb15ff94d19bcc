"""What users complain about elsewhere (docs/complaints.md), in real kernels."""

import pytest

from integration.notebook.kernels import Kernel

pytestmark = [pytest.mark.integration, pytest.mark.timeout(150)]

LONG = """%%vcjob train --replicas 2 --no-wait
import time
print("begun", flush=True)
time.sleep({seconds})
print("ended", flush=True)
"""


@pytest.fixture
def kernels(tmp_path):
    """Kernels of one person: they share the durable default cluster, one after the other."""
    made = []

    def start(**env):
        made.append(Kernel({"VCNB_HOME": str(tmp_path), "VCNB_CLUSTER": "embedded://default", **env}))
        return made[-1]

    yield start
    if made and made[-1]._manager.is_alive():
        made[-1].run("import vcnb; vcnb.connect().close(pods='stop')")
    for each in made:
        each.close()


def test_rows_42_48_a_killed_kernel_loses_nothing_and_the_next_one_shows_the_job_again(kernels):
    first = kernels()
    first.run_all(
        "%load_ext vcnb", LONG.format(seconds=8), "import vcnb; vcnb.attach('train').wait('Running', timeout=60)"
    )
    first.kill()

    second = kernels()
    cells = second.run_all(
        "%load_ext vcnb",
        "%vcjob list",
        "import vcnb; job = vcnb.attach('train'); print(type(job).__name__, job.phase, len(job.pods))",
        "%vcjob watch train",
        "print(job.logs(index=0), end='')\nprint(job.status.get('retryCount', 0))",
    )

    assert [cell.status for cell in cells] == ["ok"] * 5
    assert cells[2].text == "JobHandle Running 2\n"
    assert "train: Completed" in cells[3].text
    assert "job default/train" in cells[3].result["text/plain"]
    assert cells[4].text == "begun\nended\n0\n"


def test_row_42_the_live_view_is_rebuilt_and_goes_to_its_end(kernels):
    first = kernels()
    first.run_all("%load_ext vcnb", LONG.format(seconds=5))
    first.kill()

    second = kernels(VCNB_FRONTEND="live", VCNB_WIDGETS="off")
    _, watch, _ = second.run_all(
        "%load_ext vcnb", "%vcjob watch train", "vcnb_job = %vcjob get train\nvcnb_job.wait(timeout=60)"
    )

    assert watch.status == "ok"
    assert "job default/train" in watch.displays[0]["data"]["text/plain"]
    shown = watch.displays[0]["transient"]["display_id"]

    def last():
        updates = [each for each in second.updates if each["transient"]["display_id"] == shown]
        return updates[-1]["data"]["text/plain"] if updates else ""

    for _ in range(40):  # whatever comes in between cells is collected while one runs
        if "Completed" in last():
            break
        second.run("import time\ntime.sleep(0.25)")
    assert "Completed" in last()


def test_row_42_a_run_of_a_function_comes_back_with_its_results(kernels):
    first = kernels()
    first.run_all(
        "import vcnb; cluster = vcnb.connect()",
        "def square(x):\n    return x * x",
        "print(cluster.function(square).map([1, 2, 3]).results(timeout=60))",
    )
    first.kill()

    cell = kernels().run("import vcnb\nrun = vcnb.attach('square')\nprint(type(run).__name__, run.results())")

    assert cell.text == "Map [1, 4, 9]\n"


def test_row_42_a_name_that_is_not_there_is_one_line_with_the_near_one(kernels):
    kernel = kernels()
    kernel.run_all("%load_ext vcnb", LONG.format(seconds=0))

    cell = kernel.run("%vcjob watch trian")

    assert cell.status == "error"
    assert cell.reply["ename"] == "NotFound"
    assert cell.reply["evalue"] == "there is no job 'trian' in namespace 'default'; did you mean job 'train'?"


def test_row_58_output_comes_before_the_error_and_a_wait_can_end(kernels):
    kernel = kernels()
    failing = "%%vcjob bad --timeout 60\nprint('words before the end', flush=True)\nraise SystemExit(3)"
    cells = kernel.run_all(
        "%load_ext vcnb",
        "%%vcjob slow --timeout 0.5\nimport time; time.sleep(600)",
        failing,
        "%vcjob logs bad",
        "%vcjob terminate slow",
        stop_on_error=False,
    )

    assert (cells[1].status, cells[1].reply["ename"]) == ("error", "WaitTimeout")
    assert "slow: Running" in cells[1].text
    assert (cells[2].status, cells[2].reply["ename"]) == ("error", "JobFailed")
    assert "bad: " in cells[2].text
    assert "words before the end" in cells[3].text
