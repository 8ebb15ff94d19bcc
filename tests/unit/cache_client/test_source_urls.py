"""Path arguments are literal; what names nothing, or everything, is refused with the place and what to write."""

from pathlib import Path

import pytest

from vcnb.cache.paths import source_url
from vcnb.errors import InvalidObject


@pytest.mark.parametrize(
    ("path", "url"),
    [
        ("s3://bucket/data/", "s3://bucket/data"),
        ("s3://bucket", "s3://bucket"),
        ("s3://b/a//b/../%41 b*?[c]", "s3://b/a//b/../%41 b*?[c]"),
        ("s3a://b/x", "s3a://b/x"),
        ("https://host:8080/d/x.csv?v=1", "https://host:8080/d/x.csv?v=1"),
        ("/data/set/", "file:///data/set"),
        ("/data/./a/../b", "file:///data/b"),
        ("//data", "file:///data"),
        ("file:///data/x%20y/", "file:///data/x%20y"),
        ("/d/a b*?[c]ü/数", "file:///d/a b*?[c]ü/数"),
        (Path("/data/set"), "file:///data/set"),
        (b"/data/\xff", "file:///data/\udcff"),
        ("vcache://s3/bucket/x", "s3://bucket/x"),
        ("vcache://file/data/x", "file:///data/x"),
    ],
)
def test_a_path_becomes_the_url_of_its_source(path, url):
    assert source_url(path) == url


def test_a_relative_path_is_below_the_working_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    assert source_url("data/../x") == f"file://{tmp_path}/x"


def test_a_symbolic_link_stays_as_it_is_named(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")

    assert source_url(tmp_path / "link") == f"file://{tmp_path}/link"


@pytest.mark.parametrize(
    ("path", "said"),
    [
        (None, "is required"),
        ("", "is empty"),
        ("  ", "is empty"),
        ("/", "everything on this machine"),
        ("/a/..", "everything on this machine"),
        ("file:///", "everything on this machine"),
        ("s3://", "no bucket"),
        ("s3:///", "no bucket"),
        ("vcache://s3", "no cached path"),
        ("a\0b", "zero byte"),
        (3, "must be a path, not int"),
        ({"a": 1}, "must be a path, not dict"),
    ],
)
def test_what_names_nothing_or_everything_is_refused(path, said):
    with pytest.raises(InvalidObject, match=said) as error:
        source_url(path, "src")

    assert error.value.errors[0].path == "src"
