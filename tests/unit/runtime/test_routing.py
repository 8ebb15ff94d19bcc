"""Which worker looks after a job."""

from __future__ import annotations

import pytest

from vcnb.controllers.runtime import fnv1_32, worker_of

VECTORS = [
    ("default/job1", 3681646989, 0),
    ("test/job1", 1265497262, 2),
    ("ns1/train-resnet", 2067614640, 0),
    ("default/a", 1365627460, 1),
]


@pytest.mark.parametrize(("key", "value", "worker"), VECTORS)
def test_volcanos_vectors(key: str, value: int, worker: int):
    assert fnv1_32(key.encode()) == value
    assert worker_of(key, 3) == worker


def test_one_worker_does_everything():
    assert {worker_of(f"ns/{number}", 1) for number in range(50)} == {0}


def test_every_worker_gets_something():
    assert {worker_of(f"ns/{number}", 4) for number in range(200)} == {0, 1, 2, 3}
