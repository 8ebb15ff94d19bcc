"""The Volcano Job controller: a pure core with a thin shell."""

from vcnb.controllers.job.behaviour import Behaviour
from vcnb.controllers.job.controller import JobController
from vcnb.controllers.job.states import row_for, rows

__all__ = ["Behaviour", "JobController", "row_for", "rows"]
