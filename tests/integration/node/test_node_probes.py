"""Probes and hooks of real containers, timed by a virtual clock."""

from __future__ import annotations

import signal

import pytest

from vcnb.resources.kinds import POD

pytestmark = pytest.mark.integration

SLEEP = ("sh", "-c", "echo up; while :; do sleep 0.05; done")


def status(node, name="a"):
    pod = node.store.peek(POD, name, "default")
    return ((pod.get("status") or {}).get("containerStatuses") or [{}])[0]


async def ticks(node, condition, period=1.0, count=40):
    """Move the clock period by period until the condition holds; real processes answer between."""
    for _ in range(count):
        await node.advance(period)
        for _ in range(20):
            if condition():
                return
            await node.until_once()
    pytest.fail("the condition did not come true")


def test_readiness_by_exec(run_node, runtime, tmp_path):
    probe = {"exec": {"command": ["test", "-e", str(tmp_path / "ready")]}, "periodSeconds": 1}

    async def scenario(node):
        await node.create("a", *SLEEP, container={"readinessProbe": probe})
        await node.phase("a", "Running")
        assert status(node)["ready"] is False
        (tmp_path / "ready").touch()
        await ticks(node, lambda: status(node)["ready"])
        (tmp_path / "ready").unlink()
        await ticks(node, lambda: not status(node)["ready"])
        await node.until(lambda: node.events("Unhealthy"))

    run_node(scenario, runtime, clock="virtual")


def test_liveness_restarts_the_container(run_node, runtime, tmp_path):
    probe = {"exec": {"command": ["sh", "-c", "echo not well; exit 1"]}, "periodSeconds": 1, "failureThreshold": 2}

    async def scenario(node):
        await node.create("a", *SLEEP, container={"livenessProbe": probe}, restartPolicy="Always")
        await node.phase("a", "Running")
        await ticks(node, lambda: status(node).get("restartCount", 0) >= 1)
        last = status(node)["lastState"]["terminated"]
        assert last["signal"] == signal.SIGTERM
        assert last["message"] == "liveness probe failed: not well"
        await node.until(lambda: node.events("Killing"))

    run_node(scenario, runtime, clock="virtual")


def test_a_startup_probe_holds_the_others_back(run_node, tmp_path):
    startup = {"exec": {"command": ["test", "-e", str(tmp_path / "ready")]}, "periodSeconds": 1, "failureThreshold": 99}

    async def scenario(node):
        await node.create("a", *SLEEP, container={"startupProbe": startup})
        await node.phase("a", "Running")
        assert (status(node)["started"], status(node)["ready"]) == (False, False)
        (tmp_path / "ready").touch()
        await ticks(node, lambda: status(node)["started"] and status(node)["ready"])

    run_node(scenario, clock="virtual")


def test_http_and_tcp_probes(run_node, runtime):
    serve = (
        "import http.server, os\n"
        "class H(http.server.BaseHTTPRequestHandler):\n"
        "    def do_GET(self):\n"
        "        self.send_response(200 if self.path == '/ok' else 500); self.end_headers()\n"
        "    def log_message(self, *a): pass\n"
        "http.server.HTTPServer((os.environ['VCNB_POD_IP'], 18080), H).serve_forever()"
    )
    cases = {
        "good": ({"httpGet": {"path": "/ok", "port": "web"}}, True),
        "bad": ({"httpGet": {"path": "/no", "port": 18080}}, False),
        "tcp": ({"tcpSocket": {"port": 18080}}, True),
        "closed": ({"tcpSocket": {"port": 18081}}, False),
    }

    async def scenario(node):
        ports = [{"name": "web", "containerPort": 18080}]
        for name, (probe, _) in cases.items():
            container = {"readinessProbe": {**probe, "periodSeconds": 1}, "ports": ports}
            await node.create(name, "python3", "-c", serve, container=container)
        for name in cases:
            await node.phase(name, "Running")
        await ticks(node, lambda: all(status(node, name)["ready"] for name, (_, good) in cases.items() if good))
        await ticks(node, lambda: len({e["involvedObject"]["name"] for e in node.events("Unhealthy")}) >= 2)
        for name, (_, good) in cases.items():
            assert status(node, name)["ready"] is good, name

    run_node(scenario, runtime, clock="virtual")


def test_a_probe_that_takes_too_long_has_failed(run_node):
    probe = {"exec": {"command": ["sleep", "600"]}, "timeoutSeconds": 1, "periodSeconds": 5, "failureThreshold": 1}

    async def scenario(node):
        await node.create("a", *SLEEP, container={"readinessProbe": probe})
        await node.phase("a", "Running")
        await ticks(node, lambda: node.events("Unhealthy"))
        assert "timed out after 1s" in node.events("Unhealthy")[0]["message"]

    run_node(scenario, clock="virtual")


def test_a_pre_stop_hook_runs_before_sigterm(run_node, runtime):
    script = "trap 'echo term; exit 0' TERM; echo up; while :; do sleep 0.02; done"

    async def scenario(node):
        hook = {"preStop": {"exec": {"command": ["sh", "-c", f"echo hook >>{node.root.parent}/order"]}}}
        await node.create(
            "a",
            "sh",
            "-c",
            script.replace("echo term", f"echo term >>{node.root.parent}/order"),
            container={"lifecycle": hook},
        )
        await node.until(lambda: "up" in node.log("a"))
        await node.store.delete(POD, "a", "default")
        await node.gone("a")
        assert (node.root.parent / "order").read_text() == "hook\nterm\n"

    run_node(scenario, runtime)
