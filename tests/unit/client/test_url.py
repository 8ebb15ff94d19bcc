"""Cluster URLs: options, names, and errors that say what is possible."""

import pytest

from vcnb.client.url import data_directory, parse_url
from vcnb.errors import VcnbError


def test_an_embedded_cluster_lives_in_the_users_data_directory(monkeypatch, tmp_path):
    monkeypatch.setenv("VCNB_HOME", str(tmp_path))

    target = parse_url("embedded://train")

    assert target.directory == tmp_path / "clusters" / "train"


def test_the_data_directory_follows_xdg(monkeypatch, tmp_path):
    monkeypatch.delenv("VCNB_HOME", raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))

    assert data_directory() == tmp_path / "vcnb"


def test_a_directory_in_the_query_decides():
    assert str(parse_url("embedded://x?dir=/some/where").directory) == "/some/where"


def test_two_urls_of_one_directory_are_one_cluster():
    assert parse_url("embedded://a?dir=/d").key == parse_url("embedded://b?dir=/d").key


def test_without_a_name_it_is_the_default_cluster():
    assert parse_url("embedded://").name == "default"


def test_options_by_name_win_over_the_query():
    assert parse_url("memory://?cpus=2", cpus=4).options.cpus == 4.0


def test_options_are_read_as_what_they_are():
    options = parse_url("memory://?runtime=simulated&clock=virtual&cpus=1.5&pods=7&memory=2Gi").options

    assert (options.runtime, options.clock, options.cpus, options.pods, options.memory) == (
        "simulated",
        "virtual",
        1.5,
        7,
        "2Gi",
    )


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("redis://x", "starts with embedded://"),
        ("embedded://Not A Name", "embedded://not-a-name?dir="),
        ("embedded://../../etc", "lower-case letters"),
        ("memory://?runtim=process", "did you mean 'runtime'?"),
        ("memory://?runtime=docker2", "possible: process, sandbox, simulated"),
        ("memory://?cpus=many", "cpus must be a number above 0"),
        ("memory://?cpus=inf", "cpus must be a number above 0"),
        ("memory://?memory=1x", "memory must be a quantity above 0"),
        ("memory://?memory=-5", "memory must be a quantity above 0"),
        ("memory://?pods=0", "pods must be a number above 0"),
        ("memory://?clock=virtual", "clock=virtual goes with runtime=simulated"),
    ],
)
def test_a_wrong_url_says_what_is_possible(url, said):
    with pytest.raises(VcnbError) as error:
        parse_url(url)

    assert said in str(error.value)
