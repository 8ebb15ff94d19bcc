"""The client of a real Alluxio against a server that answers as documented: reference 6.5, for each generation of calls."""

import asyncio
import socket

import pytest
from aiohttp import web

from unit.cache_alluxio.fake_alluxio import HTML, LoadV1Server, MasterV1Server, WorkerV1Server, talk
from vcnb.cache.alluxio.access import AlluxioAccess
from vcnb.cache.api import CacheJobState
from vcnb.cache.errors import AlluxioError, CacheJobFailed, OutcomeUnknown, StoreUnavailable
from vcnb.cache.jobs.record import JobOptions
from vcnb.cache.jobs.request import Request
from vcnb.cache.protocol import JobType
from vcnb.clock import RealClock
from vcnb.errors import InvalidObject, InvalidState, NotFound, WaitTimeout

SERVERS = {"worker_v1": WorkerV1Server, "master_v1": MasterV1Server, "v1_load": LoadV1Server}
PATH = "s3://b/d"
STATES = ("RUNNING", "VERIFYING", "STOPPED", "SUCCEEDED", "FAILED")

every_generation = pytest.mark.parametrize("name", SERVERS)


def load(path=PATH, **options):
    return Request(JobType.LOAD, path, options=JobOptions(**options))


def key(name, path=PATH):
    """What the fake server calls a job."""
    return f"load {path}" if name == "master_v1" else path


# 1: each generation: submit, duplicate, progress in every state, stop, stop and progress of unknown, list empty and full


@every_generation
def test_the_generation_is_found_out(name):
    async def story(access, _):
        return (await access.generation()).name

    assert talk(SERVERS[name](), story) == name


@every_generation
def test_a_load_is_submitted_and_followed(name):
    server = SERVERS[name]()
    server.states[key(name)] = ["WAITING", "RUNNING", "SUCCEEDED"]

    async def story(access, _):
        answer = await access.submit(load())
        ended = await access.wait(answer.facts.id)
        return answer, ended

    answer, ended = talk(server, story)

    assert answer.outcome == "created"
    assert answer.facts.path == PATH
    assert ended.state is CacheJobState.SUCCEEDED


@every_generation
def test_a_duplicate_is_the_job_that_is_there(name):
    server = SERVERS[name]()

    async def story(access, _):
        first = await access.submit(load())
        return first, await access.submit(load())

    first, second = talk(server, story)

    assert second.outcome == "already_exists"
    assert second.facts.state is CacheJobState.RUNNING
    assert second.facts.path == first.facts.path


@every_generation
@pytest.mark.parametrize("state", STATES)
def test_progress_in_every_state(name, state):
    server = SERVERS[name]()
    server.states[key(name)] = [state]

    async def story(access, _):
        job = (await access.submit(load())).facts.id
        return await access.facts(job), await access.progress(job)

    facts, progress = talk(server, story)

    assert facts.state.value == progress.state.value == state
    assert progress.loaded_bytes > 0
    assert progress.total_bytes > progress.loaded_bytes
    assert progress.percent is not None
    assert 0 <= progress.percent <= 100


@every_generation
def test_a_job_is_stopped_once(name):
    async def story(access, _):
        job = (await access.submit(load())).facts.id
        return await access.stop(job), await access.stop(job)

    assert talk(SERVERS[name](), story) == (True, False)


@every_generation
def test_progress_of_an_unknown_path_is_not_found(name):
    async def story(access, _):
        with pytest.raises(NotFound):
            await access.find(JobType.LOAD, "s3://nowhere")

    talk(SERVERS[name](), story)


@pytest.mark.parametrize("name", ["master_v1", "v1_load"])
def test_lists_empty_and_full(name):
    server = SERVERS[name]()

    async def story(access, _):
        empty = await access.jobs()
        for number in range(5):
            await access.submit(load(f"s3://b/{number}"))
        return empty, await access.jobs(), await access.jobs("LOAD", "RUNNING", limit=2)

    empty, full, two = talk(server, story)

    assert list(empty) == []
    assert sorted(facts.path for facts in full) == [f"s3://b/{number}" for number in range(5)]
    assert len(two) == 2


def test_a_worker_has_no_list():
    async def story(access, _):
        with pytest.raises(InvalidState, match="19999"):
            await access.jobs()

    talk(WorkerV1Server(), story)


# 2: missing and unknown members, unknown state


def test_missing_and_unknown_members_are_tolerated_and_kept():
    server = LoadV1Server()

    def sparse(request):
        if request.method == "GET" and "id" in request.query:
            return web.json_response({"results": [{"id": "job-0", "state": "DEFRAGMENTING", "newThing": {"a": 1}}]})
        return None

    server.fail = sparse

    async def story(access, _):
        job = (await access.submit(load())).facts.id
        return await access.facts(job), await access.progress(job)

    facts, progress = talk(server, story)

    assert facts.state is CacheJobState.UNKNOWN
    assert facts.raw["state"] == "DEFRAGMENTING"
    assert progress.raw["newThing"] == {"a": 1}
    assert (progress.loaded_bytes, progress.percent, progress.quota) == (0, None, None)


# 3: 409 in both meanings


def test_409_that_names_the_job_resumes_it():
    server = LoadV1Server()
    server.version = "3.6"

    async def story(access, _):
        first = await access.submit(load())
        return first, await access.submit(load())

    first, again = talk(server, story)

    assert again.outcome == "resumed"
    assert again.facts.id == first.facts.id


def test_409_that_refuses_is_the_job_that_is_there():
    server = LoadV1Server()

    async def story(access, _):
        await access.submit(load())
        return await access.submit(load())

    again = talk(server, story)

    assert again.outcome == "already_exists"
    assert "identical job already scheduled" in again.warnings[0]


# 4: 500 with HTML


@every_generation
def test_an_error_page_is_said_in_words(name):
    server = SERVERS[name]()

    async def story(access, _):
        await access.generation()
        server.fail = lambda _: web.Response(status=500, text=HTML, content_type="text/html")
        with pytest.raises(AlluxioError, match="500: 500 Internal error") as error:
            await access.submit(load())
        return error.value

    assert talk(server, story).status == 500


# 5: connection closed without an answer


def test_a_worker_that_hangs_up_on_a_duplicate_is_asked_for_progress_once():
    server = WorkerV1Server()

    async def story(access, _):
        await access.submit(load())
        server.asked.clear()
        return await access.submit(load())

    answer = talk(server, story)

    assert answer.outcome == "already_exists"
    assert [query["opType"] for _, _, query, _ in server.asked] == ["submit", "progress"]


# 6: types of option values


def test_option_values_are_texts_for_the_master():
    server = MasterV1Server()

    async def story(access, _):
        await access.submit(load(replicas=2, batch_size=300, skip_if_exists=True, metadata_only=True))

    talk(server, story)

    [body] = server.calls("POST", "/api/v1/master/submit_job/load")
    assert body == {
        "path": PATH,
        "options": {"batchSize": "300", "replicas": "2", "loadMetadataOnly": "true", "skipIfExists": "true"},
    }


def test_option_values_have_types_for_load_v1():
    server = LoadV1Server()

    async def story(access, _):
        await access.submit(load(replicas=2, batch_size=300, skip_if_exists=True, file_filter=r".*\.parquet"))
        await access.submit(Request(JobType.LOAD, options=JobOptions(index_file="/idx")))

    talk(server, story)

    first, second = server.calls("POST", "/api/v1/load")
    options = {"batchSize": 300, "replicas": 2, "skipIfExists": True, "fileFilterRegex": r".*\.parquet"}
    assert first == {"paths": [PATH], "options": options}
    assert second == {"index": "/idx", "options": {}}


# 7: GET with a body


def test_progress_of_the_master_is_a_get_with_a_body():
    server = MasterV1Server()

    async def story(access, _):
        job = (await access.submit(load())).facts.id
        server.asked.clear()
        server.headers.clear()
        await access.failures(job)

    talk(server, story)

    [(method, path, _, body)] = server.asked
    assert (method, path) == ("GET", "/api/v1/master/progress_job/load")
    assert body == {"path": PATH, "format": "TEXT", "verbose": "true"}
    assert int(server.headers[0]["Content-Length"]) > 0


@pytest.mark.parametrize("form", ["object", "uuid", "true"])
def test_every_form_of_answer_of_the_master_is_understood(form):
    server = MasterV1Server()
    server.form = form

    async def story(access, _):
        answer = await access.submit(load())
        return answer, await access.progress(answer.facts.id)

    answer, progress = talk(server, story)

    assert answer.outcome == "created"
    assert (progress.loaded_bytes, progress.total_bytes) == (10, 40)
    assert progress.raw is not None


def test_curvine_is_refused():
    server = MasterV1Server()
    server.form = "curvine"

    async def story(access, _):
        with pytest.raises(AlluxioError, match="Curvine"):
            await access.submit(load())

    talk(server, story)


# 8: odd paths

ODD = "s3://b/a b+c%41?d#ü/数"


@pytest.mark.parametrize("name", ["master_v1", "v1_load"])
def test_odd_paths_arrive_as_they_are(name):
    server = SERVERS[name]()

    async def story(access, _):
        answer = await access.submit(load(access.canonical(ODD), batch_size=1))
        return answer, await access.progress(answer.facts.id)

    # wildcards are refused unless the path is said to hold them
    async def literal(access, _):
        request = Request(JobType.LOAD, ODD, options=JobOptions(), escape=True)
        answer = await access.submit(request)
        return answer.facts, await access.progress(answer.facts.id)

    with pytest.raises(InvalidObject):
        talk(SERVERS[name](), story)
    facts, progress = talk(server, literal)

    assert facts.path == ODD
    assert progress.loaded_bytes > 0


def test_a_worker_is_told_what_it_can_understand_and_nothing_else():
    server = WorkerV1Server()

    async def story(access, _):
        await access.submit(Request(JobType.LOAD, "s3://b/a+b=c?d", options=JobOptions(), escape=True))
        for odd in ("s3://b/a b", "s3://b/a%2Fb", "s3://b/a#b", "s3://b/a&b", "s3://b/ü"):
            with pytest.raises(InvalidObject, match="cannot be told"):
                await access.submit(load(odd))

    talk(server, story)

    assert list(server.jobs) == ["s3://b/a+b=c?d"]


# 9: no answer to a submission


@pytest.mark.parametrize("name", ["master_v1", "v1_load"])
def test_silence_after_a_submission_is_looked_into_and_never_submitted_again(name):
    server = SERVERS[name]()
    place = "/api/v1/load" if name == "v1_load" else "/api/v1/master/submit_job/load"
    server.hang.add(f"POST {place}")

    async def story(access, _):
        await access.generation()
        access.rest._timeout = 0.2
        return await access.submit(load())

    answer = talk(server, story)

    assert answer.facts.path == PATH
    assert "did not answer" in answer.warnings[0]
    assert len(server.calls("POST", place)) == 1


def test_a_submission_that_never_arrived_says_so():
    server = LoadV1Server()

    def swallow(request):
        if request.method == "POST":
            request.transport.close()
            return web.Response()
        return None

    server.fail = swallow

    async def story(access, _):
        with pytest.raises(OutcomeUnknown, match="it was not taken"):
            await access.submit(load())

    talk(server, story)

    assert len(server.calls("POST", "/api/v1/load")) == 1


# 10: waiting


@every_generation
def test_wait_asks_ever_less_often(name):
    server = SERVERS[name]()
    server.states[key(name)] = ["RUNNING"] * 7 + ["SUCCEEDED"]

    async def story(access, clock):
        job = (await access.submit(load())).facts.id
        await access.wait(job)
        return clock.slept

    slept = talk(server, story)

    assert slept[:4] == [1.0, 2.0, 4.0, 8.0]
    assert set(slept[4:]) <= {10.0}


@every_generation
def test_wait_raises_at_failed_with_the_number_of_files(name):
    server = SERVERS[name]()
    server.states[key(name)] = ["RUNNING", "FAILED"]

    async def story(access, _):
        job = (await access.submit(load())).facts.id
        with pytest.raises(CacheJobFailed) as error:
            await access.wait(job)
        assert (await access.wait(job, check=False)).state is CacheJobState.FAILED
        return error.value

    error = talk(server, story)

    assert error.state == "FAILED"
    assert error.failed_files == (0 if name == "master_v1" else 2)


@every_generation
def test_wait_ends_at_stopped_and_at_its_time_out(name):
    server = SERVERS[name]()
    server.states[key(name)] = ["STOPPED"]
    running = SERVERS[name]()

    async def stopped(access, _):
        job = (await access.submit(load())).facts.id
        return (await access.wait(job, check=False)).state

    async def too_long(access, clock):
        job = (await access.submit(load())).facts.id
        with pytest.raises(WaitTimeout, match="it goes on"):
            await access.wait(job, timeout=5)
        return sum(clock.slept)

    assert talk(server, stopped) is CacheJobState.STOPPED
    assert talk(running, too_long) == 5


# what else there is


def test_failed_files_are_told_where_the_report_names_them():
    worker, newest = WorkerV1Server(), LoadV1Server()
    newest.states[PATH] = ["FAILED"]

    async def story(access, _):
        job = (await access.submit(load())).facts.id
        return [(file.path, file.reason) for file in await access.failures(job)]

    assert talk(worker, story) == [("s3://b/d/x", "WORKER_RPC_FAILED")]
    assert talk(newest, story) == [("s3://b/x", "FAILED"), ("s3://b/y", "FAILED")]


def test_free_copy_and_move_go_to_the_master_calls():
    server = MasterV1Server()

    async def story(access, _):
        free = await access.submit(Request(JobType.FREE, PATH, options=JobOptions(force=True, batch_size=200)))
        copy = await access.submit(
            Request(JobType.COPY, src="s3://a/x", dst="s3://c/y", options=JobOptions(check_content=True))
        )
        found = await access.find(JobType.COPY, "s3://a/x:s3://c/y")
        return free.facts, copy.facts, found, await access.stop(copy.facts.id)

    free, copy, found, stopped = talk(server, story)

    assert (free.type, free.path) == ("FREE", PATH)
    assert copy.path == found.path == "s3://a/x:s3://c/y"
    assert stopped
    assert server.calls("POST", "/api/v1/master/submit_job/copy") == [
        {"src": "s3://a/x", "dst": "s3://c/y", "options": {"check_content": "true"}}
    ]
    assert server.calls("POST", "/api/v1/master/submit_job/free") == [
        {"path": PATH, "options": {"batchSize": "200", "force": "true"}}
    ]


def test_a_refused_submission_says_why():
    async def worker(access, _):
        with pytest.raises(AlluxioError, match="Failed to submit load job /bad"):
            await access.submit(load("/bad"))

    async def newest(access, _):
        with pytest.raises(InvalidObject, match="no mount for s3://refused"):
            await access.submit(load("s3://refused"))
        with pytest.raises(InvalidObject, match="credentials of its mounts"):
            await access.submit(load(storage_options={"key": "x"}))

    talk(WorkerV1Server(), worker)
    talk(LoadV1Server(), newest)


def test_nothing_at_the_address_is_one_clear_error():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]

    async def run():
        access = AlluxioAccess(f"http://127.0.0.1:{port}", RealClock())
        try:
            with pytest.raises(StoreUnavailable, match="cannot be reached"):
                await access.jobs()
        finally:
            await access.close()

    asyncio.run(run())


def test_something_else_at_the_address_is_one_clear_error():
    server = LoadV1Server()
    server.fail = lambda _: web.Response(status=404, text="nginx")

    async def story(access, _):
        with pytest.raises(AlluxioError, match="none of Alluxio's REST calls"):
            await access.jobs()

    talk(server, story)


def test_headers_and_token_go_with_every_call(monkeypatch):
    monkeypatch.setenv("VCNB_ALLUXIO_TOKEN", "sesame")
    server = LoadV1Server()

    async def story(access, _):
        await access.jobs()
        return repr(access) + repr(access.rest)

    shown = talk(server, story, headers={"X-Team": "blue"})

    assert all(sent["Authorization"] == "Bearer sesame" and sent["X-Team"] == "blue" for sent in server.headers)
    assert "sesame" not in shown


def test_a_real_alluxio_has_no_rerun_by_rest():
    async def story(access, _):
        with pytest.raises(InvalidState, match="job rerun"):
            await access.rerun(type="load", path=PATH)

    talk(LoadV1Server(), story)
