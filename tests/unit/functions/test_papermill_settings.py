"""Where the settings of the papermill engine come from."""

import pytest

from vcnb.errors import VcnbError
from vcnb.papermill.settings import Settings


def test_the_defaults():
    assert Settings.find({}, {}) == Settings("job", "keep", None, 5.0)


def test_an_argument_wins_over_a_parameter_over_metadata_over_the_environment(monkeypatch):
    monkeypatch.setenv("VCNB_PAPERMILL_QUEUE", "env")
    metadata = {"vcnb": {"queue": "meta"}, "papermill": {"parameters": {"vcnb_queue": "param"}}}

    assert Settings.find({"queue": "arg"}, metadata).queue == "arg"
    assert Settings.find({}, metadata).queue == "param"
    assert Settings.find({}, {"vcnb": {"queue": "meta"}}).queue == "meta"
    assert Settings.find({}, {"vcnb_queue": "flat"}).queue == "flat"
    assert Settings.find({}, {}).queue == "env"


def test_what_is_ours_is_taken_out_of_the_arguments_and_the_rest_stays():
    given = {"where": "here", "vcnb_linger": "2", "execution_timeout": 3}

    found = Settings.find(given, {})

    assert (found.where, found.linger, given) == ("here", 2.0, {"execution_timeout": 3})


def test_nothing_is_waived_by_the_environment(monkeypatch):
    monkeypatch.setenv("VCNB_PAPERMILL_WAIVE", "1")

    assert Settings.find({}, {}).waive is None


@pytest.mark.parametrize("wrong", [{"where": "there"}, {"on_exit": "ask"}, {"linger": "long"}, {"retries": "x"}])
def test_impossible_values_are_refused(wrong):
    with pytest.raises(VcnbError, match="papermill engine vcnb"):
        Settings.find(wrong, {})
