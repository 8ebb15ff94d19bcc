"""A process that keeps and drops pages until it is killed, and one that looks at what is left. Run by test_pages_kill.

    python kill_pages.py DIRECTORY SEED ROUNDS

It has no threads when it forks: the store of every look is closed before the next child is made.
"""

import asyncio
import os
import random
import signal
import sys
import time
from pathlib import Path

from vcnb.cache.pages import PageStore, Part
from vcnb.cache.protocol import PAGE_SIZE, FileInfo, Version
from vcnb.clock import RealClock

CAPACITY = 24 << 20
SIZES = (0, 100, 5000, 200_000, PAGE_SIZE, 2 * PAGE_SIZE + 17)


def contents(path: str, etag: str, size: int) -> bytes:
    return random.Random(f"{path} {etag} {size}").randbytes(size)


async def write(directory: Path, seed: int, channel: int) -> None:
    """Keep and drop files for ever; says on the channel what it is about to do, and what is done for certain."""
    choice = random.Random(seed)
    store = await PageStore.open(directory, CAPACITY, RealClock())
    os.write(channel, b"open\n")
    for turn in range(1_000_000):
        path, etag = f"d/{choice.randrange(60)}", f"{seed}-{turn}"
        os.write(channel, f"about {path}\n".encode())
        if choice.random() < 0.2:
            store.drop(path)
            store.flush()
            os.write(channel, f"gone {path}\n".encode())
            continue
        size = choice.choice(SIZES)
        data = contents(path, etag, size)
        with await store.room(size) as reservation:
            if size > PAGE_SIZE and choice.random() < 0.5:
                draft = store.draft(path, Version(size, etag), 0, reservation)
                for start in range(0, size, PAGE_SIZE):
                    draft.write(data[start : start + PAGE_SIZE])
                draft.commit()
            else:
                store.add([Part(path, Version(size, etag), 0, data)], reservation)
        os.write(channel, f"kept {path} {etag}\n".encode())


async def look(directory: Path, said: dict[str, str], pending: str) -> int:
    """Every page that is there must be right; what was said last of a file must hold, if nothing evicted it."""
    store = await PageStore.open(directory, CAPACITY, RealClock())
    try:
        there = {file.path: file for file in store.listing("d", "", 10_000).files}
        for path, file in there.items():
            data = bytearray(file.version.size)
            if file.cached == file.version.size and file.cached:
                assert store.read_into(FileInfo(path, file.version), 0, memoryview(data)), f"{path} is damaged"
                assert bytes(data) == contents(path, file.version.etag, file.version.size), f"{path} is wrong"
            assert file.cached in {0, file.version.size}, f"{path} is there in part"
            if said.get(path) == "gone":
                assert path == pending, f"{path} has come back"
        assert sum(file.cached for file in there.values()) == store.status().used <= CAPACITY
        for path, etag in said.items():
            if etag != "gone" and path in there and path != pending:
                assert there[path].version.etag == etag, f"{path} is of version {there[path].version.etag}, not {etag}"
        assert room_taken(directory) < 3 * CAPACITY, "what was dropped still takes room"
        return len(there)
    finally:
        await store.close()


def room_taken(directory: Path) -> int:
    return sum(path.stat().st_size for path in directory.rglob("*") if path.is_file() and path.name != "index")


def round_(directory: Path, seed: int, said: dict[str, str]) -> int:
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.close(reading)
        try:
            asyncio.run(write(directory, seed, writing))
        finally:
            os._exit(3)
    os.close(writing)
    with os.fdopen(reading, "rb") as channel:
        assert channel.readline() == b"open\n"
        time.sleep(random.Random(seed).uniform(0, 0.06))  # the moment of the kill
        os.kill(child, signal.SIGKILL)
        lines = channel.read().decode().splitlines()
    assert os.WIFSIGNALED(os.waitpid(child, 0)[1]), "the writer ended by itself"
    pending = ""
    for line in lines:
        what, path, *etag = line.split()
        pending = path if what == "about" else ""
        if what != "about":
            said[path] = etag[0] if what == "kept" else "gone"
    found = asyncio.run(look(directory, said, pending))
    said.pop(pending, None)
    return found


def main() -> None:
    directory, seed, rounds = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    said: dict[str, str] = {}
    kept = 0
    for number in range(rounds):
        kept += round_(directory, seed * 1000 + number, said)
    print(f"{rounds} kills, {kept} files found whole")


if __name__ == "__main__":
    main()
