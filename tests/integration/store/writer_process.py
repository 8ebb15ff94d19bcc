"""A process that writes to an embedded store as fast as it can and says what was acknowledged, until it is killed.

    python writer_process.py DIRECTORY SEED

Each acknowledged change is one line on the standard output: a name and its value, or a name and ``-`` for a deletion.
"""

from __future__ import annotations

import asyncio
import random
import sys

from vcnb.clock import RealClock
from vcnb.resources.kinds import CONFIGMAP
from vcnb.store.embedded import open_store


def say(*words: object) -> None:
    sys.stdout.write(" ".join(map(str, words)) + "\n")
    sys.stdout.flush()


async def main(directory: str, seed: int) -> None:
    chance = random.Random(seed)
    store = open_store(directory, RealClock())
    there = {obj["metadata"]["name"]: obj["data"]["value"] for obj in store.peek_all(CONFIGMAP)}
    say("open", store.recovered or "whole")
    value = max(map(int, there.values()), default=0)
    while True:
        value += 1
        name = f"a{chance.randrange(200)}"
        # Now and then an object larger than a block of the write-ahead log.
        data = {
            "value": str(value),
            "padding": "x" * chance.choice((10, 100, 200, 500, 500, 500, 500, 500, 500, 40_000)),
        }
        if name not in there:
            await store.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data})
        elif chance.random() < 0.2:
            await store.delete(CONFIGMAP, name)
            del there[name]
            say(name, "-")
            continue
        else:
            await store.patch(CONFIGMAP, name, None, {"data": data})
        there[name] = str(value)
        say(name, value)


asyncio.run(main(sys.argv[1], int(sys.argv[2])))
