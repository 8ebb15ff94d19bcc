"""Names: what is where, under which name, with and without a source."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from unit.cache_filesystem.reading_stage import Stage
from vcnb.cache.filesystem.names import name_of, source_of, stripped

FILES = {
    "s3://b/d/a.txt": b"a", "s3://b/d/a b": b"ab", "s3://b/d/sub/ü%20": b"u", "s3://b/d/sub/deep/x": b"x", "s3://b/d2/no": b"n",
}  # fmt: skip


@pytest.fixture
def filled(stage: Stage) -> Stage:
    for path, data in FILES.items():
        stage.source.put(path, data)
    return stage


@pytest.mark.parametrize(
    ("given", "name", "source"),
    [
        ("vcache://s3/b/x", "s3/b/x", "s3://b/x"),
        ("s3://b/x", "s3/b/x", "s3://b/x"),
        ("s3/b/x", "s3/b/x", "s3://b/x"),
        ("s3a://b/x/", "s3a/b/x", "s3a://b/x"),
        ("s3://b//x//y", "s3/b//x//y", "s3://b//x//y"),
        ("s3://b/a%20b#c?d=*[e]", "s3/b/a%20b#c?d=*[e]", "s3://b/a%20b#c?d=*[e]"),
        ("s3://b/../x", "s3/b/../x", "s3://b/../x"),
        ("vcache://file/data/x", "file/data/x", "file:///data/x"),
        ("file:///data/x", "file/data/x", "file:///data/x"),
        ("file:///data//a/../x/", "file/data/x", "file:///data/x"),
        ("/data/x", "file/data/x", "file:///data/x"),
        ("vcache://http/h:80/a", "http/h:80/a", "http://h:80/a"),
        ("https://h/a?q=1", "https/h/a?q=1", "https://h/a?q=1"),
        ("memory://m/x", "memory/m/x", "memory://m/x"),
        ("file:///", "file", "file:///"),
        ("s3://", "s3", "s3://"),
    ],
)
def test_a_name_and_its_source(given: str, name: str, source: str) -> None:
    assert stripped(given) == name
    assert source_of(name) == source
    assert name_of(source) == name
    assert stripped(name) == name


def test_every_method_takes_names_urls_of_the_cache_and_source_urls(filled: Stage) -> None:
    fs = filled.filesystem()
    for path in ("s3/b/d/a.txt", "vcache://s3/b/d/a.txt", "s3://b/d/a.txt"):
        assert fs.cat_file(path) == b"a"
        assert fs.open(path).read() == b"a"
        assert fs.info(path)["name"] == "s3/b/d/a.txt"
        assert fs.exists(path)
        assert fs.isfile(path)
        assert fs.size(path) == 1
    assert fs.unstrip_protocol("s3/b/d/a.txt") == "vcache://s3/b/d/a.txt"


def test_what_lies_in_a_directory(filled: Stage) -> None:
    fs = filled.filesystem()
    assert fs.ls("s3/b/d", detail=False) == ["s3/b/d/a b", "s3/b/d/a.txt", "s3/b/d/sub"]
    kinds = {entry["name"]: (entry["type"], entry["size"]) for entry in fs.ls("s3/b/d")}
    assert kinds["s3/b/d/sub"] == ("directory", 0)
    assert kinds["s3/b/d/a b"] == ("file", 2)
    assert fs.ls("s3/b/d/a.txt", detail=False) == ["s3/b/d/a.txt"]
    with pytest.raises(FileNotFoundError):
        fs.ls("s3/b/none")
    assert fs.ls("", detail=False) == ["s3"]
    assert (fs.isdir("s3/b/d"), fs.isdir("s3/b/none"), fs.isdir("s3/b/d/a.txt"), fs.isdir("")) == (
        True,
        False,
        False,
        True,
    )


def test_find_walk_glob_and_du(filled: Stage) -> None:
    fs = filled.filesystem()
    below = ["s3/b/d/a b", "s3/b/d/a.txt", "s3/b/d/sub/deep/x", "s3/b/d/sub/ü%20"]
    assert fs.find("s3/b/d") == below
    assert filled.source.asked["children"] == 0, "one recursive listing"
    assert fs.find("s3/b/d", maxdepth=1) == ["s3/b/d/a b", "s3/b/d/a.txt"]
    assert fs.find("s3/b/d/a.txt") == ["s3/b/d/a.txt"]
    assert fs.find("s3/b/none") == []
    assert set(fs.find("s3/b/d", withdirs=True)) == {*below, "s3/b/d", "s3/b/d/sub", "s3/b/d/sub/deep"}
    assert fs.find("s3/b/d", detail=True)["s3/b/d/a b"]["size"] == 2
    assert [(root, dirs, sorted(files)) for root, dirs, files in fs.walk("s3/b/d")] == [
        ("s3/b/d", ["sub"], ["a b", "a.txt"]),
        ("s3/b/d/sub", ["deep"], ["ü%20"]),
        ("s3/b/d/sub/deep", [], ["x"]),
    ]
    assert fs.glob("s3/b/d/*.txt") == ["s3/b/d/a.txt"]
    assert fs.glob("vcache://s3/b/d/**/x") == ["s3/b/d/sub/deep/x"]
    assert fs.glob("s3://b/d/a*") == ["s3/b/d/a b", "s3/b/d/a.txt"]
    assert fs.du("s3/b/d") == 5


def test_names_that_look_like_patterns_are_literal_where_one_file_is_meant(stage: Stage) -> None:
    for name in ("s3://b/a*b", "s3://b/a[1]", "s3://b/a?", "s3://b/{x}"):
        stage.source.put(name, name.encode())
    fs = stage.filesystem()
    for name in ("s3://b/a*b", "s3://b/a[1]", "s3://b/a?", "s3://b/{x}"):
        assert fs.cat_file(name) == name.encode()
        assert fs.exists(name)


def test_what_is_cached_is_shown_while_the_source_cannot_be_reached(stages: Callable[..., Stage]) -> None:
    stage = stages(workers=3)
    for path, data in FILES.items():
        stage.source.put(path, data)
        if path != "s3://b/d/a b":
            stage.load(path)
    stage.source.down = ConnectionError("no network")
    fs = stage.filesystem()
    assert fs.ls("s3/b/d", detail=False) == ["s3/b/d/a.txt", "s3/b/d/sub"]
    assert fs.find("s3/b/d") == ["s3/b/d/a.txt", "s3/b/d/sub/deep/x", "s3/b/d/sub/ü%20"]
    assert fs.isdir("s3/b/d/sub")
    assert fs.info("s3/b/d/a.txt")["size"] == 1
    with pytest.raises(ConnectionError):
        fs.info("s3/b/d/a b")
    with pytest.raises(ConnectionError):
        fs.ls("s3/other")
    with pytest.raises(ConnectionError):
        fs.exists("s3/b/d/a b")


def test_a_refused_listing_is_not_answered_from_the_cache(filled: Stage) -> None:
    filled.load("s3://b/d/a.txt")
    filled.source.refused["s3://b/d"] = PermissionError("403")
    fs = filled.filesystem()
    for question in (fs.ls, fs.find, fs.info):
        with pytest.raises(PermissionError):
            question("s3/b/d")


def test_times(filled: Stage) -> None:
    fs = filled.filesystem()
    assert fs.modified("s3/b/d/a.txt") == datetime.fromtimestamp(1001, UTC)
    filled.source.times["s3://b/d/a.txt"] = 0.0
    with pytest.raises(ValueError, match="when it was written"):
        fs.modified("s3/b/d/a.txt")


def test_files_are_copied_to_this_machine_whole_or_not_at_all(filled: Stage, tmp_path: Path) -> None:
    fs = filled.filesystem()
    fs.get("s3/b/d", str(tmp_path / "copy"), recursive=True)
    copied = {
        str(path.relative_to(tmp_path / "copy")): path.read_bytes()
        for path in (tmp_path / "copy").rglob("*")
        if path.is_file()
    }
    assert copied == {"a.txt": b"a", "a b": b"ab", "sub/ü%20": b"u", "sub/deep/x": b"x"}
    fs.get_file("s3/b/d/a.txt", str(tmp_path / "one"))
    assert (tmp_path / "one").read_bytes() == b"a"
    (tmp_path / "bad").mkdir()
    filled.source.put("s3://b/late", b"z" * 10)
    filled.source.fail_reads = [PermissionError("403")]
    with pytest.raises(PermissionError):
        fs.get_file("s3/b/late", str(tmp_path / "bad" / "late"))
    assert list((tmp_path / "bad").iterdir()) == []


def test_it_is_for_reading(filled: Stage) -> None:
    fs = filled.filesystem()
    refused = [
        lambda: fs.open("s3/b/new", "wb"),
        lambda: fs.pipe_file("s3/b/new", b"x"),
        lambda: fs.rm_file("s3/b/d/a.txt"),
        lambda: fs.rm("s3/b/d/a.txt"),
        lambda: fs.mkdir("s3/b/new"),
        lambda: fs.makedirs("s3/b/new"),
        lambda: fs.cp_file("s3/b/d/a.txt", "s3/b/new"),
        lambda: fs.put_file(__file__, "s3/b/new"),
    ]
    for write in refused:
        with pytest.raises(NotImplementedError, match="source itself"):
            write()
    assert set(filled.source.files) == set(FILES)


def test_options_go_to_the_source_and_are_in_no_repr(filled: Stage) -> None:
    fs = filled.filesystem(
        key="me", secret="hush", storage_options={"endpoint_url": "http://x"}, target_options={"anon": False}
    )
    fs.info("s3/b/d/a.txt")
    assert filled.source.options[-1] == {"anon": False, "endpoint_url": "http://x", "key": "me", "secret": "hush"}
    assert "hush" not in repr(fs) + repr(fs._connection) + str(fs)
