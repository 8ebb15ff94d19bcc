"""What live views cost: a job of 10,000 changing pods, a flow of 2,000 nodes, loading the extension.

    python benchmarks/views.py [--pods 10000] [--changes 1000] [--seconds 10] [--no-browser]

- messages a second and share of a core, of the view's thread and of the cluster's loop (with the view and without it);
- time of a frame in Chromium, when the recorded messages are replayed into the built front end ten times a second;
- seconds and bytes of the repr of a flow with 2,000 nodes; milliseconds of ``%load_ext vcnb`` in a fresh IPython.
"""

from __future__ import annotations

import argparse
import base64
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, ClassVar

import comm

import vcnb
from vcnb.clock import rfc3339
from vcnb.notebook.painter import PAINTER
from vcnb.resources import kinds

CHROMIUM = os.environ.get("CHROMIUM", "/usr/bin/chromium")
STATIC = Path(vcnb.__file__).parent / "notebook" / "widget" / "static"
BATCH = 0.05


class RecordingComm(comm.base_comm.BaseComm):
    """Keeps what a widget sends."""

    opened: ClassVar[list[RecordingComm]] = []

    def __init__(self, **kwargs: Any) -> None:
        self.messages: list[tuple[float, dict[str, Any]]] = []
        self.opened.append(self)
        super().__init__(**kwargs)

    def publish_msg(self, msg_type: str, data: Any = None, metadata: Any = None, buffers: Any = None, **_: Any) -> None:
        self.messages.append((time.monotonic(), data or {}))


def pod_of(job: dict[str, Any], number: int, phase: str = "Pending") -> dict[str, Any]:
    name = job["metadata"]["name"]
    started = {"running": {"startedAt": rfc3339(time.time())}} if phase == "Running" else {}
    owner = {
        "apiVersion": job["apiVersion"],
        "kind": "Job",
        "name": name,
        "uid": job["metadata"]["uid"],
        "controller": True,
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"{name}-w-{number}",
            "namespace": "default",
            "ownerReferences": [owner],
            "labels": {"volcano.sh/job-name": name, "volcano.sh/task-spec": "w"},
            "annotations": {"volcano.sh/task-spec": "w", "volcano.sh/task-index": str(number)},
        },
        "spec": {"nodeName": "local", "containers": [{"name": "w", "image": "b"}]},
        "status": {"phase": phase, "containerStatuses": [{"name": "w", "state": started}]},
    }


async def fill(store: Any, job: dict[str, Any], pods: int) -> None:
    for number in range(pods):
        await store.create(pod_of(job, number))
    await store.patch(
        kinds.JOB,
        job["metadata"]["name"],
        "default",
        {"status": {"state": {"phase": "Running"}, "running": pods}},
        subresource="status",
    )


async def change(cluster: Any, job: dict[str, Any], pods: int, a_second: int, seconds: float) -> int:
    """Flip pods between Pending and Running, so many a second; how many were."""
    import asyncio

    store, done, began = cluster._engine.store, 0, time.monotonic()  # noqa: SLF001 - what is measured is inside
    while (now := time.monotonic()) - began < seconds:
        for _ in range(int(a_second * (now - began)) - done):
            phase = ("Running", "Pending")[done // pods % 2]
            status = pod_of(job, done % pods, phase)["status"]
            await store.patch(
                kinds.POD,
                f"{job['metadata']['name']}-w-{done % pods}",
                "default",
                {"status": status},
                subresource="status",
            )
            done += 1
        await asyncio.sleep(BATCH)
    return done


def measure_job(options: argparse.Namespace) -> list[dict[str, Any]]:
    with vcnb.connect("memory://?controllers=off") as cluster:
        task = vcnb.Task("w", replicas=options.pods, command=["true"])
        handle = cluster.submit(vcnb.Job(name="crowd", tasks=[task]))
        job = handle.object
        bridge, store = cluster._bridge, cluster._engine.store  # noqa: SLF001 - as above
        bridge.run(fill(store, job, options.pods))

        def loop_share() -> tuple[float, int]:
            before = bridge.call(time.thread_time)
            done = bridge.run(change(cluster, job, options.pods, options.changes, options.seconds))
            return (bridge.call(time.thread_time) - before) / options.seconds, done

        loop_share()  # warm
        alone, _ = loop_share()
        view = handle.view()
        sent = next(
            each.messages for each in RecordingComm.opened if "sections" in each.messages[0][1].get("state", {})
        )
        opening = [data for _, data in sent]
        already, thread = len(sent), PAINTER.call(time.thread_time)
        shared, done = loop_share()
        painting = (PAINTER.call(time.thread_time) - thread) / options.seconds
        messages = sent[already:]
        rate = len(messages) / options.seconds
        size = max((len(json.dumps(data)) for _, data in messages), default=0)
        view.close()
        print(
            f"job of {options.pods} pods, {done / options.seconds:.0f} changes a second: {rate:.1f} messages a second of at most "
            f"{size / 1000:.0f} kB; the view's thread {painting:.1%} of a core; the loop {shared:.1%}, without a view {alone:.1%}"
        )
        return [*opening, *(data for _, data in messages)]


PAGE = """async ({source, css, states}) => {
    const style = document.createElement("style"); style.textContent = css; document.head.append(style);
    const module = await import("data:text/javascript;base64," + source);
    const traits = {...states[0]}, listeners = new Map();
    const model = {
        get: (name) => traits[name], send: () => {}, save_changes: () => {},
        on: (event, call) => listeners.set(event, [...(listeners.get(event) ?? []), call]),
        off: () => {}, set: () => {},
    };
    const el = document.createElement("div"); document.body.append(el);
    module.default.render({model, el});
    const gaps = []; let last = performance.now(), going = true;
    const tick = () => { const now = performance.now(); gaps.push(now - last); last = now; if (going) requestAnimationFrame(tick); };
    requestAnimationFrame(tick);
    const work = [];
    for (let at = 0; at < 60; at++) {
        const state = states[1 + at % Math.max(states.length - 1, 1)];
        Object.assign(traits, state);
        const began = performance.now();
        for (const name of Object.keys(state)) for (const call of listeners.get("change:" + name) ?? []) call();
        await new Promise((done) => requestAnimationFrame(() => { void el.offsetHeight; done(); }));
        work.push(performance.now() - began);
        await new Promise((done) => setTimeout(done, 100));
    }
    going = false;
    const sorted = (list) => [...list].sort((a, b) => a - b);
    const at = (list, share) => sorted(list)[Math.floor(list.length * share)];
    return {p50: at(gaps, 0.5), p95: at(gaps, 0.95), most: Math.max(...gaps.slice(5)), frames: gaps.length};
}"""


def measure_browser(messages: list[dict[str, Any]]) -> None:
    if not Path(CHROMIUM).exists():
        print("no Chromium: frames are not measured")
        return
    from playwright.sync_api import sync_playwright

    states = [data["state"] for data in messages if "state" in data]
    states = [{key: value for key, value in state.items() if not key.startswith("_")} for state in states]
    source = base64.b64encode((STATIC / "view.js").read_bytes()).decode()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=CHROMIUM, args=["--headless", "--no-sandbox", "--disable-gpu"]
        )
        page = browser.new_page()
        page.goto("about:blank")
        found = page.evaluate(
            PAGE, {"source": source, "css": (STATIC / "view.css").read_text(), "states": [states[0], *states[1:][-39:]]}
        )
        browser.close()
    print(
        f"frames in Chromium, 10 updates a second: p50 {found['p50']:.1f} ms, p95 {found['p95']:.1f} ms, longest {found['most']:.0f} ms "
        f"({found['frames']} frames)"
    )


def measure_flow() -> None:
    layers = [[f"n{layer}-{number}" for number in range(50)] for layer in range(40)]
    flows = [
        {
            "name": name,
            **({"dependsOn": {"targets": [layers[layer - 1][at], layers[layer - 1][(at + 7) % 50]]}} if layer else {}),
        }
        for layer, names in enumerate(layers)
        for at, name in enumerate(names)
    ]
    with vcnb.connect("memory://?controllers=off") as cluster:
        cluster.submit(
            [vcnb.JobTemplate(name=flow["name"], tasks=[vcnb.Task("w", command=["true"])]) for flow in flows]
        )
        manifest = {
            "apiVersion": kinds.JOBFLOW.api_version,
            "kind": "JobFlow",
            "metadata": {"name": "large"},
            "spec": {"flows": flows},
        }
        flow = cluster.submit(manifest)
        flow._repr_mimebundle_()
        began = time.perf_counter()
        bundle = flow._repr_mimebundle_()
        took = time.perf_counter() - began
    size = sum(map(len, bundle.values()))
    print(f"repr of a flow of {len(flows)} nodes: {took:.2f} s, {size / 1000:.0f} kB")


LOAD = """
import time
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
began = time.perf_counter()
shell.run_line_magic("load_ext", "vcnb")
print((time.perf_counter() - began) * 1000)
"""


def measure_load() -> None:
    took = [
        float(subprocess.run([sys.executable, "-c", LOAD], capture_output=True, text=True, check=True).stdout)
        for _ in range(5)
    ]
    print(f"%load_ext vcnb: best of five {min(took):.0f} ms, worst {max(took):.0f} ms")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pods", type=int, default=10_000)
    parser.add_argument("--changes", type=int, default=1000, help="of pods, a second")
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--no-browser", action="store_true")
    options = parser.parse_args()
    comm.create_comm = RecordingComm
    measure_load()
    measure_flow()
    messages = measure_job(options)
    if not options.no_browser:
        measure_browser(messages)


if __name__ == "__main__":
    main()
