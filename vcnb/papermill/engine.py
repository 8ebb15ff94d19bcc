"""The engine ``vcnb`` of papermill.

What it does that papermill alone does not:

- a kernel that dies and a cell that runs too long fail *their* cell; the cells after it stay ``pending``, and
  ``metadata.papermill.exception`` says so;
- every failure has its message in the notebook and in the exception (a mistyped magic, a dead kernel, a time-out);
- a job that the notebook submitted, that failed, and at which no cell looked, fails the run, unless it is waived;
- parameters that the notebook does not know are an error, and so are values that cannot be passed;
- when papermill is interrupted or terminated, the job is kept (and named) or cancelled, as asked for.
"""

from __future__ import annotations

from typing import Any

from papermill.engines import Engine

from vcnb.client.functions.parameters import check_parameters
from vcnb.papermill.settings import Settings
from vcnb.papermill.statuses import keep_pending

__all__ = ["VcnbEngine"]


class VcnbEngine(Engine):  # type: ignore[misc] # papermill has no types
    """``--engine vcnb``. Options: see ``vcnb.papermill.settings``; ``execution_timeout`` is in seconds for each cell."""

    @classmethod
    def execute_managed_notebook(cls, nb_man: Any, kernel_name: str, **options: Any) -> None:
        """Run the notebook of ``nb_man``; called by papermill. Raises ParameterError before anything has run."""
        metadata = nb_man.nb.metadata
        settings = Settings.find(options, metadata)
        try:
            check_parameters(nb_man.nb, metadata.get("papermill", {}).get("parameters", {}))
        except Exception:
            metadata.papermill["exception"] = True
            keep_pending(nb_man)
            raise
        if settings.where == "here":
            from vcnb.papermill.here import run_here

            run_here(nb_man, kernel_name, settings, options)
        else:
            from vcnb.papermill.remote import run_as_job

            run_as_job(nb_man, kernel_name, settings, options)
