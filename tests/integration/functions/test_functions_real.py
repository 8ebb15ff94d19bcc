"""Functions as jobs on an embedded cluster, in real processes."""

import asyncio
import os
import signal
import time

import pytest

import vcnb

pytestmark = [pytest.mark.integration, pytest.mark.timeout(120)]

WAIT = 60


class OwnError(Exception):
    """An exception of a module that no pod has."""


@pytest.fixture(scope="module")
def cluster():
    with vcnb.connect("memory://") as made:
        yield made


@pytest.fixture
def processes():
    """A cluster whose pods are plain processes: process ids mean the same inside and outside."""
    with vcnb.connect("memory://?runtime=process") as made:
        yield made


def until(condition):
    end = time.monotonic() + WAIT
    while not (found := condition()):
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.01)
    return found


def add(x, y=1):
    print("adding", x)
    return x + y


def fails_for_two(x):
    if x == 2:
        raise OwnError("no two")
    return x


def waits_for(path):
    import time
    from pathlib import Path

    while not Path(path).exists():
        time.sleep(0.01)
    return Path(path).name


def test_a_call_runs_in_a_pod_and_its_result_comes_back(cluster):
    @cluster.function(resources={"cpu": 0.1})
    def f(x):
        return os.environ["VC_TASK_INDEX"], x * 2

    call = f.submit(21)

    assert call.result(timeout=WAIT) == ("0", 42)
    assert (len(call.pods), call.phase) == (1, "Completed")


def test_the_function_itself_runs_here(cluster):
    assert cluster.function(add)(1, y=2) == 3
    assert cluster.function(add).__name__ == "add"


def test_a_map_is_one_job_with_one_pod_per_item_in_order(cluster):
    before = len(cluster.jobs)

    run = cluster.function(add).map([1, 2, 3], y=10)

    assert run.results(timeout=WAIT) == [11, 12, 13] == run.result()
    assert len(cluster.jobs) == before + 1
    assert [pod.name for pod in run.pods] == [f"{run.name}-item-{n}" for n in range(3)]
    assert (len(run), str(run.progress())) == (3, "3 of 3 done")


def test_a_map_takes_several_iterables_of_the_same_length(cluster):
    f = cluster.function(add)

    assert f.map([1, 2], [3, 4]).results(timeout=WAIT) == [4, 6]
    with pytest.raises(vcnb.VcnbError, match="different lengths"):
        f.map([1, 2], [3])
    with pytest.raises(vcnb.VcnbError, match="no items"):
        f.map([])


def test_everything_can_be_awaited(cluster):
    async def cell():
        call = await cluster.function(add).submit_async(1)
        await call
        run = await cluster.function(add).map_async([1, 2])
        return await call.result_async(), await run.results_async(timeout=WAIT), await run.progress_async()

    result, results, progress = asyncio.run(cell())

    assert (result, results, progress.done) == (2, [2, 3], 2)


def test_an_exception_comes_back_as_what_it_was_with_the_traceback_in_the_pod(cluster):
    call = cluster.function(fails_for_two).submit(2)

    with pytest.raises(OwnError, match="no two") as error:
        call.result(timeout=WAIT)

    assert 'raise OwnError("no two")' in str(error.value.__cause__)
    assert call.name in error.value.__notes__[0]
    assert call.phase == "Failed"
    assert "OwnError: no two" in call.why()


def test_a_map_with_failures_has_the_other_results_and_says_which_failed(cluster):
    run = cluster.function(fails_for_two).map([1, 2, 3])

    with pytest.raises(OwnError) as error:
        run.results(timeout=WAIT)

    assert "1 of 3 items failed: 1;" in error.value.__notes__[-1]
    assert [type(value) for value in run.results(return_exceptions=True)] == [int, OwnError, int]
    assert run.results_so_far() == {0: 1, 2: 3}
    assert list(run.failures()) == [1]
    assert [item.error for item in run.items] == ["", "OwnError: no two", ""]
    assert run.phase == "Failed"


def test_arguments_that_do_not_fit_are_refused_before_anything_is_submitted(cluster):
    before = len(cluster.jobs)

    with pytest.raises(TypeError, match=r"add\(x, y=1\)"):
        cluster.function(add).submit(1, z=2)

    assert len(cluster.jobs) == before


def test_results_so_far_progress_and_items_as_they_end(cluster, tmp_path):
    first, second = tmp_path / "first", tmp_path / "second"
    run = cluster.function(waits_for).map([str(first), str(second)])
    ends = run.as_completed(timeout=WAIT)
    until(lambda: run.progress().running == 2)
    assert run.results_so_far() == {}

    second.touch()
    assert (next(ends).value, run.results_so_far()) == ("second", {1: "second"})
    with pytest.raises(vcnb.WaitTimeout, match=r"1 of 2 done, 1 running; what is done: \.results_so_far"):
        run.results(timeout=0.1)

    first.touch()
    assert [item.index for item in ends] == [0]
    assert run.results(timeout=WAIT) == ["first", "second"]


def test_cancelling_ends_the_job_and_keeps_what_is_done(cluster, tmp_path):
    run = cluster.function(waits_for).map([str(tmp_path), str(tmp_path / "never")])
    until(lambda: run.progress().done == 1)

    run.cancel()
    run.wait(timeout=WAIT, check=False)

    assert run.phase == "Terminated"
    assert str(run.progress()) == "1 of 2 done, 1 cancelled"
    assert run.results_so_far() == {0: tmp_path.name}
    with pytest.raises(vcnb.CallFailed, match=r"item 1 .* was cancelled"):
        run.results()
    run.cancel()


def test_an_item_that_crashes_is_tried_again_and_only_that_item(cluster, tmp_path):
    def crashes_once(folder, number):
        import os
        from pathlib import Path

        mark = Path(folder) / f"{number}-{len(list(Path(folder).glob(f'{number}-*')))}"
        mark.touch()
        if mark.name == "1-0":
            os._exit(3)
        return number

    run = cluster.function(retries=1)(crashes_once).map([str(tmp_path)] * 3, range(3))

    assert run.results(timeout=WAIT) == [0, 1, 2]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["0-0", "1-0", "1-1", "2-0"]
    assert [item.attempts for item in run.items] == [1, 2, 1]


def kills_pod_once(folder, number):
    import os
    import signal
    from pathlib import Path

    mark = Path(folder) / f"{number}-{len(list(Path(folder).glob(f'{number}-*')))}"
    mark.touch()
    if mark.name == "1-0":
        os.kill(os.getppid(), signal.SIGKILL)
    return number


def test_a_pod_that_is_killed_is_replaced_and_only_that_pod(processes, tmp_path):
    run = processes.function(retries=1)(kills_pod_once).map([str(tmp_path)] * 3, range(3))

    assert run.results(timeout=WAIT) == [0, 1, 2]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["0-0", "1-0", "1-1", "2-0"]
    assert run.status["retryCount"] == 1


def test_without_retries_a_killed_pod_is_a_failed_item_that_says_why(processes, tmp_path):
    run = processes.function(kills_pod_once).map([str(tmp_path)] * 2, range(2))

    with pytest.raises(vcnb.CallFailed, match=r"item 1 .* exit code 137 .killed from outside") as error:
        run.results(timeout=WAIT)

    assert error.value.reason == "lost"
    assert run.results_so_far() == {0: 0}


def test_a_gang_of_replicas_makes_one_call_and_starts_again_as_a_whole(cluster, tmp_path):
    def gang(folder):
        import os
        from pathlib import Path

        index = os.environ["VC_TASK_INDEX"]
        mark = Path(folder) / f"{index}-{len(list(Path(folder).glob(f'{index}-*')))}"
        mark.touch()
        if mark.name == "1-0":
            raise ValueError("once")
        return int(index)

    call = cluster.function(replicas=2, retries=1)(gang).submit(str(tmp_path))

    assert call.result(timeout=WAIT) == 0
    assert call.results() == [0, 1]
    assert call.spec["minAvailable"] == 2
    assert {"1-0", "1-1"} <= {path.name for path in tmp_path.iterdir()}


def test_a_gang_of_which_one_fails_is_stopped_and_raises_that_error(cluster, tmp_path):
    def gang(path):
        import os

        if os.environ["VC_TASK_INDEX"] == "1":
            raise ValueError("the second")
        waits_for(path)

    call = cluster.function(replicas=2)(gang).submit(str(tmp_path / "never"))

    with pytest.raises(ValueError, match="the second"):
        call.result(timeout=WAIT)
    assert call.phase == "Failed"


def test_a_time_limit_holds_for_every_item(cluster, tmp_path):
    call = cluster.function(timeout=0.5)(waits_for).submit(str(tmp_path / "never"))

    with pytest.raises(vcnb.CallFailed, match=r"it ran longer than 0.5 s") as error:
        call.result(timeout=WAIT)
    assert error.value.reason == "timeout"


def test_a_handle_found_by_name_has_the_same_results(cluster):
    run = cluster.function(fails_for_two).map([1, 2])
    run.wait(timeout=WAIT, check=False)

    again = cluster.jobs[run.name]

    assert (type(again), again.function) == (type(run), "fails_for_two")
    assert again.results_so_far() == {0: 1}
    assert cluster.jobs[cluster.function(add).submit(1).name].result(timeout=WAIT) == 2


def test_a_job_without_a_function_has_no_result(cluster):
    job = cluster.submit(vcnb.Job(name="plain", tasks=[vcnb.Task("w", image="bash", command=["true"])]))

    with pytest.raises(vcnb.VcnbError, match="job 'plain' has no result"):
        job.result()
    job.delete()


def test_logs_are_what_the_function_printed_and_nothing_else(cluster):
    run = cluster.function(add).map([1, 2])
    run.wait(timeout=WAIT)

    assert run.logs(index=0) == "adding 1\n"
    assert run.logs() == f"{run.name}-item-0 | adding 1\n{run.name}-item-1 | adding 2\n"
    assert run.logs(index=1, tail=1) == "adding 2\n" == run.pods[1].logs() == run.pods[1].logs(tail=1)
    assert sorted(line.partition(" | ")[2] for line in run.logs(follow=True)) == ["adding 1", "adding 2"]


def test_a_function_that_prints_without_a_newline_loses_nothing(cluster):
    def f():
        print("no newline", end="")
        return 1

    call = cluster.function(f).submit()

    assert call.result(timeout=WAIT) == 1
    assert call.logs() == "no newline\n"


@pytest.mark.parametrize("runtime", ["process", "sandbox"])
def test_large_arguments_and_large_results_travel(runtime):
    data = os.urandom(700_000)
    with vcnb.connect(f"memory://?runtime={runtime}") as cluster:
        returned = cluster.function(lambda given: given * 4).submit(data).result(timeout=WAIT)

    assert returned == data * 4


def test_what_is_too_large_is_refused_and_nothing_is_left(cluster):
    secrets, jobs = len(cluster.secrets), len(cluster.jobs)

    with pytest.raises(vcnb.PayloadError, match="768 KiB fit into a job"):
        cluster.function(add).submit(os.urandom(1_000_000))

    assert (len(cluster.secrets), len(cluster.jobs)) == (secrets, jobs)


def test_a_refused_job_leaves_no_payload(cluster):
    secrets = len(cluster.secrets)

    with pytest.raises(vcnb.InvalidObject):
        cluster.function(queue="no-such-queue")(add).submit(1)

    assert len(cluster.secrets) == secrets


def test_the_payload_belongs_to_the_job_and_goes_with_it(cluster):
    call = cluster.function(add).submit(1)
    call.wait(timeout=WAIT)
    name = call.annotations["vcnb/run-payload"]
    assert cluster.secrets[name].object["metadata"]["ownerReferences"][0]["uid"] == call.uid

    call.delete()

    until(lambda: name not in cluster.secrets)


def test_functions_may_call_themselves_and_each_other(cluster):
    @cluster.function
    def inner(x):
        return 1 if x == 0 else x * inner(x - 1)

    @cluster.function
    def outer(x):
        return inner(x) + 1

    assert outer.submit(4).result(timeout=WAIT) == 25


def test_classes_of_the_notebook_come_back_as_themselves(cluster):
    class Point:
        def __init__(self, x):
            self.x = x

    found = cluster.function(lambda point: Point(point.x + 1)).submit(Point(1)).result(timeout=WAIT)

    assert (type(found), found.x) == (Point, 2)


def test_options_can_be_changed_for_one_call(cluster):
    f = cluster.function(add).options(name="named", labels={"team": "a"})

    call = f.submit(1)

    assert (call.name, call.labels["team"], call.result(timeout=WAIT)) == ("named", "a", 2)
    with pytest.raises(vcnb.AlreadyExists):
        f.submit(1)
    call.delete()


def train(lr, seed, optimiser="sgd"):
    if lr > 1:
        raise ValueError("diverged")
    return {"loss": lr * seed, "optimiser": optimiser}


def test_a_sweep_is_one_job_and_one_table(cluster):
    before = len(cluster.jobs)

    table = cluster.sweep(train, {"lr": [0.5, 2.0], "seed": [1, 2]}).to_pandas(timeout=WAIT)

    assert len(cluster.jobs) == before + 1
    assert list(table.columns) == ["lr", "seed", "loss", "optimiser", "state", "error"]
    assert list(table["state"]) == ["done", "done", "failed", "failed"]
    assert list(table["loss"][:2]) == [0.5, 1.0]
    assert list(table["error"]) == ["", "", "ValueError: diverged", "ValueError: diverged"]


def test_the_table_of_a_running_sweep_is_what_there_is(cluster, tmp_path):
    sweep = cluster.sweep(waits_for, [{"path": str(tmp_path)}, {"path": str(tmp_path / "later")}])
    until(lambda: sweep.progress().done == 1 and sweep.progress().running == 1)

    assert list(sweep.to_pandas(wait=False)["state"]) == ["done", "running"]
    with pytest.raises(vcnb.WaitTimeout, match=r"to_pandas\(wait=False\)"):
        sweep.to_pandas(timeout=0.1)

    (tmp_path / "later").touch()
    again = cluster.jobs[sweep.name]
    assert list(again.to_pandas(timeout=WAIT)["result"]) == [tmp_path.name, "later"]
    assert again.parameters == [{"path": str(tmp_path)}, {"path": str(tmp_path / "later")}]


def test_options_of_a_decorated_function_hold_for_its_sweep(cluster):
    f = cluster.function(queue="default", labels={"team": "b"})(train)

    sweep = cluster.sweep(f, {"lr": 0.1, "seed": [1, 2]}, retries=1)

    assert sweep.labels["team"] == "b"
    assert sweep.spec["maxRetry"] == 3
    assert [row["state"] for row in (sweep.wait(timeout=WAIT), sweep.rows())[1]] == ["done", "done"]


def test_interrupting_a_wait_leaves_the_call_running(cluster, tmp_path, capsys):
    call = cluster.function(waits_for).submit(str(tmp_path / "go"))
    until(lambda: call.progress().running == 1)
    before = signal.signal(signal.SIGALRM, lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    signal.setitimer(signal.ITIMER_REAL, 0.2)
    try:
        with pytest.raises(KeyboardInterrupt):
            call.result(timeout=WAIT)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)

    assert "goes on" in capsys.readouterr().err
    (tmp_path / "go").touch()
    assert call.result(timeout=WAIT) == "go"
