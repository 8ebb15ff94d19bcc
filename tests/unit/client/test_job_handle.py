"""A job's handle: what is asked wrongly, interrupted or gone is said plainly."""

import signal

import pytest
import yaml

import vcnb


def job(name="j", replicas=2):
    return vcnb.Job(name=name, tasks=[vcnb.Task("w", replicas=replicas, image="busybox", command=["true"])])


@pytest.fixture
def cluster():
    with vcnb.connect("memory://?runtime=simulated&clock=virtual") as made:
        yield made


@pytest.fixture
def interrupted():
    """SIGINT a moment after a blocking call has begun, as from a notebook's stop button."""
    before = signal.signal(signal.SIGALRM, lambda *_: signal.raise_signal(signal.SIGINT))
    yield lambda: signal.setitimer(signal.ITIMER_REAL, 0.1)
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


def test_an_interrupted_watch_says_how_to_get_back(cluster, interrupted, capsys):
    handle = cluster.submit(job(), namespace="other")
    states = handle.watch()
    next(states)

    interrupted()
    with pytest.raises(KeyboardInterrupt):
        next(states)

    assert "job 'j' goes on: cluster.jobs.get('j', 'other').wait()" in capsys.readouterr().err
    assert handle.phase == "Pending"


def test_a_watch_that_runs_out_of_time_names_the_present_phase(cluster):
    handle = cluster.submit(job())
    states = handle.watch(timeout=0.2)
    next(states)
    for pod in handle.pods:
        cluster.simulator.run(pod)

    with pytest.raises(vcnb.WaitTimeout, match="job 'j' is Running"):
        list(states)


def test_a_phase_that_does_not_exist_is_answered_with_those_that_do(cluster):
    with pytest.raises(vcnb.VcnbError, match="can be waited for: Pending, Running"):
        cluster.submit(job()).wait("Runnin")


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"container": "x"}, "job 'j' has no container 'x'; there is: w"),
        ({"task": "x"}, "job 'j' has no task 'x'; its tasks: w"),
        ({"index": 2}, "job 'j' has no pod with index 2"),
        ({"tail": -1}, "tail is a number of lines"),
    ],
)
@pytest.mark.parametrize("follow", [False, True])
def test_logs_of_what_the_job_does_not_have(cluster, asked, said, follow):
    handle = cluster.submit(job())

    with pytest.raises(vcnb.VcnbError, match=said):
        list(handle.logs(follow=follow, **asked))


def test_what_has_ended_is_not_followed(cluster):
    with pytest.raises(vcnb.VcnbError, match="nothing to follow"):
        cluster.submit(job()).logs(follow=True, previous=True)


def test_logs_of_a_container_that_a_pod_does_not_have(cluster):
    (pod, _) = cluster.submit(job()).pods

    with pytest.raises(vcnb.VcnbError, match="pod 'j-w-0' has no container 'x'"):
        pod.logs("x")


def test_a_deleted_job_says_so(cluster):
    handle = cluster.submit(job())
    assert handle.phase == "Pending"
    handle.delete()

    assert repr(handle).startswith("<deleted job default/j: ")
    assert handle.why().startswith("Job j was deleted; it was last seen Pending.")


def test_a_manifest_is_what_a_person_would_write(cluster):
    (handle,) = cluster.apply({**job().to_manifest(), "metadata": {"name": "j", "annotations": {"a": "b"}}})

    assert yaml.safe_load(handle.manifest())["metadata"] == {
        "name": "j",
        "namespace": "default",
        "annotations": {"a": "b"},
    }
    assert cluster.apply(handle.manifest())[0].uid == handle.uid


def test_scale_takes_numbers_by_task(cluster):
    with pytest.raises(TypeError, match="a mapping of tasks"):
        cluster.submit(job()).scale(3)
