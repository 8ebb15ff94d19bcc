"""The statuses of cells that never ran."""

from __future__ import annotations

from typing import Any

__all__ = ["keep_pending"]


def keep_pending(nb_man: Any) -> None:
    """Keep papermill from calling cells completed that never ran: at the end it does so unless one has failed."""
    complete = nb_man.notebook_complete

    def truthful(**options: Any) -> None:
        before = [cell.metadata.papermill["status"] for cell in nb_man.nb.cells]
        nb_man_save, nb_man.save = nb_man.save, lambda **_: None
        try:
            complete(**options)
        finally:
            nb_man.save = nb_man_save
        for cell, status in zip(nb_man.nb.cells, before, strict=True):
            cell.metadata.papermill["status"] = status
        nb_man.save()

    nb_man.notebook_complete = truthful
