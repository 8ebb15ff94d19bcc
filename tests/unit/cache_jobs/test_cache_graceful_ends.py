"""A coordinator that ends in good order puts its jobs back; only ends without a word count as failed takeovers."""

from __future__ import annotations

import pytest

from unit.cache_jobs.cache_fakes import MIB, ROOT, Stage, play
from vcnb.cache.jobs.record import JobState
from vcnb.cache.protocol import FailureCode


@pytest.mark.parametrize(("graceful", "state"), [(True, JobState.SUCCEEDED), (False, JobState.FAILED)])
def test_a_notebook_that_is_closed_again_and_again_does_not_end_a_long_load(graceful: bool, state: JobState) -> None:
    async def story(stage: Stage) -> None:
        for worker in stage.workers:
            worker.seconds = 60.0
        job = await stage.submit()
        for _ in range(7):
            coordinator = await stage.coordinator()
            await stage.advance(10)
            if graceful:
                await coordinator.stop()
                assert (await stage.job(job.uuid)).state == JobState.WAITING
            else:
                await coordinator.kill()
        await stage.coordinator()
        ended = await stage.ended(job.uuid)

        assert ended.state == state
        assert ended.reason == ("" if graceful else FailureCode.RECLAIM_LIMIT)

    play(Stage(files={f"{ROOT}/large": 64 * MIB}, workers=1), story)
