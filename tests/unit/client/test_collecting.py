"""The garbage collector's thresholds while clusters run."""

import gc

import pytest

import vcnb
from vcnb.client.collecting import THRESHOLDS


@pytest.fixture
def usual():
    before = gc.get_threshold()
    gc.set_threshold(700, 10, 10)
    yield (700, 10, 10)
    gc.set_threshold(*before)


def connect():
    return vcnb.connect("memory://?runtime=simulated&clock=virtual")


def test_they_are_higher_while_a_cluster_runs_and_put_back_after_the_last(usual):
    with connect():
        with connect():
            assert gc.get_threshold() == THRESHOLDS
        assert gc.get_threshold() == THRESHOLDS

    assert gc.get_threshold() == usual


def test_a_users_higher_threshold_is_left_alone(usual):
    gc.set_threshold(100_000, 10, 10)
    with connect():
        assert gc.get_threshold() == (100_000, 10, 10)

    assert gc.get_threshold() == (100_000, 10, 10)


def test_a_user_who_changes_it_meanwhile_keeps_the_change(usual):
    with connect():
        gc.set_threshold(900, 10, 10)

    assert gc.get_threshold() == (900, 10, 10)
