"""What a running notebook tells, applied to it."""

from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from vcnb.client.functions.glue import glued
from vcnb.client.functions.transcript import Transcript

PRINTED = {"output_type": "stream", "name": "stdout", "text": "x"}


def transcript(*messages):
    cells = [new_code_cell("1"), new_markdown_cell("# two"), new_code_cell("3")]
    made = Transcript(new_notebook(cells=cells))
    for message in messages:
        made.take(message)
    return made


def started(index, at=10.0):
    return {"type": "cell", "index": index, "status": "running", "started": at}


def ended(index, status="completed", at=11.5, outputs=()):
    return {
        **started(index),
        "status": status,
        "ended": at,
        "outputs": list(outputs),
        "execution_count": index + 1,
        "metadata": {},
    }


def statuses(made):
    return [cell["metadata"]["papermill"]["status"] for cell in made.notebook["cells"]]


def test_cells_are_pending_then_running_then_completed_with_their_times():
    made = transcript()
    assert statuses(made) == ["pending"] * 3

    made.take(started(0))
    assert statuses(made)[0] == "running"

    made.take(ended(0, outputs=[PRINTED]))
    cell = made.notebook["cells"][0]
    assert (statuses(made)[0], cell["outputs"], cell["execution_count"]) == ("completed", [PRINTED], 1)
    assert cell["metadata"]["papermill"]["duration"] == 1.5
    assert cell["metadata"]["papermill"]["start_time"] == "1970-01-01T00:00:10+00:00"


def test_a_pod_that_is_lost_fails_the_cell_that_ran_and_leaves_the_rest_pending():
    made = transcript(started(0), ended(0), started(1), ended(1), started(2))

    made.close({"state": "failed", "kind": "PodLost", "message": "killed"})

    assert statuses(made) == ["completed", "completed", "failed"]
    assert made.notebook["cells"][2]["outputs"][-1]["evalue"] == "killed"
    assert made.in_words() == "cell 3 (In [ ]): PodLost: killed"
    assert made.notebook["metadata"]["papermill"]["exception"] is True


def test_a_pod_that_is_lost_before_any_cell_says_why():
    made = transcript()

    made.close({"state": "failed", "kind": "PodLost", "message": "no such image"})

    assert (made.failed, made.failure, made.in_words()) == (True, None, "no such image")
    assert statuses(made) == ["pending"] * 3


def test_a_second_attempt_begins_anew():
    made = transcript(started(0), ended(0, "failed", outputs=[PRINTED]), {"type": "start"})

    assert statuses(made) == ["pending"] * 3
    assert made.notebook["cells"][0]["outputs"] == []


def test_a_finished_run_has_its_times_and_what_the_kernel_said_of_itself():
    made = transcript(
        started(0, 10.0), ended(0), {"type": "end", "state": "done", "metadata": {"language_info": {"a": 1}}}
    )

    made.close({"state": "failed"})

    whole = made.notebook["metadata"]
    assert (made.failed, whole["papermill"]["exception"], whole["papermill"]["duration"]) == (False, None, 1.5)
    assert whole["language_info"] == {"a": 1}


def test_progress_counts_cells():
    assert str(transcript(started(0), ended(0), started(1)).progress()) == "1 of 3 done, 1 running, 1 pending"


def test_recorded_values_are_found_the_last_one_of_a_name():
    def shown(data):
        return {"outputs": [{"output_type": "display_data", "data": data}]}

    cells = [
        shown({"application/vnd.vcnb.glue+json": {"name": "a", "value": 1}}),
        shown({"application/vnd.vcnb.glue+json": {"name": "a", "value": [2]}}),
        shown({"application/scrapbook.scrap.json+json": {"name": "b", "data": 3}}),
        shown({"application/papermill.record+json": {"c": 4}}),
        {"outputs": [PRINTED]},
        {},
    ]

    assert glued(cells) == {"a": [2], "b": 3, "c": 4}
