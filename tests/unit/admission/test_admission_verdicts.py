"""The verdict table of Volcano's admission, row by row (rows of kinds that vcnb does not have are left out)."""

from __future__ import annotations

from typing import Any

import pytest

from unit.admission.samples import (
    FakeWorld,
    container,
    create,
    cronjob,
    delete,
    flow,
    job,
    node,
    pod,
    podgroup,
    queue,
    stored,
    task,
    update,
)
from vcnb.admission import Rules, review

FAILED = {"event": "PodFailed", "action": "RestartJob"}
EVERY = {"event": "*", "action": "AbortJob"}
CLAIM = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
TIERS = {"highestTierAllowed": 1, "highestTierName": "rack"}


def base(**spec: Any) -> Any:
    return job(task("task-1", 1), minAvailable=1, **spec)


def privileged(field: str) -> Any:
    inside = container(name="p", securityContext={"privileged": True})
    return task("task-1", 1, template={"spec": pod(**{field: [inside]})})


def part(total: int, size: int, replicas: int, **fields: Any) -> Any:
    policy = {"totalPartitions": total, "partitionSize": size}
    if "minPartitions" in fields:
        policy["minPartitions"] = fields.pop("minPartitions")
    return job(task("a", replicas, partitionPolicy=policy, **fields))


def numa(**resources: Any) -> Any:
    spec = pod(containers=[container(resources=resources)])
    return job(task("a", 1, topologyPolicy="restricted", template={"spec": spec}))


def depends(**edges: list[str]) -> Any:
    return job(*(task(name, 1, dependsOn={"name": targets} if targets else None) for name, targets in edges.items()))


JOBS: list[tuple[str, Any, bool]] = [
    ("1 base", base(), True),
    ("1 evicted", base(policies=[{"event": "PodEvicted", "action": "RestartTask"}]), True),
    ("1 privileged container", job(privileged("containers")), True),
    ("1 privileged initContainer", job(privileged("initContainers")), True),
    ("2", job(task("duplicated-task-1", 1), task("duplicated-task-1", 1)), False),
    ("3 no tasks", {**base(), "spec": {"minAvailable": 1}}, False),
    ("3 empty", {**base(), "spec": {"minAvailable": 1, "tasks": []}}, False),
    ("4", job(task("task-1", 1), minAvailable=2), False),
    ("5 minAvailable", job(minAvailable=-1), False),
    ("5 maxRetry", job(maxRetry=-1), False),
    ("5 ttl", job(ttlSecondsAfterFinished=-1), False),
    ("5 replicas", job(task(replicas=-1)), False),
    ("5 task minAvailable", job(task(minAvailable=-1)), False),
    ("6", job(task(replicas=3, minAvailable=5)), False),
    ("7", job(task("Task-1")), False),
    ("8", job(plugins={"big_plugin": []}), False),
    ("9", job(policies=[{"event": "PodFailed", "action": "AbortJob"}, FAILED]), False),
    ("10", job(policies=[{"events": ["PodFailed", "PodFailed"], "action": "RestartJob"}]), True),
    ("11", job(policies=[{**FAILED, "exitCode": -1}]), False),
    ("12", job(policies=[{"action": "RestartJob"}]), False),
    ("13 fake", job(policies=[{"event": "someFakeEvent", "action": "AbortJob"}]), False),
    ("13 PodRunning", job(policies=[{"event": "PodRunning", "action": "AbortJob"}]), False),
    ("14 fake", job(policies=[{"event": "PodFailed", "action": "someFakeAction"}]), False),
    ("14 none", job(policies=[{"event": "PodFailed"}]), False),
    ("15", job(policies=[{"exitCode": 0, "action": "AbortJob"}]), False),
    ("16", job(policies=[{"exitCode": 1}, {"exitCode": 1}]), False),
    ("17 job", job(policies=[EVERY, FAILED]), False),
    ("17 task", job(task(policies=[EVERY, FAILED])), False),
    ("18 two lists", job(task(policies=[FAILED]), policies=[EVERY]), True),
    ("18 exit code", job(policies=[EVERY, {"exitCode": 3, "action": "RestartJob"}]), True),
    ("19", job(volumes=[{"mountPath": "", "volumeClaimName": "a"}]), False),
    ("20", job(volumes=[{"mountPath": "/var", "volumeClaimName": name} for name in ("pvc1", "pvc2")]), False),
    ("21", job(volumes=[{"mountPath": "/var"}]), False),
    ("22", job(volumes=[{"mountPath": "/var", "volumeClaimName": "a", "volumeClaim": CLAIM}]), False),
    ("23", job(queue="jobqueue"), False),
    ("24 closed", job(queue="closed"), False),
    ("25 root", job(queue="root"), False),
    ("25 parent", job(queue="parent"), False),
    ("25 child", job(queue="child"), True),
    ("26 ok", depends(t1=["t2"], t2=[]), True),
    ("26 no", depends(t1=["t3"], t2=[]), False),
    ("27 circle", depends(t1=["t2"], t2=["t1"]), False),
    ("27 self", depends(t1=[], t2=["t2"]), False),
    ("27 ok", depends(t1=["t2", "t3"], t2=[], t3=["t2"]), True),
    ("28", depends(t1=["t2", "t2"], t2=[]), False),
    ("29 both", job(task("launcher"), task("worker"), plugins={"mpi": ["--master=launcher"]}), True),
    ("29 launcher", job(task("launcher"), plugins={"mpi": ["--master=launcher"]}), True),
    ("29 worker", job(task("worker"), plugins={"mpi": ["--master=launcher"]}), False),
    ("30 size", part(2, 0, 0), False),
    ("30 total", part(0, 2, 0), False),
    ("31", part(2, 4, 8, minPartitions=1), True),
    ("32 no", part(4, 2, 8, minPartitions=1, minAvailable=4), False),
    ("32 ok", part(4, 2, 8, minPartitions=2, minAvailable=4), True),
    ("33", part(2, 2, 4), True),
    ("34 job", job(networkTopology=TIERS), False),
    (
        "34 partition",
        job(task("a", 2, partitionPolicy={"totalPartitions": 1, "partitionSize": 2, "networkTopology": TIERS})),
        False,
    ),
    ("35 limit", numa(limits={"cpu": "1"}), True),
    ("35 half", numa(requests={"cpu": "500m"}), False),
    ("35 none", numa(), False),
]


@pytest.mark.parametrize("strict", [True, False], ids=["strict", "lenient"])
@pytest.mark.parametrize(("obj", "allowed"), [row[1:] for row in JOBS], ids=[row[0] for row in JOBS])
def test_jobs(obj: Any, allowed: bool, strict: bool) -> None:
    queues = (
        queue("closed", state="Closed"),
        queue("parent", state="Open"),
        queue("child", state="Open", parent="parent"),
    )

    answer = create(obj, *queues, strict=strict)

    # An exit-code policy without an action is row 16's own; alone it is refused only when a person wrote it.
    assert answer.allowed == allowed, answer.problems


def test_row_16_one_exit_code_policy_alone_is_accepted_of_a_controller() -> None:
    assert create(job(policies=[{"exitCode": 1}]), strict=False).allowed


def test_row_24_a_new_queue_without_a_state_is_open_here_and_not_upstream() -> None:
    new = queue("q")

    assert create(job(queue="q"), new).allowed
    assert not create(job(queue="q"), new, rules=Rules.upstream()).allowed


def scaled(old: Any, replicas: int | None = None, **spec: Any) -> Any:
    tasks = [{**old["spec"]["tasks"][0], **({} if replicas is None else {"replicas": replicas})}]
    return {**old, "spec": {**old["spec"], "tasks": tasks, **spec}}


OLD = job(
    task("a", 5, minAvailable=1, maxRetry=3), minAvailable=5, queue="default", schedulerName="volcano", maxRetry=3
)
PARTED = part(2, 2, 4)

UPDATES: list[tuple[str, Any, Any, bool]] = [
    ("36", OLD, scaled(OLD, 6), True),
    ("37 no", OLD, scaled(OLD, 4), False),
    ("37 ok", OLD, scaled(OLD, 4, minAvailable=3), True),
    ("38", OLD, scaled(OLD, priorityClassName="high"), True),
    ("39 add", OLD, {**OLD, "spec": {**OLD["spec"], "tasks": [*OLD["spec"]["tasks"], task("b")]}}, False),
    ("39 rename", OLD, {**OLD, "spec": {**OLD["spec"], "tasks": [{**OLD["spec"]["tasks"][0], "name": "z"}]}}, False),
    ("39 queue", OLD, scaled(OLD, queue="other"), False),
    (
        "39 image",
        OLD,
        {
            **OLD,
            "spec": {
                **OLD["spec"],
                "tasks": [{**OLD["spec"]["tasks"][0], "template": {"spec": pod(containers=[container(image="x")])}}],
            },
        },
        False,
    ),
    ("39 maxRetry", OLD, scaled(OLD, maxRetry=4), False),
    ("40", PARTED, scaled(PARTED, 6), False),
]


@pytest.mark.parametrize(("old", "new", "allowed"), [row[1:] for row in UPDATES], ids=[row[0] for row in UPDATES])
def test_updates(old: Any, new: Any, allowed: bool) -> None:
    before = stored(old)
    after = {**new, "spec": {**before["spec"], **{k: v for k, v in new["spec"].items() if v != old["spec"].get(k)}}}

    answer = update(after, before)

    assert answer.allowed == allowed, answer.problems


def test_row_41_and_42_the_gang_is_the_sum_of_the_tasks() -> None:
    spec = stored(job(task("a", 2), task("b", 3)))["spec"]

    assert (spec["queue"], spec["schedulerName"], spec["maxRetry"], spec["minAvailable"]) == (
        "default",
        "volcano",
        3,
        5,
    )
    assert stored(job(task("task-1", 2, minAvailable=1), task("task-2", 3)))["spec"]["minAvailable"] == 4


@pytest.mark.parametrize(
    ("written", "kept"),
    [
        ({"tensorflow": []}, {"tensorflow": [], "svc": []}),
        ({"pytorch": []}, {"pytorch": [], "svc": []}),
        ({"ray": []}, {"ray": [], "svc": []}),
        ({"mpi": []}, {"mpi": [], "svc": [], "ssh": []}),
        ({"tensorflow": [], "svc": ["--x"]}, {"tensorflow": [], "svc": ["--x"]}),
        ({"env": []}, {"env": []}),
    ],
)
def test_row_43_plugins_that_need_others(written: Any, kept: Any) -> None:
    assert stored(job(task("master"), task("worker"), plugins=written))["spec"]["plugins"] == kept


FLOWS: list[tuple[str, Any, bool]] = [
    ("44", flow(node("a"), node("b", "a"), node("c", "a", "b"), node("d", "b"), node("e", "c", "d")), True),
    ("45 twice", flow(node("a"), node("a")), True),
    ("45 targets", flow(node("a"), node("b"), node("c", "a"), node("c", "b")), True),
    ("45 none", flow(), True),
    ("46 missing", flow(node("b", "a")), False),
    ("46 circle", flow(node("a", "b"), node("b", "a")), False),
    ("46 self", flow(node("a", "a")), False),
]


@pytest.mark.parametrize(("obj", "allowed"), [row[1:] for row in FLOWS], ids=[row[0] for row in FLOWS])
def test_flows_as_controllers_write_them(obj: Any, allowed: bool) -> None:
    assert create(obj, strict=False).allowed == allowed
    assert review("UPDATE", obj, flow(node("z")), FakeWorld(), strict=False).allowed == allowed


def tree(hierarchy: str, weights: str = "") -> dict[str, str]:
    given = {"volcano.sh/hierarchy": hierarchy, "volcano.sh/hierarchy-weights": weights}
    return {key: value for key, value in given.items() if value}


P = queue("parent", state="Open", pods=3)
QUEUES: list[tuple[str, Any, tuple[Any, ...], bool]] = [
    ("47 negative", queue(weight=-1), (), False),
    ("47 large", queue(weight=70000), (), False),
    ("48 deserved", queue(deserved={"cpu": 1}), (), True),
    ("48 guarantee", queue(guarantee={"resource": {"cpu": 1}}), (), False),
    ("48 less", queue(deserved={"memory": "1Gi"}, guarantee={"resource": {"memory": "3Gi"}}), (), False),
    ("49 no", queue(capability={"cpu": 1}, deserved={"cpu": 2}), (), False),
    ("49 ok", queue(capability={"cpu": 10}, deserved={"cpu": 5, "memory": "10Gi"}), (), True),
    ("50", queue(capability={"cpu": -10}), (), False),
    ("51 length", queue(annotations=tree("root/a/b", "1/2/3/4")), (), False),
    ("51 negative", queue(annotations=tree("root/a/b", "1/-1/3")), (), False),
    ("51 text", queue(annotations=tree("root/a/b", "1/a/3")), (), False),
    ("51 alone", queue(annotations=tree("a")), (), False),
    (
        "52 no",
        queue(annotations=tree("root/node1", "1/2")),
        (queue("o", annotations=tree("root/node1/node2", "1/2/3")),),
        False,
    ),
    (
        "52 ok",
        queue(annotations=tree("root/node", "1/2")),
        (queue("o", annotations=tree("root/node1/node2", "1/2/3")),),
        True,
    ),
    ("53 self", queue(parent="q"), (), False),
    ("53 pods", queue(parent="parent"), (P,), False),
    ("53 has a child", queue(parent="parent"), (P, queue("s", parent="parent")), True),
    ("54 child", queue(parent="p", capability={"cpu": 20}), (queue("p", capability={"cpu": 10}),), False),
    (
        "54 grandchild",
        queue(parent="m", capability={"cpu": 200}),
        (queue("p", capability={"cpu": 100}), queue("m", parent="p")),
        False,
    ),
    (
        "55",
        queue(parent="p", guarantee={"resource": {"cpu": 7}}, deserved={"cpu": 7}),
        (
            queue("p", guarantee={"resource": {"cpu": 8}}, deserved={"cpu": 8}),
            queue("s", parent="p", guarantee={"resource": {"cpu": 2}}, deserved={"cpu": 2}),
        ),
        False,
    ),
]


@pytest.mark.parametrize(("obj", "world", "allowed"), [row[1:] for row in QUEUES], ids=[row[0] for row in QUEUES])
def test_queues(obj: Any, world: tuple[Any, ...], allowed: bool) -> None:
    answer = create(obj, *world)

    assert answer.allowed == allowed, answer.problems


def test_row_56_a_parent_cannot_shrink_below_its_children() -> None:
    cap = queue("p", capability={"cpu": 20})
    kept = queue("g", guarantee={"resource": {"cpu": 13}}, deserved={"cpu": 13})
    children = [
        queue(n, parent="g", guarantee={"resource": {"cpu": c}}, deserved={"cpu": c}) for n, c in (("x", 8), ("y", 5))
    ]

    shrunk = update(queue("p", capability={"cpu": 10}), cap, cap, queue("c", parent="p", capability={"cpu": 12}))
    smaller = update(queue("g", guarantee={"resource": {"cpu": 10}}, deserved={"cpu": 13}), kept, kept, *children)

    assert not shrunk.allowed
    assert not smaller.allowed


def test_row_57_deleting_queues() -> None:
    assert not delete(queue("default")).allowed
    assert not delete(queue("p"), queue("c", parent="p")).allowed
    assert delete(queue("q", state="Open")).allowed


@pytest.mark.parametrize(("name", "allowed"), [("default", True), ("closed", False), ("nope", False), ("", True)])
def test_row_58_podgroups(name: str, allowed: bool) -> None:
    assert create(podgroup(queue=name), queue("closed", state="Closed")).allowed == allowed


def test_row_59_podgroup_tiers() -> None:
    assert not create(podgroup(networkTopology=TIERS)).allowed
    assert not create(podgroup(subGroupPolicy=[{"name": "s", "networkTopology": TIERS}])).allowed


def disrupted(scheduler: str = "volcano", **annotations: str) -> Any:
    keys = {key.replace("_", "-"): value for key, value in annotations.items()}
    meta = {"name": "p", "annotations": {f"volcano.sh/jdb-{key}": value for key, value in keys.items()}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": pod(schedulerName=scheduler)}


@pytest.mark.parametrize(
    ("obj", "allowed"),
    [
        (disrupted(min_available="2"), True),
        (disrupted(max_unavailable="50%"), True),
        *((disrupted(min_available=value), False) for value in ("-1", "0", "0%", "100%", "invalid")),
        (disrupted(min_available="1", max_unavailable="1"), False),
        (disrupted("default-scheduler", min_available="-1"), True),
    ],
)
def test_rows_60_to_62_pods(obj: Any, allowed: bool) -> None:
    assert create(obj).allowed == allowed
    assert create(obj, strict=False).allowed == allowed


@pytest.mark.parametrize(
    ("obj", "allowed"),
    [
        (cronjob("@every 1m"), True),
        (cronjob("TZ=UTC 0 20 * * *"), False),
        (cronjob(timeZone="New York"), False),
        (cronjob(timeZone="Local"), False),
        (cronjob(name="c" * 53), False),
        (cronjob(name="c" * 50), True),
    ],
)
def test_row_63_cronjobs(obj: Any, allowed: bool) -> None:
    assert create(obj).allowed == allowed
    assert create(obj, strict=False).allowed == allowed


def test_row_63_a_name_that_fits_upstream_but_no_pod_of_its_jobs() -> None:
    obj = cronjob(name="c" * 52)

    assert create(obj, strict=False).allowed
    assert create(obj).problems[0].path == "metadata.name"
