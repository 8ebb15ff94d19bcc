"""The order of listings, for any tree: every path is a place to go on, and nothing is listed twice or left out."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vcnb.cache.protocol import FileInfo, Version
from vcnb.cache.sources.walk import Walk, Walks, passed

NAMES = st.text(alphabet=st.sampled_from("ab-.0 /ü\U0001f642"), min_size=1, max_size=6).filter(
    lambda name: not name.startswith("/") and not name.endswith("/") and "//" not in name
)


class Tree:
    """Files by their names below the root ``/``."""

    def __init__(self, names: set[str]) -> None:
        files = sorted(names)
        self.files = [name for name in files if not any(other.startswith(f"{name}/") for other in files)]
        self.asked: list[str] = []
        self.broken = ""

    def everything(self) -> list[str]:
        directories = {f"{name[:end]}/" for name in self.files for end in range(len(name)) if name[end] == "/"}
        return sorted(f"/{name}" for name in {*self.files, *directories})

    async def children(self, path: str) -> Sequence[FileInfo]:
        base = path.strip("/")
        base = f"{base}/" if base else ""
        self.asked.append(path)
        if self.broken and path == self.broken:
            raise ConnectionError(path)
        found = {}
        for name in self.files:
            if name.startswith(base):
                first, slash, _ = name.removeprefix(base).partition("/")
                full = f"/{base}{first}{slash}"
                found[full] = FileInfo(full, Version(0), directory=bool(slash))
        return [found[name] for name in sorted(found)]


async def listed(tree: Tree, after: str = "", limit: int = 1000) -> list[str]:
    walk = Walk(tree.children, "/", after)
    found: list[str] = []
    while True:
        page = await walk.take(limit)
        found.extend(info.path for info in page.entries)
        if page.done:
            return found


@settings(max_examples=150, deadline=None)
@given(st.sets(NAMES, max_size=12), st.integers(1, 5))
def test_any_tree_is_listed_whole_in_order_and_from_anywhere(names: set[str], limit: int) -> None:
    async def story() -> None:
        tree = Tree(names)
        everything = tree.everything()
        assert await listed(tree) == everything
        assert await listed(tree, limit=limit) == everything
        for after in [*everything, "/a", "/b/", "/\U0001f642"]:
            assert await listed(tree, after) == [path for path in everything if path > after]

    asyncio.run(story())


def test_going_on_asks_only_for_the_directories_on_the_way_and_after() -> None:
    tree = Tree({"a/x", "b/c/x", "b/d/x", "c/x"})
    asyncio.run(listed(tree, "/b/c/x"))
    assert tree.asked == ["/", "/b/", "/b/c/", "/b/d/", "/c/"]
    assert passed("/a/", "/b/c/x")
    assert not passed("/b/", "/b/c/x")


def test_row_40_what_was_listed_before_a_failure_is_given_and_the_failure_is_raised_after_it() -> None:
    tree = Tree({"a", "b/x", "c"})
    tree.broken = "/b/"

    async def story() -> None:
        walk = Walk(tree.children, "/")
        page = await walk.take(10)
        assert ([info.path for info in page.entries], page.done) == (["/a", "/b/"], False)
        for _ in range(2):
            with pytest.raises(ConnectionError):
                await walk.take(10)
        tree.broken = ""
        page = await walk.take(10)
        assert ([info.path for info in page.entries], page.done) == (["/b/x", "/c"], True)

    asyncio.run(story())


def test_only_so_many_listings_are_kept() -> None:
    walks = Walks()
    tree = Tree(set())
    for number in range(100):
        walks.keep("/", str(number), Walk(tree.children, "/"))
    assert walks.take("/", "0") is None
    assert walks.take("/", "99") is not None
    assert walks.take("/", "99") is None
    walks.clear()
    assert walks.take("/", "98") is None
