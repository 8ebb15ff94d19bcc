"""Progress without a live front end: one printed line for every change that a reader would want to know."""

from __future__ import annotations

from vcnb.client.job import ENDED, JobHandle
from vcnb.scene.words import mark, span

__all__ = ["report"]


def report(job: JobHandle, timeout: float | None = None) -> None:
    """Print a line at every new phase, and when pods start or end, until the job has ended. Raises WaitTimeout."""
    said = ""
    for state in job.watch(timeout=timeout):
        counts = ", ".join(f"{number} {name}" for name, number in state.counters.items() if number)
        line = f"{mark(state.phase).shape} {job.name}: {state.phase or 'new'}" + (f" ({counts})" if counts else "")
        if line != said:
            print(f"{line}  +{span(state.seconds)}", flush=True)  # noqa: T201 - the front end shows nothing else
            said = line
        if state.phase in ENDED:
            return
