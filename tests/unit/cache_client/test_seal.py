"""Storage options in job records: sealed, comparable, opened only with the cluster's key."""

import os
import stat

import pytest

from vcnb.cache.config import CacheConfig
from vcnb.cache.jobs.record import JobOptions, encode
from vcnb.cache.jobs.request import Request
from vcnb.cache.protocol import JobType
from vcnb.cache.seal import Seal, SealedStores, is_sealed
from vcnb.cache.service import CacheService
from vcnb.cache.stores.jobs import JobStore
from vcnb.cache.stores.memory import MemoryKv
from vcnb.clock import VirtualClock
from vcnb.errors import InvalidObject, VcnbError

SECRET = {"key": "AKIA", "secret": "hunter2horse", "client_kwargs": {"endpoint_url": "http://s3"}}


def test_what_is_sealed_can_be_opened_and_compared(tmp_path):
    seal = Seal.of_file(tmp_path / "key")

    sealed = seal.seal(SECRET)

    assert is_sealed(sealed)
    assert "hunter2horse" not in str(sealed)
    assert sealed == Seal.of_file(tmp_path / "key").seal(dict(reversed(SECRET.items())))
    assert seal.open(sealed) == SECRET
    assert seal.seal(sealed) == sealed
    assert seal.seal({}) == {}


def test_the_key_is_for_its_owner_only(tmp_path):
    before = os.umask(0)
    try:
        Seal.of_file(tmp_path / "deep" / "key")
    finally:
        os.umask(before)

    assert stat.S_IMODE((tmp_path / "deep" / "key").stat().st_mode) == 0o600
    assert [path.name for path in (tmp_path / "deep").iterdir()] == ["key"]


def test_another_key_does_not_open_it_and_says_what_is_needed():
    sealed = Seal().seal(SECRET)

    with pytest.raises(ValueError, match="same token") as error:
        Seal().open(sealed)

    assert "hunter2horse" not in str(error.value)


def test_a_file_that_is_no_key_is_refused(tmp_path):
    (tmp_path / "key").write_text("short")

    with pytest.raises(VcnbError, match="is not a key of the cache"):
        Seal.of_file(tmp_path / "key")


def test_what_cannot_outlive_the_process_is_refused():
    with pytest.raises(InvalidObject, match="storage_options: must be plain"):
        Seal().seal({"session": object()})


def test_a_record_holds_nothing_in_the_clear_and_duplicates_are_seen():
    import asyncio

    seal, clock = Seal(), VirtualClock()
    service = CacheService(JobStore(MemoryKv(clock)), clock, config=CacheConfig(), seal=seal.seal)
    asked = Request(JobType.LOAD, "s3://b/d", options=JobOptions(storage_options=SECRET))
    other = Request(JobType.LOAD, "s3://b/d", options=JobOptions(storage_options={"key": "other"}))

    async def story():
        first = await service.submit(asked)
        return first.record, await service.submit(asked), await service.submit(other)

    record, again, different = asyncio.run(story())

    assert b"hunter2horse" not in encode(record)
    assert "hunter2horse" not in repr(record)
    assert (again.outcome, again.differing) == ("already_exists", ())
    assert different.differing == ("storage_options",)


def test_sources_get_them_opened():
    seal, seen = Seal(), []

    class Stores:
        def open(self, path, storage_options):
            seen.append((path, storage_options))

    SealedStores(Stores(), seal).open("s3://b", seal.seal(SECRET))

    assert seen == [("s3://b", SECRET)]
