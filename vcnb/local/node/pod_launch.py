"""How the containers of one pod are started: environment, command line, mounts; and commands run in them."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from vcnb.local.node.container import Container
from vcnb.local.node.environment import command_line, container_environment
from vcnb.local.node.launch import Launch, LauncherGone, output_of
from vcnb.local.node.layout import Attempt
from vcnb.local.node.mounts import container_mounts, mount_variables
from vcnb.local.node.probes import ProbeTarget
from vcnb.local.node.runtimes import DEFAULT_TERMINATION_LOG
from vcnb.local.node.services import NodeServices
from vcnb.local.node.volumes import Volume
from vcnb.resources import names
from vcnb.store.protocol import Obj

__all__ = ["PodLaunch"]


class PodLaunch:
    """Makes the launches of a pod. ``draft`` is the pod with its addresses, ``volumes`` what has been provided by then."""

    def __init__(
        self, node: NodeServices, address: str, draft: Callable[[], Obj], volumes: Callable[[], Mapping[str, Volume]]
    ) -> None:
        self._node = node
        self._address = address
        self._draft = draft
        self._volumes = volumes
        self._numbers = itertools.count(1)

    @property
    def hostname(self) -> str:
        """The pod's host name: ``spec.hostname``, else its name."""
        pod = self._draft()
        return str(pod["spec"].get("hostname") or pod["metadata"]["name"])

    @property
    def _namespace(self) -> str:
        return str(self._draft()["metadata"].get("namespace") or "default")

    def launch_of(self, spec: Mapping[str, Any], attempt: Attempt) -> Launch:
        """How to start an attempt of a container. Raises MissingObject."""
        env = self._environment(spec, attempt)
        cwd = self._cwd(spec)
        runtime = self._node.runtime.for_pod(self._draft())
        mounts = container_mounts(spec, self._volumes(), env) if runtime.mounts else []
        if runtime.mounts:
            mounts = [*self._node.own_mounts(self._namespace, spec, attempt), *mounts]
        return Launch(
            argv=command_line(spec, env),
            env=env,
            cwd=cwd,
            directory=attempt.path,
            log=attempt.log,
            room=runtime.room(self.hostname, mounts, cwd),
        )

    def _cwd(self, spec: Mapping[str, Any]) -> str:
        return str(self._node.cwd / str(spec.get("workingDir") or ""))

    def _environment(self, spec: Mapping[str, Any], attempt: Attempt) -> dict[str, str]:
        inside = self._node.runtime.for_pod(self._draft()).mounts
        log = str(spec.get("terminationMessagePath") or DEFAULT_TERMINATION_LOG)
        message_file = log if inside else str(attempt.termination_log)
        base = {
            **self._node.base_env,
            "PWD": self._cwd(spec),
            "HOSTNAME": self.hostname,
            "VCNB_POD_IP": self._address,
            "VCNB_TERMINATION_LOG": message_file,
            names.ENV_OUTPUT_FILE: message_file,  # where a flow reads its nodes' outputs
            **({} if inside else mount_variables(spec, self._volumes())),
        }
        return container_environment(self._draft(), spec, self._node.sources(self._namespace), base)

    def probe_target(self, spec: Mapping[str, Any], container: Container) -> ProbeTarget:
        """Where the probes and hooks of a container go."""
        ports = {port["name"]: int(port["containerPort"]) for port in spec.get("ports") or () if port.get("name")}

        async def execute(command: Sequence[str], timeout: float) -> tuple[int | None, str]:
            return await self._execute(spec, container, command, timeout)

        return ProbeTarget(self._address, ports, execute)

    async def _execute(
        self, spec: Mapping[str, Any], container: Container, command: Sequence[str], timeout: float
    ) -> tuple[int | None, str]:
        attempt = self._node.layout.pod(self._draft()).attempt(container.name, container.state.restarts)
        output = attempt.path / f"exec-{next(self._numbers)}"
        env = self._environment(spec, attempt)
        launch = Launch(tuple(command), env, self._cwd(spec), log=output, enter=container.room())
        try:
            return await self._node.launcher.execute(launch, timeout), output_of(output)
        except LauncherGone as error:
            return 1, str(error)
        finally:
            output.unlink(missing_ok=True)
