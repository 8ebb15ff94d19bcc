"""The life of a controller process: checks, standby, leading, handing over; what it answers; what it needs."""

from __future__ import annotations

import asyncio
import urllib.error
import urllib.request
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from vcnb.cli.main import main
from vcnb.clock import VirtualClock
from vcnb.controllers.plane import CONTROLLERS, ControlPlane
from vcnb.errors import Forbidden, InvalidState, NotFound, VcnbError
from vcnb.kube.controller.election import LeaseLost
from vcnb.kube.controller.process import ControllerOptions, ControllerProcess
from vcnb.kube.controller.process import Stage as At
from vcnb.kube.controller.serving import Address, serve
from vcnb.kube.controller.volcano import VolcanoActive, volcano_holder
from vcnb.kube.manifests import controller_manifests, rules_for
from vcnb.loop import EngineLoop
from vcnb.resources.kinds import JOB, JOBFLOW, JOBTEMPLATE, LEASE, POD, PODGROUP, QUEUE, Kind
from vcnb.store.faults import FaultInjector
from vcnb.store.memory import MemoryStore
from vcnb.store.protocol import ObjectList


class Server(FaultInjector):
    """A store that may lack a kind, or refuse to list one."""

    def __init__(self, store: MemoryStore) -> None:
        super().__init__(store)
        self.missing: set[Kind] = set()
        self.secret: set[Kind] = set()

    async def list(self, kind: Kind, namespace: str | None = None, **options: Any) -> ObjectList:
        if kind in self.missing:
            raise NotFound("the server could not find the requested resource")
        if kind in self.secret:
            raise Forbidden(f"user may not list {kind.plural}")
        return await super().list(kind, namespace, **options)


class World:
    """A cluster with room for controller processes, on a clock that the test moves."""

    def __init__(self) -> None:
        self.clock = VirtualClock()
        self.memory = MemoryStore(self.clock)
        self.server = Server(self.memory)
        self.running: list[tuple[asyncio.Task[None], asyncio.Event]] = []

    async def setup(self) -> None:
        for name in ("default", "vcnb-system", "volcano-system"):
            await self.memory.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})

    def process(self, store: Any = None, **options: Any) -> ControllerProcess:
        return ControllerProcess(store or self.server, self.clock, ControllerOptions(**options))

    def start(self, process: ControllerProcess) -> tuple[asyncio.Task[None], asyncio.Event]:
        stop = asyncio.Event()
        task = asyncio.ensure_future(process.run(stop))
        self.running.append((task, stop))
        return task, stop

    async def pass_time(self, seconds: float) -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, EngineLoop)
        await loop.idle()
        end = self.clock.time() + seconds
        while (due := self.clock.next_due()) is not None and due <= end:
            self.clock.move_to(due)
            self.clock.fire_due()
            await loop.idle()
        self.clock.move_to(end)
        await loop.idle()

    async def volcano_leads(self, *, ago: float = 0.0) -> None:
        from vcnb.clock import rfc3339

        await self.memory.create(
            {
                "apiVersion": LEASE.api_version,
                "kind": "Lease",
                "metadata": {"name": "vc-controller-manager", "namespace": "volcano-system"},
                "spec": {
                    "holderIdentity": "volcano-0",
                    "leaseDurationSeconds": 15,
                    "renewTime": rfc3339(self.clock.time() - ago),
                },
            }
        )

    async def submit(self, name: str) -> None:
        task = {"name": "w", "replicas": 2, "minAvailable": 2, "template": {"spec": {"containers": []}}}
        await self.memory.create(
            {
                "apiVersion": JOB.api_version,
                "kind": "Job",
                "metadata": {"name": name, "namespace": "default"},
                "spec": {
                    "queue": "default",
                    "schedulerName": "volcano",
                    "minAvailable": 2,
                    "maxRetry": 3,
                    "tasks": [task],
                },
            }
        )

    def phase(self, name: str) -> str | None:
        job = self.memory.peek(JOB, name, "default")
        return ((job or {}).get("status") or {}).get("state", {}).get("phase")


def play(scene: Callable[[World], Awaitable[None]]) -> None:
    async def whole() -> None:
        world = World()
        await world.setup()
        try:
            await scene(world)
        finally:
            for task, _ in world.running:
                task.cancel()
            await asyncio.gather(*(task for task, _ in world.running), return_exceptions=True)
            await world.memory.close()

    with asyncio.Runner(loop_factory=EngineLoop) as runner:
        runner.run(whole())


def test_it_leads_and_runs_jobs():
    async def scene(world: World) -> None:
        process = world.process()
        world.start(process)
        await world.submit("j")
        await world.pass_time(3)

        assert process.stage == At.LEADING
        assert process.ready
        assert process.healthy
        assert world.phase("j") == "Pending"
        assert world.memory.peek(QUEUE, "default") is not None
        assert len(world.memory.peek_all(PODGROUP)) == 1

    play(scene)


@pytest.mark.parametrize("compat", ["default", "strict"])
def test_a_job_that_no_webhook_has_seen_is_completed(compat: str):
    """As ``kubectl apply`` brings it where Volcano's webhooks are not installed; ``strict`` leaves it as it is."""

    async def scene(world: World) -> None:
        world.start(world.process(compat=compat))
        await world.pass_time(1)
        spec = {"tasks": [{"replicas": 2, "template": {"spec": {"containers": []}}}]}
        metadata = {"name": "j", "namespace": "default"}
        await world.memory.create(
            {"apiVersion": JOB.api_version, "kind": "Job", "metadata": metadata, "spec": {"queue": "default", **spec}}
        )
        await world.pass_time(1)

        job = world.memory.peek(JOB, "j", "default")
        assert job is not None
        found = {key: job["spec"].get(key) for key in ("schedulerName", "minAvailable", "maxRetry")}
        filled = {"schedulerName": "volcano", "minAvailable": 2, "maxRetry": 3}
        assert found == (filled if compat == "default" else dict.fromkeys(filled))
        assert job["spec"]["tasks"][0].get("name") == ("default0" if compat == "default" else None)

    play(scene)


@pytest.mark.parametrize("compat", ["default", "strict"])
def test_a_job_that_a_flow_makes_is_complete_from_the_first(compat: str):
    """Also in ``strict``, and also where the template has an explicit 0: it is written once, complete."""

    async def scene(world: World) -> None:
        world.start(world.process(compat=compat))
        await world.pass_time(1)
        pod = {"spec": {"containers": [{"name": "c", "image": "x"}]}}
        template = {"minAvailable": 0, "tasks": [{"replicas": 2, "template": pod}]}
        for kind, name, spec in ((JOBTEMPLATE, "a", template), (JOBFLOW, "f", {"flows": [{"name": "a"}]})):
            metadata = {"name": name, "namespace": "default"}
            await world.memory.create(
                {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata, "spec": spec}
            )
        await world.pass_time(2)

        (job,) = world.memory.peek_all(JOB)
        found = {key: job["spec"].get(key) for key in ("queue", "schedulerName", "minAvailable", "maxRetry")}
        assert found == {"queue": "default", "schedulerName": "volcano", "minAvailable": 2, "maxRetry": 3}
        assert job["spec"]["tasks"][0]["name"] == "default0"
        assert job["metadata"]["generation"] == 1

    play(scene)


def test_a_job_that_says_all_is_not_written_again():
    async def scene(world: World) -> None:
        world.start(world.process())
        await world.pass_time(1)
        await world.submit("j")
        before = world.memory.peek(JOB, "j", "default")
        await world.pass_time(1)

        job = world.memory.peek(JOB, "j", "default")
        assert before is not None
        assert job is not None
        assert job["metadata"]["generation"] == before["metadata"]["generation"]

    play(scene)


def test_stopping_gives_the_lease_up_and_the_next_one_goes_on():
    async def scene(world: World) -> None:
        first, second = world.process(identity="first"), world.process(identity="second")
        task, stop = world.start(first)
        await world.pass_time(1)
        world.start(second)
        await world.pass_time(5)
        standby = second.stage

        stop.set()
        await world.pass_time(3)
        await world.submit("j")
        await world.pass_time(1)

        assert standby == At.STANDBY
        assert task.done()
        assert task.result() is None
        assert first.stage == At.STOPPED
        assert second.stage == At.LEADING
        assert world.phase("j") == "Pending"

    play(scene)


def test_who_stands_by_is_ready_and_changes_nothing():
    async def scene(world: World) -> None:
        world.start(world.process(identity="first"))
        second = world.process(identity="second")
        await world.pass_time(1)
        world.start(second)
        await world.pass_time(30)

        assert second.ready
        assert second.plane is None

    play(scene)


def test_a_lost_lease_ends_the_controllers_at_once():
    async def scene(world: World) -> None:
        process = world.process()
        task, _ = world.start(process)
        await world.pass_time(1)
        world.server.fail_next("update", kind=LEASE, times=None, error="ServerTimeout")

        await world.pass_time(12)
        await world.submit("j")
        await world.pass_time(30)

        with pytest.raises(LeaseLost):
            await task
        assert world.phase("j") is None
        assert not process.ready

    play(scene)


def test_stopping_while_it_stands_by():
    async def scene(world: World) -> None:
        world.start(world.process(identity="first"))
        await world.pass_time(1)
        task, stop = world.start(world.process(identity="second"))
        await world.pass_time(1)

        stop.set()
        await world.pass_time(0)

        assert task.done()
        lease = world.memory.peek(LEASE, "vcnb-controller", "vcnb-system")
        assert lease is not None
        assert lease["spec"]["holderIdentity"] == "first"

    play(scene)


def test_without_election_it_runs_alone():
    async def scene(world: World) -> None:
        process = world.process(leader_elect=False)
        task, stop = world.start(process)
        await world.pass_time(1)
        leading = process.stage
        stop.set()
        await world.pass_time(1)

        assert leading == At.LEADING
        assert task.done()
        assert world.memory.peek_all(LEASE) == []

    play(scene)


# Volcano's own


def test_it_refuses_to_run_beside_volcanos_controllers():
    async def scene(world: World) -> None:
        await world.volcano_leads()
        task, _ = world.start(world.process())
        await world.pass_time(0)

        with pytest.raises(VolcanoActive, match=r"held by volcano-0.*--beside-volcano"):
            await task

    play(scene)


def test_it_runs_beside_them_when_told_to():
    async def scene(world: World) -> None:
        await world.volcano_leads()
        process = world.process(beside_volcano=True, controllers=("jobflow-controller",))
        world.start(process)
        await world.pass_time(30)

        assert process.stage == At.LEADING

    play(scene)


def test_it_ends_when_volcanos_controllers_appear():
    async def scene(world: World) -> None:
        task, _ = world.start(world.process())
        await world.pass_time(5)

        await world.volcano_leads()
        await world.pass_time(11)

        with pytest.raises(VolcanoActive):
            await task

    play(scene)


@pytest.mark.parametrize(("ago", "found"), [(0, "volcano-0"), (40, "volcano-0"), (50, None)])
def test_a_lease_that_is_long_over_holds_nobody_back(ago: float, found: str | None):
    async def scene(world: World) -> None:
        await world.volcano_leads(ago=ago)

        assert await volcano_holder(world.memory, world.clock) == found

    play(scene)


def test_a_lease_that_was_given_up_holds_nobody_back():
    async def scene(world: World) -> None:
        await world.volcano_leads()
        await world.memory.patch(LEASE, "vc-controller-manager", "volcano-system", {"spec": {"holderIdentity": ""}})

        assert await volcano_holder(world.memory, world.clock) is None

    play(scene)


def test_a_lease_that_may_not_be_read_is_no_permission_to_run():
    class Closed(Server):
        async def get(self, *args: Any, **options: Any) -> Any:
            raise Forbidden("user may not get leases")

    async def scene(world: World) -> None:
        with pytest.raises(VcnbError, match="cannot be told"):
            await volcano_holder(Closed(world.memory), world.clock)

    play(scene)


# What is missing on the server


def test_everything_that_is_missing_is_said_at_once():
    async def scene(world: World) -> None:
        world.server.missing = {JOB}
        world.server.secret = {POD}
        task, _ = world.start(world.process())
        await world.pass_time(0)

        with pytest.raises(VcnbError) as caught:
            await task
        assert "the server has no jobs.batch.volcano.sh; have an administrator run: vcnb crds" in str(caught.value)
        assert "no permission to list pods (user may not list pods)" in str(caught.value)

    play(scene)


def test_kinds_of_controllers_that_were_not_chosen_are_not_looked_at():
    async def scene(world: World) -> None:
        world.server.missing = {JOB}
        process = world.process(controllers=("queue-controller",))
        world.start(process)
        await world.pass_time(1)

        assert process.stage == At.LEADING

    play(scene)


def test_a_control_plane_of_some_controllers():
    async def scene(world: World) -> None:
        plane = ControlPlane(world.memory, world.clock, controllers=["queue-controller"], collect_garbage=False)

        assert set(map(str, plane.informers.kinds)) == {"Queue", "PodGroup", "Pod", "Command"}
        for name in ("jobs", "flows"):
            with pytest.raises(InvalidState, match="does not run here"):
                getattr(plane, name)
        with pytest.raises(ValueError, match="no controller is called jobs"):
            ControlPlane(world.memory, world.clock, controllers=["jobs"])

    play(scene)


# HTTP


def ask(url: str, token: str = "") -> tuple[int, str]:
    request = urllib.request.Request(url, headers={"Authorization": f"Bearer {token}"} if token else {})
    try:
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=10) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


def test_what_it_answers():
    async def scene(world: World) -> None:
        process = world.process()
        async with serve(process, Address(port=0), "secret") as served:
            before = await asyncio.to_thread(ask, f"{served.url}/readyz")
            world.start(process)
            await world.pass_time(1)
            health = await asyncio.to_thread(ask, f"{served.url}/healthz")
            ready = await asyncio.to_thread(ask, f"{served.url}/readyz")
            closed = await asyncio.to_thread(ask, f"{served.url}/metrics")
            wrong = await asyncio.to_thread(ask, f"{served.url}/metrics", "Secret")
            status, text = await asyncio.to_thread(ask, f"{served.url}/metrics", "secret")

        assert before == (503, "not ok: starting\n")
        assert health == ready == (200, "ok: leading\n")
        assert closed[0] == wrong[0] == 401
        assert status == 200
        assert "vcnb_leading 1\n" in text
        assert "volcano" in text
        assert served.url.startswith("http://127.0.0.1:")

    play(scene)


def test_a_port_that_is_taken_is_said():
    async def scene(world: World) -> None:
        process = world.process()
        async with serve(process, Address(port=0)) as served:
            port = int(served.url.rpartition(":")[2])
            with pytest.raises(VcnbError, match="choose another --bind"):
                async with serve(process, Address(port=port)):
                    pass

    play(scene)


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("8080", Address("127.0.0.1", 8080)),
        ("127.0.0.1:0", Address("127.0.0.1", 0)),
        (":11251", Address("", 11251)),
        ("[::1]:80", Address("::1", 80)),
    ],
)
def test_addresses(text: str, address: Address):
    assert Address.parse(text) == address


@pytest.mark.parametrize("text", ["", "localhost", "localhost:http", "::1:80", "1:2:3", "1:70000"])
def test_what_is_no_address(text: str):
    with pytest.raises(ValueError, match="is no address"):
        Address.parse(text)


# Manifests


def test_the_manifests_fit_together():
    manifests = controller_manifests(image="registry.example/vcnb:1")
    kinds = [manifest["kind"] for manifest in manifests]
    deployment = manifests[-1]
    (container,) = deployment["spec"]["template"]["spec"]["containers"]

    assert kinds[0] == "Namespace"
    assert kinds[-1] == "Deployment"
    assert container["image"] == "registry.example/vcnb:1"
    assert container["command"] == ["vcnb", "controller", "--lease-namespace=vcnb-system", "--bind=:11251"]
    assert container["securityContext"]["readOnlyRootFilesystem"]
    for manifest in manifests:
        if manifest["kind"].endswith("Binding"):
            (subject,) = manifest["subjects"]
            assert subject == {"kind": "ServiceAccount", "name": "vcnb-controller", "namespace": "vcnb-system"}
            assert (manifest["roleRef"]["kind"], manifest["roleRef"]["name"]) in {
                (other["kind"], other["metadata"]["name"]) for other in manifests
            }


def test_nothing_may_be_done_with_everything():
    for rule in rules_for():
        assert "*" not in [*rule["apiGroups"], *rule["resources"], *rule["verbs"]]


def test_for_one_namespace_only_cluster_wide_kinds_are_cluster_wide():
    manifests = controller_manifests(namespace="team", controllers=("job-controller",))
    everywhere = [
        resource
        for manifest in manifests
        if manifest["kind"] == "ClusterRole"
        for rule in manifest["rules"]
        for resource in rule["resources"]
    ]

    assert sorted(everywhere) == ["leases", "priorityclasses", "queues"]
    assert "--namespace=team" in manifests[-1]["spec"]["template"]["spec"]["containers"][0]["command"]


def command(*arguments: str) -> Any:
    return CliRunner().invoke(main, ["controller", *arguments])


def test_the_command_prints_the_manifests():
    done = command("--manifests", "--image", "i:1", "--controllers", "-queue-controller,-pg-controller")

    assert done.exit_code == 0, done.output
    assert list(yaml.safe_load_all(done.output)) == controller_manifests(image="i:1", controllers=CONTROLLERS[:4])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--controllers", "jobs"], "no controller is called jobs"),
        (["--controllers", "gc-controller,-gc-controller"], "both asked for and left out"),
        (["--beside-volcano"], "needs --controllers"),
        (["--lease-duration", "5"], "must be longer"),
        (["--bind", "nowhere"], "is no address"),
    ],
)
def test_usage_errors(arguments: list[str], words: str):
    done = command(*arguments)

    assert done.exit_code == 2
    assert words in done.output.replace("\n", " ")
