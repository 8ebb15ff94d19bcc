"""Cache nodes of flows on the real cache: load -> train -> free, failures with their files, retry, when, restarts."""

import pytest

import vcnb
from integration.cache_client.dataset import MIB, make, until

pytestmark = [pytest.mark.integration, pytest.mark.timeout(120)]


@pytest.fixture
def cluster():
    with vcnb.connect("memory://") as made:
        yield made


@pytest.fixture
def data(tmp_path):
    return make(tmp_path / "data", files=4, size=1000)


def task(command):
    return vcnb.Task("w", image="bash", command=["bash", "-c", command])


def test_load_train_free(cluster, data):
    """The data is loaded before the training begins, and gone after it has ended."""
    flow = vcnb.Flow("train", params={"data": str(data), "copies": 1})
    load = flow.add(
        "load", cache={"load": {"path": "${{ params.data }}", "replicas": "${{ params.copies }}", "verify": True}}
    )
    train = flow.add("train", task("cat $DATA/* | wc -c"), env={"DATA": flow.param("data")})
    free = flow.add("free", cache={"free": {"path": "${{ params.data }}"}})
    load >> train >> free

    done = cluster.submit(flow).wait(timeout=90)

    nodes = done.nodes
    assert [nodes[name].phase for name in ("load", "train", "free")] == ["Succeeded"] * 3
    assert nodes["load"].finished <= nodes["train"].started
    assert nodes["train"].finished <= nodes["free"].started
    assert done.logs(node="train").strip() == "4000"
    loaded, freed = cluster.cache.job("load", data), cluster.cache.job("free", data)
    assert nodes["load"].cache_job == loaded.id
    assert (loaded.progress().loaded_files, freed.progress().loaded_files) == (4, 4)
    assert cluster.cache.coverage(data) == 0.0


def test_a_load_that_fails_carries_its_files(cluster, data, tmp_path):
    (tmp_path / "list").write_text(f"{data}/f001\n{data}/lost\n")
    flow = vcnb.Flow("lost")
    load = flow.add("load", cache={"load": {"index_file": str(tmp_path / "list")}})
    load >> flow.add("train", task("true"))

    with pytest.raises(vcnb.FlowFailed, match=f"first failed file: file://{data}/lost: NOT_FOUND"):
        cluster.submit(flow).wait(timeout=60)

    entry = cluster.flows["lost"].object["status"]["nodes"]["load"]
    assert entry["failedFileCount"] == 1
    assert entry["failedFiles"][0]["path"] == f"file://{data}/lost"
    assert cluster.flows["lost"].nodes["train"].phase == "Omitted"


def test_a_load_is_tried_again_and_then_finds_its_file(cluster, data, tmp_path):
    late = data / "late"
    (tmp_path / "list").write_text(f"{late}\n")
    flow = vcnb.Flow("again")
    flow.add(
        "load",
        cache={"load": {"index_file": str(tmp_path / "list")}},
        retry={"limit": 5, "backoff": {"seconds": 0.2, "factor": 1}},
    )

    handle = cluster.submit(flow)
    until(lambda: (handle.nodes["load"].attempt or 0) >= 1)
    late.write_bytes(b"here")
    handle.wait(timeout=60)

    assert handle.nodes["load"].phase == "Succeeded"
    assert len(cluster.cache.list(type="LOAD")) == handle.nodes["load"].attempts


def test_a_condition_decides_about_a_load(cluster, data):
    flow = vcnb.Flow("cond", params={"warm": False})
    load = flow.add("load", cache={"load": {"path": str(data)}}, when="params.warm")
    load >> flow.add("train", task("true"))

    done = cluster.submit(flow).wait(timeout=60)

    assert (done.nodes["load"].phase, done.nodes["train"].phase) == ("Skipped", "Succeeded")
    assert len(cluster.cache.list()) == 0


def test_copy_and_move_are_steps_too(cluster, data, tmp_path):
    flow = vcnb.Flow("copies")
    copy = flow.add("copy", cache={"copy": {"src": str(data), "dst": str(tmp_path / "c"), "check_content": True}})
    copy >> flow.add("move", cache={"move": {"src": str(tmp_path / "c"), "dst": str(tmp_path / "m")}})

    cluster.submit(flow).wait(timeout=60)

    assert len(list((tmp_path / "m").iterdir())) == 4


def test_a_flow_that_is_terminated_stops_its_load(cluster, tmp_path):
    big = make(tmp_path / "big", files=10, size=2 * MIB)
    flow = vcnb.Flow("stop")
    flow.add("load", cache={"load": {"path": str(big), "bandwidth": "2MB", "batch_size": 1}})

    handle = cluster.submit(flow)
    until(lambda: len(cluster.cache.list(state="RUNNING")) == 1)
    handle.terminate()

    until(lambda: cluster.cache.job("load", big).state == "STOPPED")


def test_a_flow_goes_on_after_a_restart(tmp_path):
    big = make(tmp_path / "big", files=6, size=2 * MIB)
    url = f"embedded://f?dir={tmp_path / 'c'}"
    flow = vcnb.Flow("long")
    load = flow.add("load", cache={"load": {"path": str(big), "bandwidth": "4MB", "batch_size": 1}})
    load >> flow.add("train", task("echo trained"))
    with vcnb.connect(url) as cluster:
        cluster.submit(flow)
        until(lambda: len(cluster.cache.list(state="RUNNING")) == 1)
        first = cluster.cache.job("load", big).id

    with vcnb.connect(url) as cluster:
        done = cluster.flows["long"].wait(timeout=60)

        assert done.nodes["load"].cache_job == first
        assert done.nodes["train"].phase == "Succeeded"
        assert cluster.cache.job("load", big).progress().loaded_files == 6


@pytest.mark.parametrize(
    ("cache", "said"),
    [
        ({"load": {}}, "load.path: .* is required"),
        ({"load": {"path": "s3://b", "replicas": 0}}, "must be at least 1"),
        ({"load": {"path": "s3://b", "replcas": 2}}, "replicas"),
        ({"load": {"path": "s3://b"}, "free": {"path": "s3://b"}}, "exactly one of"),
        ({"copy": {"src": "/a"}}, "copy.dst: .* is required"),
        ({}, "exactly one of"),
    ],
)
def test_admission_refuses_what_cannot_be_asked(cluster, cache, said):
    flow = vcnb.Flow("wrong")
    flow.add("load", cache=cache)

    with pytest.raises(vcnb.InvalidObject, match=said):
        cluster.submit(flow)


def test_what_only_the_cache_can_refuse_fails_the_node_with_its_words(cluster):
    flow = vcnb.Flow("root")
    flow.add("load", cache={"load": {"path": "/"}})

    with pytest.raises(vcnb.FlowFailed, match="everything on this machine"):
        cluster.submit(flow).wait(timeout=60)


def test_the_short_form_of_a_cell_has_cache_nodes(cluster, data):
    import atexit

    from IPython.core.interactiveshell import InteractiveShell
    from traitlets.config import Config

    from vcnb.notebook import current

    shell = InteractiveShell(config=Config(HistoryManager={"enabled": False, "hist_file": ":memory:"}))
    try:
        shell.run_cell("%load_ext vcnb")
        current.set_current(cluster)
        cell = f"%%jobflow short --wait --quiet\nload >> free\nload: --load {data}\nfree: --free {data}\n"
        result = shell.run_cell(cell)
        assert result.success, result.error_in_exec
    finally:
        atexit.unregister(shell.atexit_operations)
        shell.atexit_operations()

    assert cluster.flows["short"].phase == "Succeed"
    assert [job.type for job in cluster.cache.list()] == ["FREE", "LOAD"]
