"""Collections: names, namespaces, selectors, and how they show themselves."""

import pytest

import vcnb


def job(name, **labels):
    made = vcnb.Job(name=name, tasks=[vcnb.Task("w", image="busybox", command=["true"])]).to_manifest()
    made["metadata"]["labels"] = labels
    return made


@pytest.fixture
def cluster():
    with vcnb.connect("memory://?runtime=simulated&clock=virtual") as made:
        yield made


def test_a_name_is_found_in_all_namespaces_when_only_one_has_it(cluster):
    cluster.submit(job("a"))
    cluster.submit([job("a"), job("b")], namespace="other")

    assert cluster.jobs.get("b", namespace="*").namespace == "other"
    with pytest.raises(vcnb.VcnbError, match="namespaces default, other"):
        cluster.jobs.get("a", namespace="*")
    with pytest.raises(vcnb.NotFound, match="there is no job 'c'"):
        cluster.jobs.get("c", namespace="*")


def test_delete_finds_a_name_in_all_namespaces_too(cluster):
    cluster.submit(job("b"), namespace="other")

    cluster.jobs.delete("b", namespace="*")

    assert len(cluster.jobs) == 0


def test_labels_are_selected_by_a_text_or_a_mapping(cluster):
    cluster.submit([job("a", tier="web", env="x"), job("b", tier="web", env="y")])

    assert [handle.name for handle in cluster.jobs.list(selector="tier=web,env in (y)")] == ["b"]
    assert [handle.name for handle in cluster.jobs.list(selector={"tier": "web", "env": "x"})] == ["a"]


@pytest.mark.parametrize("name", [0, None])
def test_an_object_is_named_by_a_text(cluster, name):
    with pytest.raises(TypeError, match="named by its text"):
        cluster.jobs[name]


def test_a_collection_of_a_closed_cluster_still_shows_itself(cluster):
    jobs = cluster.jobs
    cluster.close()

    assert repr(jobs) == "<jobs of <vcnb cluster memory://: closed>>"
    assert jobs._repr_mimebundle_() == {"text/plain": repr(jobs)}
