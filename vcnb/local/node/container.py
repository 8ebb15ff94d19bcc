"""One container of a pod: its attempts, one after the other, until it is not started any more."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Literal, Protocol

from vcnb.clock import Clock
from vcnb.local.node.backoff import pause, restart_delay
from vcnb.local.node.environment import MissingObject
from vcnb.local.node.launch import Launch, Launcher, LauncherGone
from vcnb.local.node.layout import LOST_STAGE, Attempt, Exit, PodDirectory, Started
from vcnb.local.node.probes import ProbeTarget, watch_probe
from vcnb.local.node.processes import Process, boot_id, find_process, kill_session
from vcnb.local.node.status import ContainerKind, ContainerState, Ended
from vcnb.local.node.termination import termination_message

__all__ = ["Container", "ContainerHost"]

_RETRY_CONFIG = 10.0
"""Seconds until a missing ConfigMap or Secret is looked for again, should nobody tell that it has come."""
_KILLED = 128 + signal.SIGKILL


class ContainerHost(Protocol):
    """What a container needs of its pod."""

    clock: Clock
    launcher: Launcher
    directory: PodDirectory
    restart_policy: str
    stopping: asyncio.Event
    """Set when no container is to be started any more."""
    config_changed: asyncio.Event

    def launch_of(self, spec: Mapping[str, Any], attempt: Attempt) -> Launch:
        """How to start an attempt. Raises MissingObject."""
        ...

    def changed(self) -> None:
        """Some container's state has changed."""
        ...

    def event(self, type: Literal["Normal", "Warning"], reason: str, message: str) -> None:
        """Tell about the pod."""
        ...

    def stop_one(self, container: Container) -> None:
        """Stop one container, with its grace period; it may be started again."""
        ...

    def probe_target(self, spec: Mapping[str, Any], container: Container) -> ProbeTarget:
        """Where a container's probes go."""
        ...


class Container:
    """Starts a container, waits for its end, and starts it again as its restart policy says."""

    def __init__(self, spec: Mapping[str, Any], kind: ContainerKind, host: ContainerHost) -> None:
        self.spec = spec
        self.kind: ContainerKind = kind
        self.state = ContainerState(spec["name"], str(spec.get("image") or ""), kind)
        self.tried = asyncio.Event()
        """Set once the first attempt runs or has failed to."""
        self.ready_to_go_on = asyncio.Event()
        """Set once it has started as far as its startup probe is concerned, or is over."""
        self._host = host
        self._policy = "Always" if kind == "sidecar" else host.restart_policy
        if kind == "init" and self._policy == "Always":
            self._policy = "OnFailure"
        self._attempt: Attempt | None = None
        self._process: Process | None = None
        self._ended: asyncio.Future[None] | None = None
        self._durations: list[float] = []
        self._probes: list[asyncio.Task[None]] = []
        self._kill_reason = ""
        self._launching: asyncio.Future[None] | None = None
        """Done once the program that is being launched runs or has failed to: who stops the container waits for it."""
        self._kill_asked = False

    @property
    def name(self) -> str:
        """The container's name."""
        return self.state.name

    # What a former agent left

    def recall(self) -> None:
        """Learn from disk what became of the attempts of a former agent; one that still runs is taken over."""
        for attempt in self._host.directory.attempts(self.name):
            started = attempt.started() or attempt.abandon()
            if (started is None or not started.shim) and attempt.exit() is None:
                self._host.directory.forget(attempt)
                continue
            process = started.process() if started is not None and attempt.exit() is None else None
            if process is not None and started is not None:
                self._runs(attempt, process, started.started)
            else:
                self._over(attempt, started)

    def _over(self, attempt: Attempt, started: Started | None) -> None:
        self._attempt = attempt
        begun = started.started if started is not None and started.started else None
        ended = self._end_of(attempt, begun)
        self.state = replace(self.state, restarts=attempt.number)
        self._take_end(ended)

    # Running

    async def run(self) -> None:
        """Until the container is final, or the pod is stopping and nothing of it runs."""
        try:
            while not self.state.final:
                if self._process is None:
                    if await self._wait_for_turn():
                        return
                    await self._start()
                if self._ended is not None:
                    await self._ended
                    self._finish_attempt()
        finally:
            self._stop_probes()
            self.tried.set()
            self.ready_to_go_on.set()

    async def _wait_for_turn(self) -> bool:
        """Wait for the back-off; whether the pod is stopping instead."""
        delay = 0.0
        if self.state.ended is not None or self.state.last is not None:
            last = self.state.ended or self.state.last
            assert last is not None
            delay = restart_delay(self._durations) - max(self._host.clock.time() - last.exit.finished, 0.0)
        if delay > 0:
            text = f"back-off {delay:.0f}s restarting failed container={self.name}"
            self.state = self.state.waiting("CrashLoopBackOff", text)
            self._host.changed()
            self._host.event("Warning", "BackOff", text)
        return await pause(self._host.clock, delay, self._host.stopping)

    async def _start(self) -> None:
        """Start the next attempt; the state says how that went."""
        number = self._attempt.number + 1 if self._attempt is not None else 0
        attempt = self._host.directory.attempt(self.name, number)
        launch = await self._launch(attempt)
        if launch is None:
            return
        self._attempt = attempt
        if isinstance(launch, Exit):
            attempt.write_exit(launch)
            self._take_end(Ended(None, launch))
            self._tell_error()
            return
        self._launching = asyncio.get_running_loop().create_future()
        try:
            await self._launched(attempt, launch)
        finally:
            self._launching.set_result(None)
            self._launching = None
        if self._kill_asked:
            self.kill()
        self._tell_error()

    async def _launched(self, attempt: Attempt, launch: Launch, retries: int = 2) -> None:
        try:
            report = await self._host.launcher.launch(launch)
            started_at = self._host.clock.time()
            process = report.process() if report.event == "started" else None
        except LauncherGone:
            # It may have started the program or not; either way what is on disk settles it.
            started = attempt.abandon()
            if (started is None or not started.shim) and retries:
                self._host.directory.forget(attempt)
                attempt.create()
                await self._launched(attempt, launch, retries - 1)
                return
            started_at = started.started if started is not None else self._host.clock.time()
            process = started.process() if started is not None else None
        if process is not None:
            self._runs(attempt, process, started_at)
        else:
            self._take_end(self._end_of(attempt, started_at, live=True))

    def _tell_error(self) -> None:
        error = self.state.ended.exit.error if self.state.ended is not None else ""
        if error:
            self._host.event("Warning", "Failed", f"Error: {error}")

    async def _launch(self, attempt: Attempt) -> Launch | Exit | None:
        """How to start it, how it ended before it started, or None when the pod stops while something is missing."""
        while not self._host.stopping.is_set():
            self._host.config_changed.clear()
            try:
                attempt.create()
                launch = self._host.launch_of(self.spec, attempt)
            except MissingObject as error:
                if self.state.message != str(error):
                    self.state = self.state.waiting("CreateContainerConfigError", str(error))
                    self._host.event("Warning", "Failed", f"Error: {error}")
                    self.tried.set()
                    self._host.changed()
                await pause(self._host.clock, _RETRY_CONFIG, self._host.config_changed, self._host.stopping)
                continue
            except OSError as error:
                return Exit(128, 0, self._host.clock.time(), stage="node", error=f"{error.strerror}: {error.filename}")
            if not launch.argv:
                text = (
                    "no command: images are not pulled here, so the entrypoint of "
                    f"{self.state.image or 'the image'} is not known; set command or args"
                )
                return Exit(127, 0, self._host.clock.time(), stage="exec", error=text)
            return launch
        return None

    def _runs(self, attempt: Attempt, process: Process, started: float) -> None:
        loop = asyncio.get_running_loop()
        self._attempt, self._process = attempt, process
        self._ended = ended = loop.create_future()

        def on_end() -> None:
            if not ended.done():
                ended.set_result(None)

        process.on_end(loop, on_end)
        identity = f"vcnb://{self._host.directory.uid}/{self.name}/{attempt.number}"
        self.state = self.state.running(started, attempt.number, identity)
        self._kill_reason = ""
        if not self.spec.get("startupProbe"):
            self.state = replace(self.state, startup_done=True, ready=not self.spec.get("readinessProbe"))
            self.ready_to_go_on.set()
        self.tried.set()
        self._host.changed()
        self._start_probes()

    def _finish_attempt(self) -> None:
        assert self._attempt is not None
        self._process = self._ended = None
        self._stop_probes()
        self._take_end(self._end_of(self._attempt, self.state.started, live=True))
        self._tell_error()

    def _end_of(self, attempt: Attempt, started: float | None, *, live: bool = False) -> Ended:
        """How an attempt ended, by its exit.json; without one its shim was killed, and so is what it left."""
        end = attempt.exit()
        if end is None:
            end = _lost(attempt.started(), self._host.clock.time())
            attempt.write_exit(end)
        if live:
            end = replace(end, finished=max(self._host.clock.time(), started or 0.0))
        return Ended(started, end, termination_message(self.spec, attempt, end) or self._kill_reason)

    def _take_end(self, ended: Ended) -> None:
        begun = ended.started if ended.started is not None else ended.exit.finished
        self._durations.append(max(ended.exit.finished - begun, 0.0))
        final = self._is_final(ended)
        self.state = self.state.terminated(ended, final=final)
        if self._attempt is not None:
            self.state = replace(self.state, restarts=self._attempt.number)
        self.tried.set()
        if final:
            self.ready_to_go_on.set()
        self._host.changed()

    def _is_final(self, ended: Ended) -> bool:
        """Whether the restart policy leaves it at that. What could never start will not start the next time, either."""
        if self._host.stopping.is_set() or self._policy == "Never":
            return True
        if ended.exit.error and not ended.exit.lost and len(self._durations) == 1:
            return True
        return self._policy == "OnFailure" and ended.exit.code == 0

    # Ending

    async def stop(self, grace: float, deadline_hit: asyncio.Event) -> None:
        """preStop, SIGTERM, and SIGKILL after ``grace`` seconds or as soon as ``deadline_hit`` is set."""
        if self._launching is not None:
            await asyncio.shield(self._launching)
        ended, process = self._ended, self._process
        if ended is None or process is None:
            return
        self._stop_probes()
        until = self._host.clock.time() + grace
        hook = ((self.spec.get("lifecycle") or {}).get("preStop") or {}).get("exec")
        if hook and grace > 0 and not deadline_hit.is_set():
            target = self._host.probe_target(self.spec, self)
            code, output = await target.execute(hook.get("command") or (), grace)
            if code != 0:
                self._host.event("Warning", "FailedPreStopHook", output or f"preStop hook of {self.name} failed")
        if not ended.done() and grace > 0 and not deadline_hit.is_set():
            process.signal(signal.SIGTERM)
            await pause(self._host.clock, until - self._host.clock.time(), ended, deadline_hit)
        if not ended.done():
            self.kill()
        await asyncio.wait({ended})

    def kill(self) -> None:
        """Kill it and all it has started, at once."""
        if self._launching is not None:
            self._kill_asked = True
        if self._process is not None and self._ended is not None and not self._ended.done():
            self._process.signal(signal.SIGUSR1)

    def let_go(self) -> None:
        """Stop watching; the container goes on without this agent."""
        self._stop_probes()
        if self._process is not None and self._ended is not None and not self._ended.done():
            self._process.forget(asyncio.get_running_loop())
        self._process = None

    def room(self) -> int | None:
        """The process id of the sandbox it runs in; None when it runs in none."""
        started = self._attempt.started() if self._attempt is not None else None
        return started.room or None if started is not None else None

    # Probes

    def _start_probes(self) -> None:
        startup = self.spec.get("startupProbe")
        if startup:
            self._probe(startup, self._startup_told)
        else:
            self._start_later_probes()

    def _start_later_probes(self) -> None:
        if self.spec.get("readinessProbe"):
            self._probe(self.spec["readinessProbe"], self._readiness_told)
        if self.spec.get("livenessProbe"):
            self._probe(self.spec["livenessProbe"], self._liveness_told)

    def _probe(self, probe: Mapping[str, Any], told: Callable[[bool, str], bool]) -> None:
        target = self._host.probe_target(self.spec, self)
        self._probes.append(asyncio.create_task(watch_probe(probe, target, self._host.clock, told)))

    def _startup_told(self, ok: bool, message: str) -> bool:
        if not ok:
            self._unhealthy("Startup", message, kill=True)
            return False
        self.state = replace(self.state, startup_done=True, ready=not self.spec.get("readinessProbe"))
        self.ready_to_go_on.set()
        self._host.changed()
        self._start_later_probes()
        return False

    def _readiness_told(self, ok: bool, message: str) -> bool:
        if not ok:
            self._unhealthy("Readiness", message, kill=False)
        self.state = replace(self.state, ready=ok)
        self._host.changed()
        return True

    def _liveness_told(self, ok: bool, message: str) -> bool:
        if not ok:
            self._unhealthy("Liveness", message, kill=True)
        return ok

    def _unhealthy(self, which: str, message: str, *, kill: bool) -> None:
        self._host.event("Warning", "Unhealthy", f"{which} probe failed: {message}")
        if kill:
            self._kill_reason = f"{which.lower()} probe failed: {message}"
            self._host.event(
                "Normal", "Killing", f"Container {self.name} failed {which.lower()} probe, will be restarted"
            )
            self._host.stop_one(self)

    def _stop_probes(self) -> None:
        probes, self._probes = self._probes, []
        for task in probes:
            if task is not asyncio.current_task():
                task.cancel()


def _lost(record: Started | None, now: float) -> Exit:
    """The end of an attempt whose shim was killed before it could tell; whatever is left of it is killed."""
    if record is not None:
        kill_leftovers(record)
    text = "the process that watched over this container was killed, and the container with it"
    if record is not None and record.boot != boot_id():
        text = "the machine was restarted while this container ran"
    return Exit(_KILLED, signal.SIGKILL, now, stage=LOST_STAGE, error=text)


def kill_leftovers(record: Started) -> None:
    """Kill what is left of an attempt whose shim is gone."""
    if record.boot != boot_id():
        return
    if record.room:
        room = find_process(record.room, record.room_start, record.boot)
        if room is not None:
            room.signal(signal.SIGKILL)
            room.close()
    elif record.main and record.main_start:
        kill_session(record.main, record.main_start)
