"""Views read what is stored, and only that."""

import pytest

from vcnb.clock import parse_time
from vcnb.resources.phases import FlowPhase, JobPhase, PodGroupPhase, PodPhase, QueueState, RetainPolicy
from vcnb.resources.quantity import resource_list
from vcnb.resources.views import (
    CommandView,
    CronJobView,
    EventView,
    FlowView,
    JobTemplateView,
    JobView,
    NamespaceView,
    NodeView,
    PodGroupView,
    PodView,
    PriorityClassView,
    QueueView,
    ServiceView,
    View,
    pod_limits,
    pod_requests,
)


def container(cpu=None, limit=None, **more):
    resources = {}
    if cpu is not None:
        resources["requests"] = {"cpu": cpu}
    if limit is not None:
        resources["limits"] = {"cpu": limit}
    return {"name": "c", "resources": resources, **more}


@pytest.mark.parametrize(
    ("spec", "cpu"),
    [
        ({"containers": [container("500m"), container(1)]}, "1500m"),
        ({"containers": [container(1)], "initContainers": [container(3)]}, "3"),
        ({"containers": [container(2)], "initContainers": [container(1), container(1)]}, "2"),
        ({"containers": [container(1)], "initContainers": [container(1, restartPolicy="Always")]}, "2"),
        (
            {"containers": [container(1)], "initContainers": [container(1, restartPolicy="Always"), container(4)]},
            "5",
        ),
        (
            {"containers": [container(1)], "initContainers": [container(4), container(1, restartPolicy="Always")]},
            "4",
        ),
        ({"containers": [container(1)], "overhead": {"cpu": "250m"}}, "1250m"),
        ({"containers": [container(None, 2)]}, "2"),
        ({"containers": [container(1, 2)]}, "1"),
        ({"containers": []}, None),
    ],
)
def test_pod_requests(spec, cpu):
    assert pod_requests(spec) == ({"cpu": resource_list({"cpu": cpu})["cpu"]} if cpu else {})


def test_pod_requests_without_the_default_from_limits():
    spec = {"containers": [container(None, 2), container(1, 3)]}
    assert pod_requests(spec, from_limits=False) == resource_list({"cpu": 1})
    assert pod_limits(spec) == resource_list({"cpu": 5})


def test_metadata():
    view = View({
        "kind": "Pod",
        "metadata": {
            "name": "p", "namespace": "n", "uid": "u", "resourceVersion": "7", "generation": 2,
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "deletionTimestamp": "2026-01-01T00:01:00Z",
            "ownerReferences": [
                {"apiVersion": "v1", "kind": "X", "name": "x", "uid": "1"},
                {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": "j", "uid": "2", "controller": True},
            ],
        },
    })  # fmt: skip
    assert (view.key, view.uid, view.resource_version, view.generation) == ("n/p", "u", "7", 2)
    assert view.created == parse_time("2026-01-01T00:00:00Z")
    assert view.deleted == view.created + 60
    assert view.terminating
    assert view.owner is not None
    assert (view.owner.kind, view.owner.name) == ("Job", "j")
    assert len(view.owners) == 2


def test_an_empty_object_reads_as_empty():
    view = PodView({})
    assert (view.name, view.namespace, view.key, view.labels, view.owner, view.created) == ("", "", "", {}, None, None)
    assert (view.phase, view.task, view.index, view.exit_code, view.ready) == (PodPhase.UNSET, "", None, 0, False)
    assert not view.terminating


def test_views_are_equal_when_they_show_the_very_same_object():
    pod = {"metadata": {"name": "p"}}
    assert PodView(pod) == PodView(pod)
    assert PodView(pod) != PodView(dict(pod))
    assert PodView(pod) != View(pod)
    assert len({PodView(pod), PodView(pod)}) == 1


def test_pod():
    pod = PodView({
        "metadata": {
            "annotations": {
                "volcano.sh/task-spec": "w", "volcano.sh/task-index": "3", "volcano.sh/job-name": "j",
                "volcano.sh/job-version": "2", "volcano.sh/job-retry-count": "1",
                "scheduling.k8s.io/group-name": "j-u", "volcano.sh/controller-out-of-sync": "",
            },
            "labels": {"volcano.sh/partition-id": "1"},
        },
        "spec": {"nodeName": "n", "priority": 5, "schedulingGates": [{"name": "g"}]},
        "status": {
            "phase": "Failed", "reason": "Evicted", "podIP": "127.0.0.2",
            "conditions": [{"type": "Ready", "status": "True"}],
            "containerStatuses": [
                {"name": "a", "restartCount": 2, "state": {"terminated": {"exitCode": 137, "reason": "OOMKilled"}}},
                {"name": "b", "restartCount": 1, "state": {"running": {}}},
            ],
            "initContainerStatuses": [{"name": "i", "restartCount": 4, "state": {"waiting": {"reason": "Pull"}}}],
        },
    })  # fmt: skip
    assert (pod.task, pod.index, pod.job_name, pod.job_version, pod.job_retry_count) == ("w", 3, "j", 2, 1)
    assert (pod.group, pod.partition, pod.out_of_sync) == ("j-u", "1", True)
    assert (pod.phase, pod.finished, pod.ready, pod.gated, pod.priority) == (PodPhase.FAILED, True, True, True, 5)
    assert (pod.exit_code, pod.exit_codes, pod.restart_count) == (137, {"a": 137}, 7)
    assert [status.state for status in pod.container_statuses] == ["terminated", "running"]
    assert pod.container_statuses[0].reason == "OOMKilled"
    assert pod.init_container_statuses[0].reason == "Pull"
    assert (pod.reason, pod.ip, pod.node_name, pod.grace_period) == ("Evicted", "127.0.0.2", "n", 30)


def test_exit_code_is_that_of_the_first_container():
    statuses = [{"name": "a", "state": {"running": {}}}, {"name": "b", "state": {"terminated": {"exitCode": 3}}}]
    pod = PodView({"status": {"containerStatuses": statuses}})
    assert pod.exit_code == 0
    assert pod.exit_codes == {"b": 3}


@pytest.mark.parametrize("text", ["", "x", "1.5", "\u0661"])
def test_an_unreadable_index_is_none(text):
    assert PodView({"metadata": {"annotations": {"volcano.sh/task-index": text}}}).index is None


def test_task_name_may_stand_in_the_label_only():
    assert PodView({"metadata": {"labels": {"volcano.sh/task-spec": "w"}}}).task == "w"


def test_job():
    job = JobView({
        "metadata": {"name": "j", "uid": "u"},
        "spec": {
            "minAvailable": 2, "maxRetry": 3, "queue": "q", "minSuccess": 1, "ttlSecondsAfterFinished": 0,
            "plugins": {"svc": []},
            "policies": [{"events": ["PodFailed", "PodEvicted"], "event": "PodFailed", "action": "RestartJob",
                          "timeout": "1m30s"}, {"exitCode": 3, "action": "AbortJob"}],
            "tasks": [
                {"name": "a", "replicas": 3, "minAvailable": 0, "dependsOn": {"name": ["b"], "iteration": "any"}},
                {"name": "b", "replicas": 2, "partitionPolicy": {"partitionSize": 2, "totalPartitions": 1}},
            ],
        },
        "status": {
            "state": {"phase": "Running", "lastTransitionTime": "2026-01-01T00:00:00Z"},
            "running": 2, "terminating": 1, "version": 4, "retryCount": 1,
            "taskStatusCount": {"a": {"phase": {"Running": 2}}},
        },
    })  # fmt: skip
    assert (job.phase, job.finished, job.queue, job.min_available, job.max_retry) == (
        JobPhase.RUNNING,
        False,
        "q",
        2,
        3,
    )
    assert (job.min_success, job.ttl_seconds_after_finished) == (1, 0)
    assert (job.replicas, job.task_min_available) == (5, 2)
    assert (job.running, job.pods_terminating, job.failed, job.version, job.retry_count) == (2, 1, 0, 4, 1)
    assert job.task_status_count == {"a": {"Running": 2}}
    assert job.last_transition == parse_time("2026-01-01T00:00:00Z")
    assert job.podgroup_name == "j-u"
    a, b = job.tasks
    assert (a.position, a.min_available, a.has_min_available, a.depends_on, a.depends_on_any) == (
        0,
        0,
        True,
        ("b",),
        True,
    )
    assert (b.position, b.min_available, b.has_min_available, b.partition_size) == (1, 2, False, 2)
    assert job.task("b") == b
    assert job.task("c") is None
    first, second = job.policies
    assert (first.events, first.timeout, first.exit_code) == (("PodFailed", "PodEvicted"), 90.0, None)
    assert (second.events, second.timeout, second.exit_code) == ((), None, 3)


def test_an_unknown_job_phase_reads_as_unset():
    assert JobView({"status": {"state": {"phase": "Nonsense"}}}).phase is JobPhase.UNSET


def test_queue():
    queue = QueueView(
        {
            "metadata": {"name": "q"},
            "spec": {
                "weight": 2,
                "capability": {"cpu": 4},
                "guarantee": {"resource": {"cpu": 1}},
                "reclaimable": False,
            },
            "status": {"allocated": {"cpu": "500m"}},
        }
    )
    assert (queue.state, queue.open, queue.weight, queue.parent, queue.reclaimable) == (
        QueueState.UNSET, True, 2, "root", False,
    )  # fmt: skip
    assert queue.capability == resource_list({"cpu": 4})
    assert queue.guarantee == resource_list({"cpu": 1})
    assert queue.allocated == resource_list({"cpu": "500m"})
    assert queue.deserved == {}
    assert QueueView({"metadata": {"name": "root"}}).parent == ""
    assert not QueueView({"status": {"state": "Closing"}}).open


def test_podgroup():
    group = PodGroupView(
        {
            "spec": {"minMember": 2, "minTaskMember": {"a": 1}, "minResources": {"cpu": 2}},
            "status": {"phase": "Inqueue", "conditions": [{"type": "Unschedulable", "reason": "NotEnoughResources"}]},
        }
    )
    assert (group.phase, group.admitted, group.min_member, group.queue) == (PodGroupPhase.INQUEUE, True, 2, "default")
    assert group.condition("Unschedulable")["reason"] == "NotEnoughResources"
    assert group.condition("Scheduled") == {}
    assert not PodGroupView({"status": {"phase": "Pending"}}).admitted
    assert not PodGroupView({}).admitted


def test_flow():
    flow = FlowView({
        "spec": {
            "jobRetainPolicy": "delete",
            "flows": [
                {"name": "a", "templateRef": "t", "patch": {"spec": {"queue": "q"}}},
                {"name": "b", "dependsOn": {"targets": ["a"], "targetsWithStatus": [{"name": "c", "phases": ["Failed"]}]}},
            ],
        },
        "status": {"state": {"phase": "Succeed"}, "nodes": {"a": {"phase": "Succeeded"}}},
    })  # fmt: skip
    a, b = flow.nodes
    assert (flow.phase, flow.finished, flow.retain_policy) == (FlowPhase.SUCCEED, True, RetainPolicy.DELETE)
    assert (a.name, a.template, a.patch, a.targets) == ("a", "t", {"queue": "q"}, ())
    assert (b.template, b.targets) == ("b", ("a", "c"))
    assert flow.node_status["a"]["phase"] == "Succeeded"
    assert FlowView({}).retain_policy is RetainPolicy.RETAIN


def test_other_kinds():
    command = CommandView(
        {"action": "AbortJob", "target": {"kind": "Job", "name": "j", "uid": "u", "apiVersion": "b/v1"}}
    )
    assert (command.action, command.target.name, CommandView({}).target) == ("AbortJob", "j", None)
    event = EventView({
        "metadata": {}, "type": "Warning", "reason": "R", "message": "M", "count": 3,
        "firstTimestamp": "2026-01-01T00:00:00Z", "lastTimestamp": "2026-01-01T00:00:05Z", "source": {"component": "c"},
    })  # fmt: skip
    assert (event.type, event.count, event.component, event.last - event.first) == ("Warning", 3, "c", 5)
    node = NodeView({"status": {"capacity": {"cpu": 4}, "conditions": [{"type": "Ready", "status": "True"}]}})
    assert (node.ready, node.allocatable, node.unschedulable) == (True, resource_list({"cpu": 4}), False)
    assert ServiceView({"spec": {"clusterIP": "None", "selector": {"a": "b"}}}).headless
    assert PriorityClassView({"value": 10, "globalDefault": True}).value == 10
    assert NamespaceView({"metadata": {"annotations": {"scheduling.volcano.sh/queue-name": "q"}}}).queue == "q"
    assert JobTemplateView({"spec": {"tasks": [{"name": "a"}]}, "status": {"jobDependsOnList": ["x"]}}).jobs == ("x",)
    cron = CronJobView({"spec": {"schedule": "@daily", "suspend": True}})
    assert (cron.schedule, cron.suspended, cron.successful_jobs_history_limit, cron.failed_jobs_history_limit) == (
        "@daily", True, 3, 1,
    )  # fmt: skip
