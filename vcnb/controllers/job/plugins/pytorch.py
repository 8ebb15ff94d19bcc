"""Plugin ``pytorch``: the variables that ``torch.distributed`` reads to form a process group."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from vcnb.controllers.job.plugins.flags import Flag
from vcnb.controllers.job.plugins.layout import Layout, TaskLayout, layout_of
from vcnb.controllers.job.plugins.plugin import (
    Plugin,
    edit_containers,
    pod_index,
    pod_number,
    pod_task,
    with_env,
    with_port,
)
from vcnb.store.protocol import Obj

__all__ = ["PytorchPlugin", "wait_script"]

WAIT_CONTAINER = "wait-for-master"
POLL_SECONDS = 2


class PytorchPlugin(Plugin):
    """Adds ``MASTER_ADDR``, ``MASTER_PORT``, ``WORLD_SIZE`` and, to masters and workers, ``RANK``; and the port.

    Ranks and the world's size count pods, not GPUs. With ``--wait-master-enabled`` each worker first waits in an
    initContainer until the master listens. A Job without the master task gets nothing (admission warns of it).
    """

    name: ClassVar[str] = "pytorch"
    flags: ClassVar[tuple[Flag, ...]] = (
        Flag("master", "master", "task of the master"),
        Flag("worker", "worker", "task of the workers"),
        Flag("port", 23456, "MASTER_PORT and the container port"),
        Flag("wait-master-enabled", default=False, help="workers wait until the master listens"),
        Flag("wait-master-timeout", 300, "seconds to wait"),
        Flag("wait-master-image", "busybox:1.36.1", "image of the waiting container"),
    )

    def on_pod_create(self, pod: dict[str, Any], job: Obj) -> None:
        layout = layout_of(job)
        master = layout.task(self.arguments.text("master"))
        if master is None:
            return
        port = self.arguments.number("port")
        arguments = tuple(self.arguments.values.items())
        entries = list(layout.derived((self.name, arguments), lambda: self._world(layout, master, port)))
        task = pod_task(pod)
        rank = self._rank(pod, task, master)
        if rank is not None:
            entries.append({"name": "RANK", "value": rank})
        wins = self.behaviour.template_wins
        edit_containers(
            pod,
            lambda c: with_port(with_env(c, entries, template_wins=wins), "pytorchjob-port", port),
            init=False,
        )
        if self.arguments.on("wait-master-enabled") and task == self.arguments.text("worker"):
            self._wait(pod, master.host(0), port)

    def _world(self, layout: Layout, master: TaskLayout, port: int) -> tuple[Mapping[str, Any], ...]:
        size = master.replicas + layout.replicas(self.arguments.text("worker"))
        values = (("MASTER_ADDR", master.host(0)), ("MASTER_PORT", str(port)), ("WORLD_SIZE", str(size)))
        return tuple({"name": name, "value": value} for name, value in values)

    def _rank(self, pod: Mapping[str, Any], task: str, master: TaskLayout) -> str | None:
        """The pod's rank; upstream gives every master 0 and counts the workers from 1, however many masters there are."""
        every = self.behaviour.rank_every_master
        if task == master.name:
            return pod_index(pod) if every else "0"
        if task != self.arguments.text("worker"):
            return None
        return str(pod_number(pod, self.name) + (master.replicas if every else 1))

    def _wait(self, pod: dict[str, Any], host: str, port: int) -> None:
        spec = pod["spec"]
        present = spec.get("initContainers") or ()
        if any(container.get("name") == WAIT_CONTAINER for container in present):
            return
        script = wait_script(host, port, self.arguments.number("wait-master-timeout"))
        container = {
            "name": WAIT_CONTAINER,
            "image": self.arguments.text("wait-master-image"),
            "command": ["sh", "-c", script],
        }
        spec["initContainers"] = [*present, container]


def wait_script(host: str, port: int, timeout: int) -> str:
    """A shell script that ends with 0 once ``host:port`` accepts connections, and with 1 after ``timeout`` seconds.

    It tries every 2 s, with ``nc`` or, where there is none, with the shell's own ``/dev/tcp``, bash's, or Python; the time
    that an attempt itself takes is not counted.
    """
    by_python = f'import socket; socket.create_connection(("{host}", {port}), 5)'
    return f"""\
answers() {{
  nc -z {host} {port} && return
  (: > /dev/tcp/{host}/{port}) && return
  bash -c ': > /dev/tcp/{host}/{port}' && return
  python3 -c '{by_python}'
}}
waited=0
until answers 2>/dev/null; do
  if [ "$waited" -ge {timeout} ]; then
    echo "{host}:{port} does not answer after {timeout} s" >&2
    exit 1
  fi
  echo "waiting for {host}:{port}"
  sleep {POLL_SECONDS}
  waited=$((waited + {POLL_SECONDS}))
done
"""
