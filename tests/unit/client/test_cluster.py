"""The Python API on a simulated cluster: objects in, handles out, verbs, waiting."""

import asyncio
import sys
import threading

import pytest

import vcnb


def job(name="j", replicas=2, **options):
    return vcnb.Job(name=name, tasks=[vcnb.Task("w", replicas=replicas, image="busybox", command=["true"])], **options)


@pytest.fixture
def cluster():
    with vcnb.connect("memory://?runtime=simulated&clock=virtual") as made:
        yield made


def run_all(cluster, handle):
    for pod in handle.pods:
        cluster.simulator.run(pod)


def test_one_document_gives_a_handle_several_give_a_list(cluster):
    one = cluster.submit(job("a"))
    two = cluster.submit([job("b"), job("c")])

    assert (one.name, one.namespace, one.kind) == ("a", "default", "Job")
    assert [handle.name for handle in two] == ["b", "c"]


def test_objects_are_stored_in_the_order_of_the_text_and_may_refer_back(cluster):
    queue = vcnb.Queue(name="fast")

    handles = cluster.submit([queue, job("in-fast", queue="fast")])

    assert [handle.kind for handle in handles] == ["Queue", "Job"]


def test_a_job_in_a_queue_that_does_not_exist_is_refused(cluster):
    with pytest.raises(vcnb.InvalidObject, match=r"spec\.queue"):
        cluster.submit(job(queue="nowhere"))


def test_a_closed_queue_takes_no_jobs_until_it_is_opened(cluster):
    queue = cluster.submit(vcnb.Queue(name="q"))
    queue.close()
    assert queue.state == "Closed"

    with pytest.raises(vcnb.InvalidObject, match="Closed"):
        cluster.submit(job(queue="q"))
    queue.open()

    assert queue.state == "Open"
    assert cluster.submit(job(queue="q")).phase == "Pending"


def test_pods_are_handles_in_task_order(cluster):
    tasks = [vcnb.Task("ps", replicas=1, command=["true"]), vcnb.Task("a", replicas=11, command=["true"])]
    handle = cluster.submit(vcnb.Job(name="t", tasks=tasks))

    assert [pod.name for pod in handle.pods] == ["t-ps-0", *(f"t-a-{number}" for number in range(11))]


def test_the_life_of_a_job_through_its_handle(cluster):
    handle = cluster.submit(job())
    assert handle.phase == "Pending"
    run_all(cluster, handle)
    assert (handle.phase, handle.status["running"]) == ("Running", 2)
    for pod in handle.pods:
        cluster.simulator.succeed(pod)

    assert handle.wait() is handle
    assert [record.phase for record in handle.history] == ["Pending", "Running", "Completed"]
    assert handle.history[-1].counters["succeeded"] == 2
    assert [record.message for record in handle.history] == [
        "created; its pods are made once the gang is admitted",
        "enough pods have started: 2 running",
        "the pods have done their work: 2 succeeded",
    ]


def test_a_wait_for_a_phase_that_was_passed_returns_and_for_one_never_reached_raises(cluster):
    handle = cluster.submit(job())
    run_all(cluster, handle)
    for pod in handle.pods:
        cluster.simulator.succeed(pod)

    assert handle.wait("Running").phase == "Completed"
    with pytest.raises(vcnb.JobFailed, match="before it was Aborted"):
        handle.wait("Aborted")
    with pytest.raises(vcnb.VcnbError, match="no phase 'Runing'"):
        handle.wait("Runing")


def test_a_failed_job_raises_unless_told_otherwise(cluster):
    handle = cluster.submit(job(replicas=1))
    run_all(cluster, handle)
    cluster.simulator.fail(handle.pods[0], exit_code=3)

    with pytest.raises(vcnb.JobFailed) as error:
        handle.wait()

    assert (error.value.name, error.value.phase) == ("j", "Failed")
    assert handle.wait(check=False).phase == "Failed"


def test_waiting_is_woken_by_what_happens(cluster):
    handle = cluster.submit(job(replicas=1))
    ended = threading.Event()
    waiter = threading.Thread(target=lambda: (handle.wait(), ended.set()))
    waiter.start()
    run_all(cluster, handle)
    assert not ended.is_set()

    cluster.simulator.succeed(handle.pods[0])

    assert ended.wait(10)
    waiter.join(10)


def test_a_job_deleted_while_it_is_waited_for(cluster):
    handle = cluster.submit(job())
    failed = []

    def wait():
        try:
            handle.wait()
        except vcnb.NotFound as error:
            failed.append(error)

    waiter = threading.Thread(target=wait)
    waiter.start()
    cluster.jobs["j"].delete()
    waiter.join(10)

    assert not handle.exists or failed
    assert "deleted while" in str(failed[0]) or not handle.exists


def test_await_and_timeouts(cluster):
    handle = cluster.submit(job())

    async def cell():
        with pytest.raises(vcnb.WaitTimeout, match="it goes on"):
            await handle.wait_async(timeout=0.01)

    asyncio.run(cell())


def test_suspend_and_resume(cluster):
    handle = cluster.submit(job())
    run_all(cluster, handle)

    handle.suspend()
    assert handle.phase == "Aborting"
    cluster.simulator.reap()
    assert handle.phase == "Aborted"
    assert [record.message for record in handle.history][-2:] == [
        "AbortJob by a Command",
        "all pods that were to stop have stopped",
    ]
    with pytest.raises(vcnb.InvalidState, match="suspended already"):
        handle.suspend()
    handle.resume()

    assert handle.phase == "Pending"
    assert handle.status.get("retryCount", 0) == 0


def test_terminate_and_the_verbs_after_it(cluster):
    handle = cluster.submit(job())
    run_all(cluster, handle)
    handle.terminate()
    cluster.simulator.reap()

    assert handle.phase == "Terminated"
    with pytest.raises(vcnb.InvalidState, match="is Terminated"):
        handle.resume()


def test_scale(cluster):
    handle = cluster.submit(job(replicas=2))
    run_all(cluster, handle)

    handle.scale({"w": 3})

    assert [pod.name for pod in handle.pods] == ["j-w-0", "j-w-1", "j-w-2"]
    assert handle.spec["minAvailable"] == 3


def test_commands_may_be_submitted_like_any_object(cluster):
    handle = cluster.submit(job())
    run_all(cluster, handle)
    command = {
        "apiVersion": "bus.volcano.sh/v1alpha1",
        "kind": "Command",
        "metadata": {"generateName": "j-", "namespace": "default"},
        "action": "TerminateJob",
        "target": {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": "j", "uid": handle.uid},
    }
    cluster.submit(command)
    cluster.simulator.reap()

    assert handle.phase == "Terminated"
    assert len(cluster.commands) == 0


def test_collections(cluster):
    cluster.submit([job("b"), job("a")])
    elsewhere = cluster.submit(job("z"), namespace="other")

    assert [handle.name for handle in cluster.jobs.list()] == ["a", "b"]
    assert [handle.name for handle in cluster.jobs.list("*")] == ["a", "b", "z"]
    assert len(cluster.jobs) == 3
    assert "z" in cluster.jobs
    assert cluster.jobs.get("z", "other").uid == elsewhere.uid
    assert [handle.name for handle in cluster.jobs.list(phase="Pending", queue="default")] == ["a", "b"]
    assert cluster.objects("vj").list()[0].name == "a"
    with pytest.raises(vcnb.VcnbError, match="did you mean"):
        cluster.objects("joobs")


def test_a_collection_is_a_table_and_a_data_frame(cluster):
    cluster.submit(job("a"))

    frame = cluster.jobs.to_pandas()

    assert list(frame["name"]) == ["a"]
    assert list(frame["phase"]) == ["Pending"]
    assert "NAME" in repr(cluster.jobs)
    assert "Pending" in cluster.jobs._repr_mimebundle_()["text/html"]


def test_what_a_caller_changes_in_a_manifest_changes_nothing(cluster):
    handle = cluster.submit(job())
    mine = handle.object
    mine["spec"]["tasks"][0]["replicas"] = 99

    assert handle.object["spec"]["tasks"][0]["replicas"] == 2


def test_every_accessor_works_before_a_controller_has_seen_the_object():
    with vcnb.connect("memory://?runtime=simulated&clock=virtual&controllers=off") as cluster:
        handle = cluster.submit(job())

        assert (handle.phase, handle.status, handle.history, handle.pods, handle.events) == ("", {}, [], [], [])
        assert "new" in repr(handle)
        assert handle.why()
        assert handle.describe()
        assert handle.logs() == ""
        assert "new" in handle._repr_mimebundle_()["text/html"]


def test_an_object_made_again_under_its_name_is_another_object(cluster):
    old = cluster.submit(job("again"))
    old.delete()
    new = cluster.submit(job("again"))

    assert not old.exists
    assert new.exists
    assert old.uid != new.uid


def test_validate_stores_nothing(cluster):
    assert cluster.validate(job()) == []
    with pytest.raises(vcnb.InvalidObject):
        cluster.validate("kind: Job\napiVersion: batch.volcano.sh/v1alpha1\nmetadata: {name: x}\nspec: {tasks: []}")

    assert len(cluster.jobs) == 0


def test_a_stale_resource_version_conflicts(cluster):
    cluster.submit(vcnb.Queue(name="q"))
    stale = cluster.queues["q"].object
    cluster.apply({**stale, "spec": {**stale["spec"], "weight": 2}})

    with pytest.raises(vcnb.Conflict):
        cluster.apply({**stale, "spec": {**stale["spec"], "weight": 3}})


def test_the_default_queue_is_not_deleted(cluster):
    with pytest.raises(vcnb.VcnbError):
        cluster.queues.delete("default")


def test_connect_twice_is_the_same_cluster_and_memory_is_fresh(tmp_path):
    with vcnb.connect(f"embedded://one?dir={tmp_path}/c&runtime=simulated") as first:
        assert vcnb.connect(f"embedded://one?dir={tmp_path}/c&runtime=simulated") is first
    with vcnb.connect("memory://?runtime=simulated") as one, vcnb.connect("memory://?runtime=simulated") as two:
        assert one is not two


def test_close_leaves_no_thread(cluster):
    cluster.close()

    assert not [thread for thread in threading.enumerate() if thread.name.startswith("vcnb-memory")]
    assert cluster.closed
    assert "closed" in repr(cluster)


def test_import_is_light():
    import subprocess

    heavy = [
        "pydantic",
        "pandas",
        "plotly",
        "ipywidgets",
        "anywidget",
        "kubernetes",
        "aiohttp",
        "prometheus_client",
        "yaml",
        "rocksdict",
        "papermill",
        "IPython",
        "nest_asyncio",
        "nest_asyncio2",
        "cloudpickle",
        "cryptography",
        "click",
        "rich",
        "msgspec",
    ]
    code = f"import sys, vcnb; print([name for name in {heavy} if name in sys.modules])"

    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert shown.stdout == "[]\n"


def test_the_public_names():
    assert set(vcnb.__all__) == set(dir(vcnb))
    for name in vcnb.__all__:
        assert getattr(vcnb, name) is not None
