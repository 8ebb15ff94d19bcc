"""Coming back by name: ``vcnb.attach`` and ``cluster.attach``."""

import asyncio

import pytest

import vcnb
from vcnb.client.functions.run import Call, Map
from vcnb.client.functions.sweep import Sweep

FLOW = {
    "apiVersion": "flow.volcano.sh/v1alpha1",
    "kind": "JobFlow",
    "metadata": {"name": "pipeline"},
    "spec": {"flows": [{"name": "load"}]},
}


def job(name="train", namespace=None):
    return vcnb.Job(name=name, namespace=namespace, tasks=[vcnb.Task("w", replicas=2, command=["true"])])


@pytest.fixture
def cluster():
    with vcnb.connect("memory://?runtime=simulated&clock=virtual") as made:
        yield made


def square(x):
    return x * x


def test_a_job_is_found_with_its_pods(cluster):
    submitted = cluster.submit(job())

    found = cluster.attach("train")

    assert type(found) is vcnb.JobHandle
    assert (found.uid, found.phase) == (submitted.uid, "Pending")
    assert [pod.name for pod in found.pods] == ["train-w-0", "train-w-1"]


def test_a_flow_is_found(cluster):
    cluster.submit(vcnb.JobTemplate(name="load", tasks=[vcnb.Task("w", command=["true"])]))
    cluster.submit(FLOW)

    found = cluster.attach("pipeline")

    assert type(found) is vcnb.FlowHandle
    assert list(found.nodes) == ["load"]


def test_runs_of_functions_are_rebuilt_as_what_they_were(cluster):
    function = cluster.function(square)
    call, mapped = function.submit(3), function.map([1, 2, 3])
    sweep = cluster.sweep(square, {"x": [1, 2]})

    assert type(cluster.attach(call.name)) is Call
    assert len(cluster.attach(mapped.name)) == 3
    assert type(cluster.attach(mapped.name)) is Map
    assert type(cluster.attach(sweep.name)) is Sweep
    assert cluster.attach(sweep.name).parameters == [{"x": 1}, {"x": 2}]


def test_a_job_with_a_made_up_name_is_found_by_its_functions(cluster):
    run = cluster.function(square).submit(3)

    assert cluster.attach("square").name == run.name


def test_several_runs_of_a_function_are_listed_the_newest_first(cluster):
    function = cluster.function(square)
    first = function.submit(3)
    cluster.simulator.advance(5)
    second = function.submit(4)

    with pytest.raises(vcnb.VcnbError) as told:
        cluster.attach("square")

    text = str(told.value)
    assert 0 < text.index(second.name) < text.index(first.name)
    assert "attach to one of them by its own name" in text


def test_a_job_and_a_flow_of_one_name_are_told_apart_by_kind(cluster):
    cluster.submit(vcnb.JobTemplate(name="load", tasks=[vcnb.Task("w", command=["true"])]))
    cluster.submit(FLOW)
    cluster.submit(job("pipeline"))

    with pytest.raises(vcnb.VcnbError, match="kind="):
        cluster.attach("pipeline")

    assert cluster.attach("pipeline", kind="job").kind == "Job"
    assert cluster.attach("pipeline", kind="flow").kind == "JobFlow"


def test_a_namespace_or_all_of_them(cluster):
    cluster.submit(job(namespace="team"), namespace="team")

    with pytest.raises(vcnb.NotFound):
        cluster.attach("train")

    assert cluster.attach("train", "team").namespace == "team"
    assert cluster.attach("train", "*").namespace == "team"


def test_a_name_that_is_nearly_right_is_told(cluster):
    cluster.submit(job("training"))

    with pytest.raises(vcnb.NotFound) as told:
        cluster.attach("trainig")

    assert "there is no job, flow or cache job 'trainig' in namespace 'default'" in str(told.value)
    assert "did you mean job 'training'?" in str(told.value)


def test_a_name_of_another_kind_is_told(cluster):
    cluster.submit(job("train"))

    with pytest.raises(vcnb.NotFound, match="did you mean job 'train'"):
        cluster.attach("train", kind="flow")


def test_where_nothing_is_near_the_lists_are_named(cluster):
    with pytest.raises(vcnb.NotFound, match=r"cluster\.jobs.*memory://"):
        cluster.attach("train")


@pytest.mark.parametrize("wrong", ["", None, 3])
def test_what_is_no_name_is_refused(cluster, wrong):
    with pytest.raises(TypeError):
        cluster.attach(wrong)


def test_an_unknown_kind_is_refused(cluster):
    with pytest.raises(vcnb.VcnbError, match="job, flow, cache"):
        cluster.attach("train", kind="pod")


def test_looking_for_a_name_starts_no_cache(cluster):
    cluster.submit(job())

    cluster.attach("train")

    assert cluster._engine.cache.embedded is None


def test_a_cache_job_is_found_by_path_last_part_and_id(cluster, tmp_path):
    pytest.importorskip("vcnb.cache.pages")
    data = tmp_path / "digits"
    data.mkdir()
    (data / "a").write_bytes(b"abc")
    load = cluster.cache.load(data)
    load.wait(timeout=30)

    found = [cluster.attach(name) for name in (str(load.path), "digits", load.id)]

    assert {type(handle) for handle in found} == {vcnb.CacheHandle}
    assert {handle.id for handle in found} == {load.id}


def test_the_awaitable_twin(cluster):
    cluster.submit(job())

    async def find():
        return await cluster.attach_async("train")

    assert asyncio.run(find()).name == "train"


def test_the_module_level_form_looks_in_the_default_cluster_or_the_one_given(monkeypatch, cluster):
    cluster.submit(job())
    assert vcnb.attach("train", cluster=cluster).name == "train"

    monkeypatch.setattr("vcnb.client.attaching._chosen", None)
    monkeypatch.setattr("vcnb.client.connect.connect", lambda _=None: cluster)
    monkeypatch.setenv("VCNB_CLUSTER", "embedded://any")
    assert vcnb.attach("train").name == "train"


def test_it_looks_in_the_cluster_that_the_notebook_has_chosen(monkeypatch, cluster):
    from vcnb.notebook import current

    monkeypatch.setattr(current, "_current", None)
    monkeypatch.setattr("vcnb.client.attaching._chosen", None)
    cluster.submit(job())

    current.set_current(cluster)

    assert vcnb.attach("train").name == "train"


def test_where_memory_is_the_default_nothing_can_be_left_in_it(monkeypatch):
    monkeypatch.setattr("vcnb.client.attaching._chosen", None)
    monkeypatch.setenv("VCNB_CLUSTER", "memory://")

    with pytest.raises(vcnb.VcnbError, match=r"cluster\.attach"):
        vcnb.attach("train")
