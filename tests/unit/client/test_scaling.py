"""job.scale: replicas, and gang sizes that follow."""

import pytest

from vcnb.client.scaling import scaled
from vcnb.errors import InvalidObject


def job(minimum, *tasks):
    return {
        "metadata": {"name": "j"},
        "spec": {
            "minAvailable": minimum,
            "tasks": [{"name": name, "replicas": replicas, "minAvailable": least} for name, replicas, least in tasks],
        },
    }


def test_a_whole_gang_grows_as_a_whole_gang():
    new, warnings = scaled(job(2, ("w", 2, 2)), {"w": 4}, None)

    assert (new["spec"]["minAvailable"], new["spec"]["tasks"][0]["minAvailable"], warnings) == (4, 4, [])


def test_a_minimum_that_still_fits_stays():
    new, warnings = scaled(job(2, ("w", 4, 2)), {"w": 3}, None)

    assert (new["spec"]["minAvailable"], new["spec"]["tasks"][0]["minAvailable"], warnings) == (2, 2, [])


def test_a_minimum_that_no_longer_fits_is_lowered_with_a_warning():
    new, warnings = scaled(job(3, ("w", 5, 3)), {"w": 2}, None)

    assert (new["spec"]["minAvailable"], new["spec"]["tasks"][0]["minAvailable"]) == (2, 2)
    assert [warning.path for warning in warnings] == ["spec.tasks[0].minAvailable", "spec.minAvailable"]


def test_the_gang_size_may_be_given():
    new, _ = scaled(job(2, ("w", 2, 1)), {"w": 6}, 5)

    assert new["spec"]["minAvailable"] == 5


def test_other_tasks_are_left_alone():
    new, _ = scaled(job(3, ("a", 1, 1), ("b", 2, 2)), {"b": 0}, None)

    assert [task["replicas"] for task in new["spec"]["tasks"]] == [1, 0]


@pytest.mark.parametrize(
    ("replicas", "minimum", "said"),
    [
        ({"worker": 1}, None, "its tasks: w"),
        ({"w": -1}, None, "must be a whole number, 0 or more"),
        ({"w": True}, None, "must be a whole number"),
        ({"w": 2}, 3, "must be from 0 to 2"),
    ],
)
def test_bad_counts_are_refused(replicas, minimum, said):
    with pytest.raises(InvalidObject) as error:
        scaled(job(1, ("w", 2, 1)), replicas, minimum)

    assert said in str(error.value)
