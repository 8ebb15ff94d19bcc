"""Clusters whose pods are sandboxes with host names and mounts, as anybody gets them by default."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

import pytest

import vcnb
from integration.plugins.plugin_jobs import PATIENCE
from vcnb.client.cluster import Cluster
from vcnb.client.job import JobHandle
from vcnb.local.node.runtimes import detect


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    works, reason = detect()
    if not works and os.environ.get("VCNB_NO_SKIP"):
        pytest.fail(f"there must be a sandbox here: {reason}")
    if not works:
        pytest.skip(f"no sandbox: {reason}")
    with vcnb.connect("memory://") as made:
        yield made


@pytest.fixture
def run(cluster: Cluster) -> Callable[..., JobHandle]:
    """Submit a job and wait for its end; all that its pods said is in the error when it does not complete."""

    def submit_and_wait(job: vcnb.Job) -> JobHandle:
        handle = cluster.submit(job)
        handle.wait(timeout=PATIENCE, check=False)
        assert handle.phase == "Completed", f"{handle.why()}\n{handle.logs()}"
        return handle

    return submit_and_wait
