"""Layout of graphs: layers, few crossings, no overlaps, the same places whatever happens."""

import random
import time
from itertools import pairwise

from vcnb.scene.dag import dag
from vcnb.scene.graph import MAX_SHAPES, Edge, Graph, Node, collapse, ranks
from vcnb.scene.layers import crossings, layout


def random_graph(size, seed, per_node=2):
    dice = random.Random(seed)
    names = tuple(f"n{number}" for number in range(size))
    edges = tuple(
        dict.fromkeys(
            (names[dice.randrange(number)], names[number]) for number in range(1, size) for _ in range(per_node)
        )
    )
    return names, edges


def test_ranks_are_longest_paths():
    assert ranks(["a", "b", "c"], [("a", "b"), ("b", "c"), ("a", "c")]) == {"a": 0, "b": 1, "c": 2}


def test_a_circle_is_cut_instead_of_looping_for_ever():
    assert set(ranks(["a", "b"], [("a", "b"), ("b", "a")])) == {"a", "b"}
    assert layout(("a", "b"), (("a", "b"), ("b", "a"), ("a", "a"))).layers == 2


def test_every_edge_goes_to_a_later_layer_and_nothing_overlaps():
    for seed in range(6):
        names, edges = random_graph(60, seed)

        plan = layout(names, edges)

        assert all(plan.places[one][0] < plan.places[other][0] for one, other in edges)
        for layer in range(plan.layers):
            places = sorted(across for rank, across in plan.places.values() if rank == layer)
            assert all(b - a > 0.999 for a, b in pairwise(places))


def test_edges_are_routed_through_every_layer_between_their_ends():
    names, edges = random_graph(40, 3)

    plan = layout(names, edges)

    for edge, route in plan.routes.items():
        assert [layer for layer, _ in route] == list(range(plan.places[edge[0]][0], plan.places[edge[1]][0] + 1))


def test_a_tree_has_no_crossings():
    names = tuple(f"n{number}" for number in range(15))
    edges = tuple((names[(number - 1) // 2], names[number]) for number in reversed(range(1, 15)))

    plan = layout(names, edges)

    for layer in range(plan.layers - 1):
        above = sorted((name for name in names if plan.places[name][0] == layer), key=lambda name: plan.places[name][1])
        ends = [sorted(plan.places[other][1] for one, other in edges if one == name) for name in above]
        assert crossings(ends) == 0


def test_crossings_are_counted():
    assert crossings([[1], [0]]) == 1
    assert crossings([[0, 1], [0, 1]]) == 1
    assert crossings([[0], [1]]) == 0


def test_layout_is_deterministic_and_does_not_depend_on_states():
    names, edges = random_graph(50, 5)
    nodes = [Node(name, "Waiting") for name in names]
    running = [Node(name, "Running") for name in names]
    links = [Edge(*edge) for edge in edges]

    before, after = dag(Graph("g", nodes, links)), dag(Graph("g", running, links))

    layout.cache_clear()
    assert dag(Graph("g", nodes, links)).body == before.body
    assert (before.width, before.height) == (after.width, after.height)


def test_two_thousand_nodes_are_drawn_within_a_second_and_two_hundred_kilobytes():
    dice = random.Random(1)
    names = [f"{dice.choice('abcdefgh')}{dice.choice('abcdefgh')}-{number}x" for number in range(2000)]
    edges = [Edge(names[dice.randrange(number)], names[number]) for number in range(1, 2000) for _ in range(2)]
    layered = [Edge(f"s{n // 100}-{n % 100}", f"s{n // 100 + 1}-{m}") for n in range(1900) for m in (n % 100, n % 7)]
    graphs = [
        Graph("wild", [Node(name) for name in names], edges),
        Graph("layered", [Node(f"s{number // 100}-{number % 100}") for number in range(2000)], layered),
    ]
    for graph in graphs:
        began = time.perf_counter()
        figure = dag(graph)
        took = time.perf_counter() - began

        assert took < 1
        assert len(figure.image()) < 200_000
        assert len(figure.inline()) < 200_000


def test_groups_have_counts_and_keep_every_node():
    nodes = [Node(f"shard-{number}", "Running" if number < 40 else "Waiting") for number in range(400)]
    graph = Graph("g", [Node("first", "Succeeded"), *nodes], [Edge("first", node.name) for node in nodes])

    shown = collapse(graph)

    assert [node.type for node in shown.nodes] == ["Job", "Group"]
    assert shown.nodes[1].counts == {"Running": 40, "Waiting": 360}
    assert len(shown.nodes[1].members) == 400
    assert [(edge.source, edge.target) for edge in shown.edges] == [("first", shown.nodes[1].name)]
    assert "shard-#" in dag(graph).body
    assert "401 nodes" in dag(graph).label


def test_a_small_graph_is_never_folded_and_a_big_one_never_exceeds_the_limit():
    names, edges = random_graph(MAX_SHAPES, 2)
    small = Graph("g", [Node(name) for name in names], [Edge(*edge) for edge in edges])
    chain = Graph("c", [Node(chr(97 + n % 26) * (n // 26 + 1)) for n in range(700)], [])
    long = Graph("l", chain.nodes, [Edge(a.name, b.name) for a, b in pairwise(chain.nodes)])

    assert collapse(small) is small
    assert len(collapse(chain).nodes) <= MAX_SHAPES
    assert len(collapse(long).nodes) <= MAX_SHAPES
