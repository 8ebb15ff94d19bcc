"""Options of cache jobs: every mistake at once, with its name, what is wrong, and what was meant."""

import pytest

from vcnb.cache.jobs.options import job_options, write_index
from vcnb.cache.protocol import JobType
from vcnb.client.cache.place import capacity_of, parse_cache_url
from vcnb.client.url import parse_url
from vcnb.errors import InvalidObject, VcnbError


def test_options_are_read_and_other_names_of_alluxio_taken():
    options = job_options(
        JobType.LOAD,
        {
            "replicas": 2,
            "bandwidth": "100MB/s",
            "load_metadata_only": True,
            "file_filter_regx": "a.*",
            "if_changed": True,
        },
    )

    assert (options.replicas, options.bandwidth, options.metadata_only) == (2, 100 << 20, True)
    assert (options.file_filter, options.skip_if_exists) == ("a.*", True)


def test_all_mistakes_are_told_at_once():
    with pytest.raises(InvalidObject) as error:
        job_options(
            JobType.LOAD,
            {"replcas": 2, "replicas": 1.5, "verify": "yes", "bandwidth": "fast", "storage_options": "x", "batch_size": True,
             "max_failed_ratio": "half"},
        )  # fmt: skip

    said = {problem.path: problem.message for problem in error.value.errors}
    assert said["replcas"] == "is not an option of load; did you mean 'replicas'?"
    assert said["replicas"] == "must be a whole number, not 1.5"
    assert said["verify"] == "is True or False, not 'yes'"
    assert "size such as" in said["bandwidth"]
    assert "mapping" in said["storage_options"]
    assert "whole number" in said["batch_size"]
    assert "between 0 and 1" in said["max_failed_ratio"]


@pytest.mark.parametrize(("type", "option"), [("FREE", "replicas"), ("COPY", "skip_if_exists"), ("LOAD", "overwrite")])
def test_an_option_of_another_verb_is_refused(type, option):
    with pytest.raises(InvalidObject, match=f"{option}: is not an option of {type.lower()}"):
        job_options(JobType(type), {option: True})


def test_the_same_list_is_the_same_index_file(tmp_path):
    first = write_index(tmp_path / "i", ["s3://b/x", "s3://b/y", "s3://b/x"])

    assert first == write_index(tmp_path / "i", ["s3://b/x", "s3://b/y"])
    assert first.read_text() == "s3://b/x\ns3://b/y\n"
    assert len(list((tmp_path / "i").iterdir())) == 1


def test_cache_urls():
    assert parse_cache_url(None).kind == "embedded"
    shared = parse_cache_url("etcd://a:2379,b:2379/jobs/x")
    assert (shared.kind, shared.endpoints, shared.prefix) == ("etcd", ("http://a:2379", "http://b:2379"), "/jobs/x")
    assert parse_cache_url("alluxios://host:19999").endpoints == ("https://host:19999",)
    other = parse_cache_url("alluxios://host:19999/proxy?api=master_v1&verify=off&timeout=5")
    assert (other.prefix, other.api, other.verify, other.timeout) == ("/proxy", "master_v1", False, 5.0)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"cache": "redis://x"}, "etcd://host:port"),
        ({"cache": "etcd://"}, "names no host"),
        ({"cache": "alluxio://a,b"}, "one coordinator"),
        ({"cache": "etcd://a:b"}, "no host:port"),
        ({"cache": "etcd://a?api=x"}, "etcd:// has no options"),
        ({"cache": "alluxio://a?api=v9"}, "api is one of"),
        ({"cache": "alluxio://a?verify=no"}, "verify is on or off"),
        ({"cache": "alluxio://a?timeout=soon"}, "above 0"),
        ({"cache": "alluxio://a?ap=x"}, "there are api, verify, timeout"),
        ({"cache_capacity": "lots"}, "size such as 10Gi"),
        ({"cache_capacity": "1Ki"}, "at least one page"),
        ({"cache_workers": 0}, "above 0"),
        ({"cache_worker": 2}, "did you mean 'cache_workers'"),
    ],
)
def test_wrong_options_of_connect_say_what_to_write(options, said):
    with pytest.raises(VcnbError, match=said):
        parse_url("memory://", **options)


def test_options_of_connect_may_stand_in_the_url():
    options = parse_url("memory://?cache_capacity=2Gi&cache_workers=3&cache_dir=/fast").options

    assert (capacity_of(options.cache_capacity), options.cache_workers, options.cache_dir) == (2 << 30, 3, "/fast")
