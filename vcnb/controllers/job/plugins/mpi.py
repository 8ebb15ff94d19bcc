"""Plugin ``mpi``: tells the launcher of an MPI program where its workers are."""

from __future__ import annotations

from typing import Any, ClassVar

from vcnb.controllers.job.plugins.flags import Flag
from vcnb.controllers.job.plugins.layout import layout_of
from vcnb.controllers.job.plugins.plugin import Container, Plugin, edit_containers, pod_task, with_env, with_port
from vcnb.store.protocol import Obj

__all__ = ["MpiPlugin"]


class MpiPlugin(Plugin):
    """Declares sshd's port on every container and gives those of the master task ``MPI_HOST``.

    Usual launch: ``mpiexec --host ${MPI_HOST}``. The remote start goes through ssh, so the images must run sshd; admission
    adds the plugins ``svc`` and ``ssh``. A master without a worker task in the Job gets nothing at all.
    """

    name: ClassVar[str] = "mpi"
    flags: ClassVar[tuple[Flag, ...]] = (
        Flag("master", "master", "task that launches"),
        Flag("worker", "worker", "task of the workers"),
        Flag("port", 22, "container port of sshd; ssh's own --ssh-port must agree"),
    )

    def on_pod_create(self, pod: dict[str, Any], job: Obj) -> None:
        entries: tuple[dict[str, Any], ...] = ()
        if pod_task(pod) == self.arguments.text("master"):
            worker = layout_of(job).task(self.arguments.text("worker"))
            if worker is None:
                return
            entries = ({"name": "MPI_HOST", "value": worker.hosts_text},)
        port, wins = self.arguments.number("port"), self.behaviour.template_wins

        def edit(container: Container) -> Container:
            return with_port(with_env(container, entries, template_wins=wins), "mpijob-port", port)

        edit_containers(pod, edit, init=True)
