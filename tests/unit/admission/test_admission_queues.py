"""Q1-Q20 and G1-G4, with their exact paths."""

from __future__ import annotations

from typing import Any

import pytest

from unit.admission.samples import create, delete, only, paths, podgroup, queue, stored, update, warned
from vcnb.admission import Rules

H, W = "volcano.sh/hierarchy", "volcano.sh/hierarchy-weights"
GPU = "nvidia.com/gpu"
TIERS = {"highestTierAllowed": 1, "highestTierName": "rack"}


def guaranteed(name: str = "q", amount: Any = 1, **spec: Any) -> Any:
    return queue(name, guarantee={"resource": {"cpu": amount}}, deserved={"cpu": amount}, **spec)


@pytest.mark.parametrize(
    ("obj", "path"),
    [
        (queue(capability={"cpu": -1}), "spec.capability.cpu"),
        (queue(deserved={"memory": "-1Gi"}), "spec.deserved.memory"),
        (queue(capability={"pods": "1500m"}), "spec.capability.pods"),
        (queue(capability={GPU: "0.5"}), f'spec.capability["{GPU}"]'),
        (queue(guarantee={"resource": {"cpu": -1}}, deserved={"cpu": 1}), "spec.guarantee.resource.cpu"),
    ],
)
def test_q1_amounts(obj: Any, path: str) -> None:
    assert only(create(obj))[0] == path


def test_q1_fractions_of_cpu_and_memory_are_fine() -> None:
    assert create(queue(capability={"cpu": "500m", "memory": "0.5Gi"})).allowed


def test_q2_and_q3_order() -> None:
    assert only(create(queue(guarantee={"resource": {"cpu": 4}}))) == (
        "spec.deserved.cpu",
        "must be at least the guarantee 4, and is not set; set it",
    )
    assert only(create(queue(guarantee={"resource": {"cpu": 4}}, deserved={"cpu": 2})))[0] == "spec.deserved.cpu"
    assert only(create(queue(capability={"cpu": 1}, deserved={"cpu": "1001m"})))[0] == "spec.deserved.cpu"
    assert create(queue(capability={"memory": 1}, deserved={"cpu": 5})).allowed


def test_q4_states() -> None:
    assert only(create(queue(state="Draining")))[0] == "status.state"
    assert create(queue(state="Open")).allowed
    assert warned(create(queue(state="Closed"))) == ["status.state"]
    exported = queue(state="Closing")
    exported["metadata"]["uid"] = "u"
    assert not create(exported).problems


@pytest.mark.parametrize(
    ("annotations", "path", "words"),
    [
        ({H: "root/a", W: "1/2/3"}, f'metadata.annotations["{W}"]', "3 parts"),  # Q5
        ({H: "root/a"}, f'metadata.annotations["{W}"]', "go together"),
        ({W: "1"}, f'metadata.annotations["{H}"]', "go together"),
        ({H: "root/a", W: "1/x"}, f'metadata.annotations["{W}"]', "'x'"),  # Q6
        ({H: "root/a", W: "1/"}, f'metadata.annotations["{W}"]', "no number"),
        ({H: "root/a", W: "1/0"}, f'metadata.annotations["{W}"]', "more than 0"),
        ({H: "root/b", W: "1/1"}, f'metadata.annotations["{H}"]', "'below'"),  # Q7
    ],
)
def test_q5_to_q7_hierarchies(annotations: Any, path: str, words: str) -> None:
    below = queue("below", annotations={H: "root/b/c", W: "1/1/1"})

    found, message = only(create(queue(annotations=annotations), below))

    assert found == path
    assert words in message


def test_q7_is_about_other_queues_and_also_on_update() -> None:
    old = queue(annotations={H: "root/b", W: "1/1"})

    assert update(queue(annotations={H: "root/b", W: "1/2"}), old, old).allowed
    below = queue("below", annotations={H: "root/z/c", W: "1/1/1"})
    assert not update(queue(annotations={H: "root/z", W: "1/2"}), old, old, below).allowed


def test_q8_itself() -> None:
    path, message = only(create(queue(parent="q")))

    assert path == "spec.parent"
    assert "'q' cannot be its own parent" in message


def test_q8_a_loop_that_an_update_would_make() -> None:
    a, b, c = queue("a"), queue("b", parent="a"), queue("c", parent="b")

    path, message = only(update(queue("a", parent="c"), a, a, b, c))

    assert path == "spec.parent"
    assert "a -> c -> b -> a" in message


def test_a_loop_that_is_stored_already_ends_no_walk() -> None:
    a, b = queue("a", parent="b", capability={"cpu": 1}), queue("b", parent="a", capability={"cpu": 1})

    assert update(queue("a", parent="b", capability={"cpu": 2}), a, a, b).problems
    assert create(queue("x", parent="a"), a, b) is not None


def test_q9_depth() -> None:
    chain = [queue("l1"), *(queue(f"l{n}", parent=f"l{n - 1}") for n in range(2, 6))]

    assert create(queue(parent="l4"), *chain).allowed
    path, message = only(create(queue(parent="l5"), *chain))
    assert path == "spec.parent"
    assert "depth 6" in message
    assert create(queue(parent="l5"), *chain, rules=Rules(max_queue_depth=6)).allowed


def test_q9_counts_what_is_below_a_queue_that_moves() -> None:
    chain = [queue("l1"), *(queue(f"l{n}", parent=f"l{n - 1}") for n in range(2, 5))]
    moving, child = queue("m"), queue("n", parent="m")

    assert update(queue("m", parent="l3"), moving, *chain, moving, child).allowed
    assert "with what is below it" in only(update(queue("m", parent="l4"), moving, *chain, moving, child))[1]


def test_q10_missing_ancestors() -> None:
    path, message = only(create(queue(parent="tem"), queue("team")))
    assert path == "spec.parent"
    assert "did you mean 'team'?" in message
    assert "above 'orphan'" in only(create(queue(parent="orphan"), queue("orphan", parent="gone")))[1]


def test_q11_a_queue_with_pods_cannot_become_a_parent() -> None:
    assert "holds 3 pods" in only(create(queue(parent="p"), queue("p", pods=3)))[1]
    assert create(queue(parent="p"), queue("p", pods=3), queue("c", parent="p")).allowed


def test_q8_to_q11_only_when_the_parent_changes() -> None:
    old = queue("q", parent="gone")

    assert update(queue("q", parent="gone", weight=5), old, old).allowed


def test_q12_the_numbers_of_root() -> None:
    root = queue("root", reclaimable=False, capability={"cpu": 4})

    assert only(update(queue("root", reclaimable=False, capability={"cpu": 8}), root))[0] == "spec.capability"
    assert only(update(queue("root", capability={"cpu": 4}, deserved={"cpu": 1}), root))[0] == "spec.deserved"
    kept = {"capability": {"cpu": 4}, "guarantee": {"resource": {"cpu": 1}}}
    assert "spec.guarantee" in paths(update(queue("root", **kept), root))
    assert update(queue("root", capability={"cpu": "4000m"}, weight=2), root).allowed


def test_q13_the_nearest_ancestor_with_a_capability() -> None:
    world = (queue("p", capability={"cpu": 100}), queue("m", parent="p"))

    assert create(queue(parent="m", capability={"cpu": 100}), *world).allowed
    path, message = only(create(queue(parent="m", capability={"cpu": 101}), *world))
    assert path == "spec.capability.cpu"
    assert "queue 'p' above" in message
    assert create(queue(parent="m", capability={"memory": "1Ti"}), *world).allowed


@pytest.mark.parametrize("section", ["guarantee", "deserved"])
def test_q14_siblings_together(section: str) -> None:
    world = (guaranteed("p", 8), guaranteed("s", 2, parent="p"))

    assert create(guaranteed(amount=6, parent="p"), *world).allowed
    answer = create(guaranteed(amount=7, parent="p"), *world)
    assert f"spec.{section}{'.resource' if section == 'guarantee' else ''}.cpu" in paths(answer)
    assert "9" in answer.problems[0].message


def test_q14_what_the_parent_does_not_set_counts_as_nothing() -> None:
    assert not create(queue(parent="p", deserved={"cpu": 1}), queue("p")).allowed
    assert create(queue(parent="p", deserved={"cpu": 0}), queue("p")).allowed
    assert not create(queue(parent="p", deserved={GPU: 0}), queue("p")).allowed
    assert create(queue(parent="p", deserved={"count/jobs.batch": 5}), queue("p")).allowed
    assert create(queue(deserved={"cpu": 1000})).allowed
    assert create(queue(parent="root", deserved={"cpu": 1000})).allowed


def test_q15_not_below_the_largest_child() -> None:
    old = queue("p", capability={"cpu": 20})
    world = (old, queue("m", parent="p"), queue("g", parent="m", capability={"cpu": 12}))

    path, message = only(update(queue("p", capability={"cpu": 10}), old, *world))
    assert path == "spec.capability.cpu"
    assert "queue 'g' below" in message
    assert update(queue("p", capability={"cpu": 12}), old, *world).allowed


def test_q16_not_below_the_sum_of_the_children() -> None:
    old = guaranteed("p", 13)
    world = (old, guaranteed("a", 8, parent="p"), guaranteed("b", 5, parent="p"))

    answer = update(guaranteed("p", 12), old, *world)

    assert paths(answer) == ["spec.guarantee.resource.cpu", "spec.deserved.cpu"]
    assert update(guaranteed("p", 14), old, *world).allowed


def test_q13_to_q16_not_when_nothing_of_it_changes() -> None:
    old = queue("p", capability={"cpu": 1})
    world = (old, queue("c", parent="p", capability={"cpu": 5}))

    assert update(queue("p", capability={"cpu": 1}, weight=3), old, *world).allowed


def test_updates_keep_what_the_controller_filled_in() -> None:
    old = stored(queue())
    old["spec"]["parent"] = "root"

    assert update(queue(), old, old).object["spec"]["parent"] == "root"
    root = queue("root", reclaimable=False)
    assert update(queue("root", weight=2), root).object["spec"]["reclaimable"] is False


def test_a_closing_queue_may_be_edited() -> None:
    assert update(queue(state="Closing", weight=2), queue(state="Closing")).allowed


def test_q17_to_q20_deleting() -> None:
    assert "cannot be deleted" in only(delete(queue("default")))[1]
    assert "cannot be deleted" in only(delete(queue("root")))[1]
    path, message = only(delete(queue(pods=2)))
    assert path == "status.allocated.pods"
    assert "2 pods" in message
    assert delete(queue(pods=2), rules=Rules.upstream()).allowed
    assert "a, b" in only(delete(queue("p"), queue("b", parent="p"), queue("a", parent="p")))[1]
    assert delete(queue()).allowed


def test_g1_and_g2_the_queue() -> None:
    assert only(create(podgroup(queue="nope")))[0] == "spec.queue"
    assert "is Closed" in only(create(podgroup(queue="q"), queue(state="Closed")))[1]
    assert create(podgroup(queue="")).allowed
    assert create(podgroup(queue="q"), queue()).allowed


def test_g1_has_no_rule_about_leaves() -> None:
    assert create(podgroup(queue="root")).allowed


def test_g3_and_g4_tiers() -> None:
    groups = [{"name": "a"}, {"name": "b", "networkTopology": TIERS}]

    answer = create(podgroup(networkTopology=TIERS, subGroupPolicy=groups))

    assert paths(answer) == ["spec.networkTopology", "spec.subGroupPolicy[1].networkTopology"]


def test_the_namespaces_queue_replaces_the_default_one() -> None:
    meta = {"name": "team", "annotations": {"scheduling.volcano.sh/queue-name": "q"}}
    namespace = {"kind": "Namespace", "metadata": meta}
    obj = podgroup()
    obj["metadata"]["namespace"] = "team"

    assert create(obj, namespace, queue()).object["spec"]["queue"] == "q"
    other = {**obj, "spec": {**obj["spec"], "queue": "o"}}
    assert create(other, namespace, queue(), queue("o")).object["spec"]["queue"] == "o"
    assert create(obj).object["spec"]["queue"] == "default"


def test_per_task_minimums_that_would_be_ignored() -> None:
    assert warned(create(podgroup(minMember=1, minTaskMember={"a": 1, "b": 1}))) == ["spec.minTaskMember"]
    assert not create(podgroup(minMember=2, minTaskMember={"a": 1, "b": 1})).warnings
