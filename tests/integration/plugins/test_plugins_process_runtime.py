"""Where pods are plain processes, host names and mounts do not work: this is told, once, where people look."""

from __future__ import annotations

import pytest

import vcnb
from integration.plugins.plugin_jobs import sh

pytestmark = [pytest.mark.integration, pytest.mark.timeout(90)]


@pytest.fixture
def plain():
    with vcnb.connect("memory://?runtime=process") as cluster:
        yield cluster


def test_the_status_says_how_pods_run_and_why(plain):
    status = plain.status()

    assert (status.runtime, status.runtime_reason) == ("process", "asked for")
    assert "pods run as  process: asked for" in str(status)


@pytest.mark.parametrize("plugins", [{"svc": []}, {"ssh": [], "svc": []}])
def test_a_job_that_asks_for_names_is_told_once(plain, plugins):
    handle = plain.submit(vcnb.Job(name="told", tasks=[sh("w", "true", replicas=3)], plugins=plugins))
    handle.wait(timeout=30)

    told = [event for event in handle.events if event.reason == "NoHostNames"]

    assert [(event.type, event.count) for event in told] == [("Warning", 1)]
    assert "plain processes (asked for)" in told[0].message
    assert ", ".join(sorted(plugins)) in told[0].message
    assert "$VCNB_POD_IP" in told[0].message


def test_a_job_that_asks_for_nothing_is_not_warned(plain):
    handle = plain.submit(vcnb.Job(name="quiet", tasks=[sh("w", "true")], plugins={"env": []}))
    handle.wait(timeout=30)

    assert [event for event in handle.events if event.type == "Warning"] == []


def test_what_svc_gives_is_at_hand_without_names(plain):
    script = 'cat $VCNB_MOUNT_SURE_SVC/w.host; echo; echo $VC_W_HOSTS; [ -n "$VCNB_POD_IP" ] && echo address'
    handle = plain.submit(vcnb.Job(name="sure", tasks=[sh("w", script)], plugins={"svc": []}))
    handle.wait(timeout=30)

    assert handle.logs() == "sure-w-0.sure\nsure-w-0.sure\naddress\n"


def test_why_the_sandbox_does_not_work_is_in_the_status_and_in_the_event(monkeypatch):
    from vcnb.local.node import runtimes

    monkeypatch.setenv("PATH", "/nowhere")
    runtimes.detect.cache_clear()
    try:
        with vcnb.connect("memory://") as cluster:
            assert cluster.status().runtime == "process"
            assert "bubblewrap is not installed" in cluster.status().runtime_reason
            handle = cluster.submit(vcnb.Job(name="told", tasks=[sh("w", "true")], plugins={"svc": []}))
            handle.wait(timeout=30)
            assert any("bubblewrap is not installed" in event.message for event in handle.events)
    finally:
        runtimes.detect.cache_clear()
