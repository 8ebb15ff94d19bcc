"""Reading and following logs while pods start, write, restart, are replaced and end."""

from __future__ import annotations

import asyncio
import resource
import sys

import pytest

from vcnb.local.node.logs import LogQuery
from vcnb.resources.kinds import JOB, POD

pytestmark = pytest.mark.integration


async def make_job(node, name="j", **tasks):
    return await node.store.create(
        {
            "apiVersion": JOB.api_version,
            "kind": "Job",
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"tasks": [{"name": task, "replicas": count} for task, count in tasks.items()]},
        }
    )


def member(job, task, index):
    owner = {"apiVersion": JOB.api_version, "kind": "Job", "name": "j", "uid": job["metadata"]["uid"]}
    labels = {"volcano.sh/task-spec": task, "volcano.sh/task-index": str(index)}
    return {"metadata": {"ownerReferences": [owner], "labels": labels}}


async def finish(node, phase="Completed"):
    await node.store.patch(JOB, "j", "default", {"status": {"state": {"phase": phase}}}, subresource="status")


def collect(node, query, **options):
    """Follow in the background; the task's result is all lines."""
    seen = []

    async def follow():
        async for line in node.agent.logs.follow(query, **options):
            seen.append(line)
        return seen

    return asyncio.create_task(follow()), seen


def test_reading(run_node, runtime):
    async def scenario(node):
        job = await make_job(node, w=2, m=1)
        for task, index in (("w", 1), ("w", 0), ("m", 0)):
            await node.run(f"j-{task}-{index}", "sh", "-c", f"echo {task}{index}; echo end", **member(job, task, index))
        logs = node.agent.logs
        assert logs.read(LogQuery.of_job(job)) == (
            "j-w-0 | w0\nj-w-0 | end\nj-w-1 | w1\nj-w-1 | end\nj-m-0 | m0\nj-m-0 | end\n"
        )
        assert logs.read(LogQuery.of_job(job, "w", 1)) == "w1\nend\n"
        assert logs.read(LogQuery.of_job(job, "w"), tail=1) == "j-w-0 | end\nj-w-1 | end\n"
        assert logs.read(LogQuery.of_pod(node.store.peek(POD, "j-m-0", "default"))) == "m0\nend\n"
        assert logs.read(LogQuery.of_job(job, "m", container="none")) == ""

    run_node(scenario, runtime)


def test_bytes_that_are_no_text(run_node):
    async def scenario(node):
        pod = await node.run("a", "sh", "-c", r"printf 'caf\303\251 \377\376 \r50%%\r100%%\n'")
        assert node.agent.logs.read(LogQuery.of_pod(pod)) == "café \ufffd\ufffd \r50%\r100%\n"

    run_node(scenario)


def test_previous_is_the_attempt_before(run_node):
    async def scenario(node):
        script = "test -e mark && { echo second; exit 0; }; touch mark; echo first; exit 1"
        pod = await node.run("a", "sh", "-c", script, restartPolicy="OnFailure")
        query = LogQuery.of_pod(pod)
        assert node.agent.logs.read(query) == "second\n"
        assert node.agent.logs.read(query, previous=True) == "first\n"
        assert node.agent.logs.attempt_count(query) == {"a": 2}

    run_node(scenario)


def test_previous_reaches_back_to_a_pod_that_was_replaced(run_node):
    async def scenario(node):
        job = await make_job(node, w=1)
        for number in (1, 2, 3):
            await node.run("j-w-0", "echo", f"attempt {number}", **member(job, "w", 0))
            await node.store.delete(POD, "j-w-0", "default")
            await node.gone("j-w-0")
        query = LogQuery.of_job(job, "w", 0)
        assert node.agent.logs.read(query) == "attempt 3\n"
        assert node.agent.logs.read(query, previous=True) == "attempt 2\n"
        assert node.agent.logs.attempt_count(query) == {"j-w-0": 3}

    run_node(scenario)


def test_following_waits_for_a_pending_pod_and_ends_with_it(run_node, runtime):
    async def scenario(node):
        pod = node.pod("a", "sh", "-c", "echo one; sleep 0.2; printf two; sleep 0.2; echo ' and a half'; printf three")
        del pod["spec"]["nodeName"]
        created = await node.store.create(pod)
        task, _ = collect(node, LogQuery.of_pod(created))
        await node.settle()
        assert not task.done()
        await node.store.patch(POD, "a", "default", {"spec": {"nodeName": "local"}})
        assert await asyncio.wait_for(task, 20) == ["one", "two and a half", "three"]

    run_node(scenario, runtime)


def test_following_a_job_goes_on_when_a_pod_is_replaced(run_node):
    async def scenario(node):
        job = await make_job(node, w=2)
        task, seen = collect(node, LogQuery.of_job(job))  # at once: the agent's own view does not have the job yet
        await node.run("j-w-0", "sh", "-c", "echo one; exit 1", **member(job, "w", 0))
        await node.until(lambda: seen == ["j-w-0 | one"])
        await node.store.delete(POD, "j-w-0", "default")
        await node.gone("j-w-0")
        await node.run("j-w-0", "sh", "-c", "echo two; exit 0", **member(job, "w", 0))
        await node.until(lambda: seen == ["j-w-0 | one", "j-w-0 | two"])
        assert not task.done()
        await finish(node)
        await asyncio.wait_for(task, 20)
        assert seen == ["j-w-0 | one", "j-w-0 | two"]

    run_node(scenario)


def test_following_ends_when_all_pods_have_succeeded(run_node):
    async def scenario(node):
        job = await make_job(node, w=2, m=1)
        task, _ = collect(node, LogQuery.of_job(job, "w"))
        await node.run("j-w-0", "echo", "zero", **member(job, "w", 0))
        await node.settle()
        assert not task.done()
        await node.run("j-w-1", "echo", "one", **member(job, "w", 1))
        assert sorted(await asyncio.wait_for(task, 20)) == ["j-w-0 | zero", "j-w-1 | one"]

    run_node(scenario)


def test_following_ends_when_the_job_is_deleted(run_node):
    async def scenario(node):
        job = await make_job(node, w=1)
        task, seen = collect(node, LogQuery.of_job(job))
        await node.create("j-w-0", "sh", "-c", "echo up; sleep 600", **member(job, "w", 0))
        await node.until(lambda: seen == ["up"])
        await node.store.delete(POD, "j-w-0", "default", grace_period_seconds=0)
        await node.store.delete(JOB, "j", "default")
        await asyncio.wait_for(task, 20)

    run_node(scenario)


def test_following_with_a_tail(run_node):
    async def scenario(node):
        pod = await node.create("a", "sh", "-c", "seq 100; while ! test -e go; do sleep 0.02; done; echo last")
        await node.until(lambda: "100" in node.log("a"))
        task, seen = collect(node, LogQuery.of_pod(pod), tail=2)
        await node.until(lambda: len(seen) == 2)
        (node.root.parent / "go").touch()
        assert await asyncio.wait_for(task, 20) == ["99", "100", "last"]

    run_node(scenario)


def test_no_line_is_lost_or_doubled(run_node, runtime):
    async def scenario(node):
        job = await make_job(node, w=3)
        task, seen = collect(node, LogQuery.of_job(job))
        script = "for i in $(seq 5000); do echo line $i; done"
        for index in range(3):
            await node.create(f"j-w-{index}", "sh", "-c", script, **member(job, "w", index))
        await asyncio.wait_for(task, 60)
        for index in range(3):
            mine = [line for line in seen if line.startswith(f"j-w-{index} | ")]
            assert mine == [f"j-w-{index} | line {number}" for number in range(1, 5001)]

    run_node(scenario, runtime)


def test_a_log_that_is_truncated_or_rotated_while_followed(run_node):
    async def scenario(node):
        wait = "while ! test -e $1; do sleep 0.02; done"
        script = f"f() {{ {wait}; }}; echo one; f a; echo two; f b; echo three"
        pod = await node.create("a", "sh", "-c", script)
        task, seen = collect(node, LogQuery.of_pod(pod))
        await node.until(lambda: seen == ["one"])
        log = next(node.root.glob("jobs/*/pods/*/containers/main/0/log"))
        log.write_bytes(b"")
        (node.root.parent / "a").touch()
        await node.until(lambda: seen == ["one", "two"])
        log.rename(log.with_name("log.1"))
        log.write_bytes(b"after rotation\n")
        (node.root.parent / "b").touch()
        await asyncio.wait_for(task, 20)
        assert "after rotation" in seen
        assert seen[:2] == ["one", "two"]

    run_node(scenario)


def test_followers_end_with_the_agent(run_node):
    async def scenario(node):
        pod = await node.create("a", "sh", "-c", "echo up; sleep 600")
        task, seen = collect(node, LogQuery.of_pod(pod))
        await node.until(lambda: seen == ["up"])
        await node.stop("keep")
        await asyncio.wait_for(task, 5)
        await node.start()

    run_node(scenario)


def test_a_large_log_is_followed_in_bounded_memory(run_node):
    lines, width = 800_000, 250  # 200 MB
    write = (
        f"import sys\nline = 'x' * {width - 1} + '\\n'\nfor _ in range({lines} // 100): sys.stdout.write(line * 100)"
    )

    async def scenario(node):
        pod = await node.create("a", sys.executable, "-c", write)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        count = 0
        async for batch in node.agent.logs.follow_batches(LogQuery.of_pod(pod)):
            count += len(batch)
        assert count == lines
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 30_000  # KiB

    run_node(scenario)
