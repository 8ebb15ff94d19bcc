"""Items of a call or a map: values, exceptions, what is said of lost pods, rows of a sweep."""

import cloudpickle
import pytest

from vcnb.client.functions.items import Item, ItemState, Progress, RemoteTraceback, end_of_pod
from vcnb.client.functions.sweep import combinations, row_of
from vcnb.errors import CallFailed, JobFailed, VcnbError


class TwoArguments(Exception):
    def __init__(self, first, second):
        super().__init__(f"{first} {second}")


def item(state=ItemState.FAILED, **outcome):
    error = outcome.pop("line", "")
    return Item(3, state, "job-item-3", "job", error, 1, 0.5, outcome)


def test_an_exception_comes_back_with_its_type_its_traceback_and_where_it_was():
    error = item(error=cloudpickle.dumps(KeyError("k")), traceback="Traceback\n  there\n").exception()

    assert (type(error), error.args) == (KeyError, ("k",))
    assert isinstance(error.__cause__, RemoteTraceback)
    assert "  there" in str(error.__cause__)
    assert error.__notes__ == ["(item 3 of job 'job', in pod job-item-3)"]


def test_asking_twice_does_not_add_notes_twice():
    failed = item(error=cloudpickle.dumps(KeyError("k")))

    assert len(failed.exception().__notes__) == len(failed.exception().__notes__) == 1


def test_an_exception_that_cannot_be_built_again_becomes_a_call_failed_with_all_that_is_known():
    outcome = {"reason": "raised", "kind": "TwoArguments", "traceback": "tb", "line": "TwoArguments: a b"}

    error = item(error=cloudpickle.dumps(TwoArguments("a", "b")), **outcome).exception()

    assert isinstance(error, CallFailed)
    assert isinstance(error, JobFailed)
    assert (error.index, error.reason, error.kind, error.remote_traceback) == (3, "raised", "TwoArguments", "tb")
    assert str(error) == "item 3 of job 'job' failed: TwoArguments: a b"


def test_a_stop_iteration_does_not_end_the_coroutine_that_raises_it():
    error = item(error=cloudpickle.dumps(StopIteration()), kind="StopIteration", line="StopIteration").exception()

    assert (type(error), error.kind) == (CallFailed, "StopIteration")


def test_a_value_that_cannot_be_read_here_says_so():
    with pytest.raises(CallFailed, match="cannot be unpickled here: ModuleNotFoundError"):
        _ = item(ItemState.DONE, value=b"cno_such_module\nx\n.").value


def pod(code=1, reason="Error", message=""):
    ended = {"exitCode": code, "reason": reason, "message": message}
    return {"status": {"phase": "Failed", "containerStatuses": [{"state": {"terminated": ended}}]}}


@pytest.mark.parametrize(
    ("ended", "damaged", "words"),
    [
        (pod(137, "OOMKilled"), False, "ran out of memory (OOMKilled); ask for more"),
        (pod(137), False, "exit code 137 (killed from outside, or out of memory)"),
        (pod(1, message="a\nno such image"), False, "exit code 1: no such image"),
        (pod(2, "StartError"), False, "exit code 2, StartError"),
        (pod(0), False, "lost on the way: the pod's log was rotated"),
        (pod(1), True, "lost on the way"),
    ],
)
def test_of_a_pod_that_told_nothing_its_status_tells(ended, damaged, words):
    assert words in end_of_pod(ended, damaged=damaged)["message"]


def test_progress_in_words():
    items = [item(ItemState.DONE), item(ItemState.DONE), item(), item(ItemState.RUNNING)]

    assert str(Progress.of(items)) == "2 of 4 done, 1 failed, 1 running"
    assert Progress.of(items).over is False
    assert Progress.of(items[:3]).over is True


def train(lr, seed=0, **more):
    return lr


def strict(lr, seed):
    return lr


def test_a_grid_is_every_combination_the_last_parameter_fastest_and_constants_stay():
    assert combinations({"lr": [1, 2], "seed": range(2), "name": "x"}, train) == [
        {"lr": 1, "seed": 0, "name": "x"},
        {"lr": 1, "seed": 1, "name": "x"},
        {"lr": 2, "seed": 0, "name": "x"},
        {"lr": 2, "seed": 1, "name": "x"},
    ]


def test_rows_may_be_given_themselves():
    assert combinations([{"lr": 1}, {"lr": 2, "seed": 3}], train) == [{"lr": 1}, {"lr": 2, "seed": 3}]


@pytest.mark.parametrize(
    ("grid", "words"),
    [
        ({}, "sweep of nothing"),
        ([], "sweep of nothing"),
        ({"lr": []}, "'lr' of the sweep has no values"),
        ({"lr": [1], "sed": [2]}, r"strict\(lr, seed\) cannot be called with"),
    ],
)
def test_sweeps_that_make_no_sense_are_refused(grid, words):
    with pytest.raises(VcnbError, match=words):
        combinations(grid, strict)


def test_a_row_has_parameters_results_state_and_error():
    done = item(ItemState.DONE, value=cloudpickle.dumps({"loss": 0.5, "lr": 9}))

    assert row_of({"lr": 1}, done) == {"lr": 1, "loss": 0.5, "result.lr": 9, "state": "done", "error": ""}
    assert row_of({"lr": 1}, item(ItemState.DONE, value=cloudpickle.dumps(7)))["result"] == 7
    assert row_of({"lr": 1}, item(line="ValueError: x")) == {"lr": 1, "state": "failed", "error": "ValueError: x"}
    assert row_of({"state": "CA"}, item(ItemState.RUNNING)) == {"state": "CA", "item.state": "running", "error": ""}
