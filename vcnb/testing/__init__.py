"""A simulated cluster on a virtual clock, for tests of jobs and of controllers.

``cluster.simulator`` of a cluster with ``runtime=simulated`` is a :class:`Simulator`; see there. Whoever builds a cluster
out of parts hands it an :class:`Engine` and a :class:`Bridge` to the engine's loop.
"""

from vcnb.testing.clockwork import Unsettled
from vcnb.testing.engine import Bridge, Engine, Scheduling
from vcnb.testing.references import JobRef, PodRef
from vcnb.testing.simulator import Simulator

__all__ = ["Bridge", "Engine", "JobRef", "PodRef", "Scheduling", "Simulator", "Unsettled"]
