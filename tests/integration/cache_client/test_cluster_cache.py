"""``cluster.cache`` as people use it, on real files and the real cache of a cluster."""

import asyncio
import os
import signal
import subprocess
import sys
import textwrap

import pytest

import vcnb
from integration.cache_client.dataset import MIB, make, until

pytestmark = [pytest.mark.integration, pytest.mark.timeout(90)]


@pytest.fixture
def cluster():
    with vcnb.connect("memory://", cache_capacity="1Gi") as made:
        yield made


@pytest.fixture
def data(tmp_path):
    return make(tmp_path / "data")


# loading


def test_a_load_says_what_it_did(cluster, data):
    load = cluster.cache.load(data)

    assert (load.outcome, load.type, load.path) == ("created", "LOAD", f"file://{data}")
    assert load.wait() is load
    assert load.state == "SUCCEEDED"
    progress = load.progress()
    assert (progress.scanned_files, progress.loaded_files, progress.failed_files) == (10, 10, 0)
    assert progress.loaded_bytes == progress.total_bytes == progress.fetched_bytes == 30 * MIB
    assert (progress.percent, progress.eta) == (100.0, None)
    assert cluster.cache.coverage(data) == 1.0


def test_a_second_load_skips_what_is_there(cluster, data):
    cluster.cache.load(data).wait()

    progress = cluster.cache.load(data, skip_if_exists=True).wait().progress()

    assert (progress.loaded_files, progress.skipped_files, progress.fetched_bytes) == (0, 10, 0)
    assert progress.skipped_bytes == 30 * MIB


def test_only_what_changed_is_loaded_again(cluster, data):
    cluster.cache.load(data).wait()
    (data / "f003").write_bytes(b"new" * MIB)
    os.utime(data / "f003", (1, 1))

    before = cluster.cache.coverage(data)
    progress = cluster.cache.load(data, if_changed=True).wait().progress()

    assert before == pytest.approx(0.9)
    assert (progress.loaded_files, progress.skipped_files) == (1, 9)
    assert cluster.cache.coverage(data) == 1.0


def test_a_single_file_an_empty_directory_and_an_empty_file(cluster, data, tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "nothing").write_bytes(b"")

    one = cluster.cache.load(data / "f001").wait().progress()
    none = cluster.cache.load(tmp_path / "empty").wait().progress()
    zero = cluster.cache.load(tmp_path / "nothing").wait().progress()

    assert (one.scanned_files, one.loaded_files, one.loaded_bytes) == (1, 1, 3 * MIB)
    assert (none.scanned_files, none.percent) == (0, 100.0)
    assert (zero.scanned_files, zero.loaded_files, zero.loaded_bytes) == (1, 1, 0)


def test_odd_names_are_literal(cluster, tmp_path):
    odd = tmp_path / "a b*c?[d]%41#ü"
    odd.mkdir()
    for name in ("x y", "*", "100%", ".hidden", "数"):
        (odd / name).write_bytes(name.encode())

    progress = cluster.cache.load(odd).wait().progress()

    assert (progress.loaded_files, progress.failed_files) == (5, 0)
    assert cluster.cache.coverage(str(odd) + "/") == 1.0
    assert cluster.cache.job("load", f"file://{odd}").state == "SUCCEEDED"


def test_a_path_that_does_not_exist_fails_and_says_so(cluster, tmp_path):
    load = cluster.cache.load(tmp_path / "nowhere")

    with pytest.raises(vcnb.CacheJobFailed, match="No such file") as error:
        load.wait()

    assert (error.value.id, error.value.state, error.value.reason) == (load.id, "FAILED", "NOT_FOUND")


def test_several_paths_and_their_failures(cluster, data):
    load = cluster.cache.load([data / "f001", data / "f002", data / "lost"])

    load.wait(check=False)

    failed = load.failures()
    assert load.state == "FAILED"
    assert [(file.path, file.reason) for file in failed] == [(f"file://{data}/lost", "NOT_FOUND")]
    assert list(failed.to_pandas().columns) == ["path", "reason", "message", "tries"]
    assert len(failed.to_pandas()) == 1
    assert load.progress().loaded_files == 2
    assert load.progress().percent < 100
    assert "lost" in repr(failed)
    assert "lost" in failed._repr_html_()


def test_some_failures_may_be_allowed(cluster, data):
    load = cluster.cache.load([data / "f001", data / "lost"], max_failed_files=1).wait()

    assert load.state == "SUCCEEDED"
    assert load.progress().failed_files == 1


def test_what_failed_is_done_by_a_retry(cluster, data):
    load = cluster.cache.load([data / "f001", data / "late"])
    load.wait(check=False)
    (data / "late").write_bytes(b"here now")

    again = load.retry().wait()

    assert again.id != load.id
    assert again.state == "SUCCEEDED"
    assert (again.progress().loaded_files, again.progress().skipped_files) == (1, 1)


def test_replicas_go_to_several_workers(data):
    with vcnb.connect("memory://", cache_workers=3) as cluster:
        progress = cluster.cache.load(data, replicas=2).wait().progress()
        many = cluster.cache.load(data / "f001", replicas=4)

        assert (progress.loaded_files, progress.loaded_bytes) == (10, 60 * MIB)
        assert cluster.cache.ring.workers == ("worker-1", "worker-2", "worker-3")
        assert len(set(cluster.cache.ring.locate(data / "f001", 2))) == 2
        with pytest.raises(vcnb.CacheJobFailed, match="not enough workers"):
            many.wait()


# stopping, going on, duplicates


def slow(cluster, data, **options):
    """A load that takes some seconds."""
    return cluster.cache.load(data, bandwidth=4 * MIB, batch_size=1, **options)


def test_a_running_load_is_not_started_twice(cluster, data):
    load = slow(cluster, data)
    until(lambda: load.state == "RUNNING")

    again = cluster.cache.load(data, verify=True)

    assert (again.outcome, again.id) == ("already_exists", load.id)
    assert "verify" in again.warnings[0]
    assert load.stop()


def test_a_stopped_load_goes_on_where_it_was(cluster, data):
    load = slow(cluster, data)
    until(lambda: load.progress().loaded_files >= 3)

    assert load.stop()
    assert not load.stop()
    with pytest.raises(vcnb.CacheJobFailed) as error:
        load.wait()
    assert error.value.state == "STOPPED"
    again = cluster.cache.load(data, skip_if_exists=True)

    assert (again.outcome, again.id) == ("resumed", load.id)
    progress = again.wait().progress()
    assert progress.loaded_files + progress.skipped_files == 10
    assert progress.fetched_bytes <= 33 * MIB  # one file may have been half-way


def test_a_wait_runs_out_of_time_and_the_job_goes_on(cluster, data):
    load = slow(cluster, data)

    with pytest.raises(vcnb.WaitTimeout, match="it goes on"):
        load.wait(timeout=0.2)

    assert load.state in {"WAITING", "RUNNING"}
    assert load.stop()


def test_an_interrupted_wait_says_how_to_come_back(cluster, data, capsys):
    load = cluster.cache.load(data)

    with pytest.raises(KeyboardInterrupt), load._going_on():
        raise KeyboardInterrupt

    assert f"cluster.cache.job('LOAD', 'file://{data}').wait()" in capsys.readouterr().err
    load.wait()


def test_the_same_token_is_the_same_job(cluster, data):
    first = cluster.cache.load(data, token="nightly").wait()

    assert cluster.cache.load(data, token="nightly").id == first.id


# free, copy, move


def test_free_takes_it_out_of_the_cache_and_leaves_the_source(cluster, data):
    cluster.cache.load(data).wait()

    progress = cluster.cache.free(data).wait().progress()

    assert (progress.loaded_files, progress.loaded_bytes) == (10, 30 * MIB)
    assert cluster.cache.coverage(data) == 0.0
    assert len(list(data.iterdir())) == 10
    assert cluster.cache.free(data).wait().progress().loaded_files == 0


def test_copy_and_move(cluster, data, tmp_path):
    copied, moved = tmp_path / "copied", tmp_path / "moved"

    copy = cluster.cache.copy(data, copied, check_content=True).wait()
    again = cluster.cache.copy(data, copied).wait().progress()
    move = cluster.cache.move(copied, moved).wait()

    assert copy.progress().loaded_bytes == 30 * MIB
    assert (again.loaded_files, again.skipped_files) == (0, 10)
    assert (copy.src, copy.dst) == (f"file://{data}", f"file://{copied}")
    assert sorted(path.read_bytes() for path in moved.iterdir()) == sorted(path.read_bytes() for path in data.iterdir())
    assert not [path for path in copied.rglob("*") if path.is_file()]
    assert cluster.cache.job("move", copied, moved).id == move.id
    assert cluster.cache.job("move", move.path).id == move.id


# looking


def test_lists_and_what_they_show(cluster, data):
    load = cluster.cache.load(data).wait()
    free = cluster.cache.free(data).wait()

    jobs = cluster.cache.list()

    assert [job.id for job in jobs] == [free.id, load.id]
    assert [job.id for job in cluster.cache.list(type="load")] == [load.id]
    assert [job.id for job in cluster.cache.list(state="FAILED")] == []
    assert [job.id for job in cluster.cache.list(limit=1)] == [free.id]
    assert [job.id for job in cluster.cache.list(after=free.id)] == [load.id]
    table = jobs.to_pandas()
    assert list(table["type"]) == ["FREE", "LOAD"]
    assert str(table["submitted"].dtype).endswith("UTC]")
    assert load.id in repr(jobs)
    assert "SUCCEEDED" in jobs._repr_html_()
    assert cluster.cache.job("LOAD", data).id == load.id


def test_unknown_jobs_are_not_found(cluster, data):
    with pytest.raises(vcnb.NotFound, match="never submitted"):
        cluster.cache.job("load", data)
    with pytest.raises(vcnb.NotFound, match="neither a file nor a directory"):
        cluster.cache.coverage(data / "nowhere")
    assert cluster.cache.stop("load", data) is False


def test_every_mistake_is_told_before_anything_is_written(cluster, data):
    cache = cluster.cache
    for call, said in [
        (lambda: cache.load(""), "path: is empty"),
        (lambda: cache.load(None), "path: is required"),
        (lambda: cache.load("/"), "everything on this machine"),
        (lambda: cache.load([]), "empty list"),
        (lambda: cache.load([data, None]), r"path\[1\]: is required"),
        (lambda: cache.load(data, index_file=data), "give one of them"),
        (lambda: cache.load(data, replicas=0), "replicas: must be at least 1"),
        (lambda: cache.load(data, batch_sise=1), "did you mean 'batch_size'"),
        (lambda: cache.load(data, file_filter="("), "no regular expression"),
        (lambda: cache.copy(data, data), "is the source"),
        (lambda: cache.copy(data, None), "dst: is required"),
        (lambda: cache.list(type="LOADS"), "possible: LOAD, FREE, COPY, MOVE, ALL"),
        (lambda: cache.list(state="DONE"), "possible: WAITING"),
        (cache.rerun, "name a path, an id or a coordinator"),
    ]:
        with pytest.raises(vcnb.InvalidObject, match=said):
            call()
    assert len(cache.list()) == 0


def test_what_opens_no_source_fails_with_the_reason(cluster):
    load = cluster.cache.load("gopherx://host/data")

    with pytest.raises(vcnb.CacheJobFailed, match="gopherx"):
        load.wait(timeout=30)


def test_rerun_needs_a_shared_job_store(cluster, data):
    cluster.cache.load(data).wait()

    with pytest.raises(vcnb.VcnbError, match=r"^UnavailableException: Job ETCD is not enabled$"):
        cluster.cache.rerun(data)


def test_handles_show_themselves(cluster, data):
    load = cluster.cache.load([data / "f001", data / "lost"])
    load.wait(check=False)

    bundle = load._repr_mimebundle_()

    assert "✘ load" in bundle["text/plain"]
    assert "NOT_FOUND" in bundle["text/html"]
    assert "<img alt=" in load._repr_html_()
    assert load.id in repr(load)
    assert "failed" in str(load.progress())


def test_everything_has_an_awaitable_twin(cluster, data):
    async def story():
        cache = cluster.cache
        load = await cache.load_async(data)
        await load
        numbers = await load.progress_async()
        free = await (await cache.free_async(data)).wait_async()
        return numbers.loaded_files, free.state, len(await cache.list_async()), await cache.coverage_async(data)

    assert asyncio.run(story()) == (10, "SUCCEEDED", 2, 0.0)


def test_a_closed_cluster_leaves_handles_that_can_be_looked_at(data):
    with vcnb.connect("memory://") as cluster:
        load = cluster.cache.load(data).wait()

    assert "SUCCEEDED" in repr(load)
    assert "SUCCEEDED" in load._repr_html_()
    with pytest.raises(vcnb.VcnbError):
        load.progress()


# configuration


def test_properties_by_alluxios_names(tmp_path):
    url = f"embedded://c?dir={tmp_path}"
    with vcnb.connect(url) as cluster:
        config = cluster.cache.config
        assert config["alluxio.job.batch.size"] == 200
        config["alluxio.job.batch.size"] = 2000
        config.set({"alluxio.job.retention.time": "1d", "alluxio.job.cleanup.interval": 60.0})
        assert (config["alluxio.job.retention.time"], config["alluxio.job.cleanup.interval"]) == (86400.0, 60.0)
        with pytest.raises(vcnb.InvalidObject, match=r"alluxio\.job\.batch\.sise"):
            config["alluxio.job.batch.sise"] = 1
        with pytest.raises(KeyError, match=r"did you mean 'alluxio\.job\.batch\.size'"):
            config["alluxio.job.batch.sise"]
    with vcnb.connect(url) as cluster:
        assert cluster.cache.config["alluxio.job.batch.size"] == 2000


def test_a_file_of_properties_of_a_real_alluxio_can_be_used(tmp_path):
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / "alluxio-site.properties").write_text(
        "alluxio.job.batch.size=2000\nalluxio.ttl.policy.enabled=true\n# and more\n\nvcnb.quota.s3://b/a=b/c=10Gi\n"
    )
    with vcnb.connect(f"embedded://c?dir={tmp_path}") as cluster:
        config = cluster.cache.config

        assert config["alluxio.job.batch.size"] == 2000
        assert config["alluxio.ttl.policy.enabled"] == "true"
        assert config["vcnb.quota.s3://b/a=b/c"] == 10 << 30
        with pytest.warns(UserWarning, match=r"changes nothing here: pages have 1 MiB"):
            config["alluxio.worker.page.store.page.size"] = "4MB"
        del config["alluxio.job.batch.size"]
        assert config["alluxio.job.batch.size"] == 200
        with pytest.raises(vcnb.InvalidObject, match="everything on this machine"):
            config["vcnb.quota./"] = "1Gi"


def test_a_change_of_properties_holds_at_once(cluster, data):
    cluster.cache.load(data).wait()

    cluster.cache.config["alluxio.job.batch.size"] = 3

    assert cluster.cache.load(data, skip_if_exists=True).wait().facts.options["batch_size"] == 3


def test_the_pages_are_where_they_were_asked_for(tmp_path, data):
    with vcnb.connect(
        f"embedded://p?dir={tmp_path / 'c'}", cache_dir=tmp_path / "fast", cache_capacity="64Mi"
    ) as cluster:
        cluster.cache.load(data).wait()
        used = sum(path.stat().st_size for path in (tmp_path / "fast").rglob("*") if path.is_file())

    assert used >= 30 * MIB


def test_a_place_that_cannot_be_written_says_what_to_do(data):
    with (
        vcnb.connect("memory://", cache_dir="/proc/nowhere") as cluster,
        pytest.raises(vcnb.VcnbError, match=r"cannot keep pages in /proc/nowhere.*cache_dir="),
    ):
        cluster.cache.load(data)


# starting late, ending, going on


def test_nothing_of_it_is_there_before_it_is_used(tmp_path):
    code = """
        import sys, threading, vcnb
        with vcnb.connect("embedded://l?dir=" + sys.argv[1]) as cluster:
            print(cluster.cache)
            heavy = ("vcnb.cache.coordinator.coordinator", "vcnb.cache.service", "fsspec", "pandas", "cryptography")
            print([name for name in heavy if name in sys.modules])
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code), str(tmp_path)],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )

    assert done.stdout.splitlines() == ["<cache of this cluster>", "[]"]
    assert not (tmp_path / "cache").exists()


def test_unfinished_jobs_go_on_at_the_next_connect(tmp_path, data):
    url = f"embedded://g?dir={tmp_path / 'c'}"
    with vcnb.connect(url) as cluster:
        load = slow(cluster, data)
        until(lambda: load.progress().loaded_files >= 2)
        assert (tmp_path / "c" / "cache" / "active").exists()

    with vcnb.connect(url) as cluster:
        until(lambda: cluster._engine.cache.embedded is not None)  # started by itself
        again = cluster.cache.job("load", data)
        assert again.id == load.id
        assert again.wait(timeout=60).progress().loaded_files == 10
        assert cluster.cache.coverage(data) == 1.0
    assert not (tmp_path / "c" / "cache" / "active").exists()


def test_a_job_survives_the_kernel(tmp_path, data):
    """Reference 8, row 87: the process that submitted is killed; a new one attaches by type and path."""
    url = f"embedded://k?dir={tmp_path / 'c'}"
    code = f"""
        import os, signal, sys, time, vcnb
        cluster = vcnb.connect({url!r})
        load = cluster.cache.load({str(data)!r}, bandwidth={4 * MIB}, batch_size=1)
        while load.progress().loaded_files < 2:
            time.sleep(0.02)
        print(load.id, flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == -signal.SIGKILL, done.stderr

    with vcnb.connect(url) as cluster:
        load = cluster.cache.job("load", data)
        load.wait(timeout=60)

        assert load.id == done.stdout.strip()
        assert load.facts.epoch >= 2
        assert (load.progress().scanned_files, load.progress().loaded_files) == (10, 10)
        assert cluster.cache.coverage(data) == 1.0


def test_pages_survive_a_restart(tmp_path, data):
    url = f"embedded://r?dir={tmp_path / 'c'}"
    with vcnb.connect(url) as cluster:
        cluster.cache.load(data).wait()

    with vcnb.connect(url) as cluster:
        assert cluster.cache.coverage(data) == 1.0
        assert cluster.cache.load(data, skip_if_exists=True).wait().progress().fetched_bytes == 0


def test_secrets_are_nowhere_in_the_clear(tmp_path, data):
    secret = "hunter2horse"
    with vcnb.connect(f"embedded://s?dir={tmp_path / 'c'}") as cluster:
        load = cluster.cache.load(data, storage_options={"token": secret}).wait()
        shown = repr(load) + str(load.facts) + load._repr_html_() + repr(cluster.cache.list())

    assert secret not in shown
    assert not [path for path in (tmp_path / "c").rglob("*") if path.is_file() and secret.encode() in path.read_bytes()]


# metrics


def test_the_numbers_of_the_cache_are_among_the_clusters(cluster, data):
    assert cluster.metrics().value("cachejobs_files_total") == 0
    cluster.cache.load(data).wait()

    metrics = cluster.metrics()

    assert metrics.value("cachejobs_files_total", type="LOAD", result="loaded") == 10
    assert metrics.value("cachejobs_ufs_fetched_bytes_total") == 30 * MIB
    assert metrics.value("cachejobs_ufs_requests_total", op="read", code="OK") == 10
    assert metrics.value("cachejobs_ufs_request_seconds_count", op="read", code="OK") == 10
    assert metrics.value("cachejobs_ufs_requests_total", op="list", code="OK") >= 1
    assert metrics.value("alluxio_scheduler_etcd_claim_total") == 1
    assert metrics.value("alluxio_cached_storage") >= 30 * MIB
    assert metrics.value("alluxio_cached_capacity") == 1 << 30
    assert "# TYPE cachejobs_jobs_finished_total counter" in metrics.text
