"""Damaged copies of a file with something of everything: flipped bits, cut files, swapped pages, a damaged log.

Each copy must be refused, be reported by `fsck`, or read exactly as the original; of a log the last transaction may be
missing, which nothing tells from a crash. An engine that is let at it must either refuse in words or work: whatever
else it raises is a finding.
"""

from __future__ import annotations

import asyncio
import random
import shutil
from collections.abc import Callable
from pathlib import Path

from msgspec import Struct

from tests.runtime import rotting
from treadle.errors import TreadleError
from treadle.model.commands import CancelRun
from treadle.model.ids import RunId
from treadle.runtime.engine import Engine
from treadle.store.port import InboxRequest
from treadle.store.sqlite import SqliteStore

PAGE = 4_096
REQUESTS = 8
ENGINE_S = 30.0


class Rotten(Struct):
    """What became of the copies."""

    copies: int = 0
    refused: int = 0
    harmless: int = 0
    unseen: list[str] = []


def rot_often(place: Path, count: int, seed: int, say: Callable[[str], None]) -> Rotten:
    """`count` copies, each damaged in one way."""
    done = Rotten(unseen=[])
    if not count:
        return done
    say(f"{count} damaged copies")
    place.mkdir(parents=True)
    sound, dice = rotting.fill(place), random.Random(seed)
    contents = rotting.contents(sound)
    logged = _with_log(sound, place)
    ways = (_flipped, _cut, _swapped, _log)
    for number in range(count):
        way = ways[number % len(ways)]
        copy = place / "copy.db"
        for file in place.glob("copy.db*"):
            file.unlink()
        what = way(logged if way is _log else sound, copy, dice)
        _judge(done, f"{what} (seed {seed}, copy {number})", copy, contents, is_log=way is _log)
    return done


def _judge(done: Rotten, what: str, copy: Path, contents: list[object], *, is_log: bool) -> None:
    done.copies += 1
    if is_log:
        kept = asyncio.run(_requests(copy))
        if kept is None:
            done.refused += 1
        elif kept >= REQUESTS - 1:
            done.harmless += 1
        else:
            done.unseen.append(f"{what}: {REQUESTS - kept} of {REQUESTS} commits are gone and nobody said so")
        return
    if rotting.is_noticed(copy):
        done.refused += 1
    elif rotting.is_changed(copy, contents):
        done.unseen.append(f"{what}: it reads differently, and fsck finds nothing")
    else:
        done.harmless += 1
    try:
        asyncio.run(asyncio.wait_for(_engine(copy), ENGINE_S))
    except TreadleError:
        pass
    except Exception as problem:  # not in words
        done.unseen.append(f"{what}: an engine fails with {problem!r}")


async def _engine(place: Path) -> None:
    async with Engine(place) as engine:
        await engine.runs()
        await engine.gates()


async def _requests(place: Path) -> int | None:
    """How many requests are there; None if it was refused."""
    try:
        store = await SqliteStore.open(place)
    except TreadleError:
        return None
    try:
        return sum(request.id.startswith("late") for request in await store.inbox(0))
    finally:
        await store.close()


def _with_log(sound: Path, place: Path) -> Path:
    """A copy whose last commits are in its log alone, as a killed process leaves it."""
    live, left = place / "live.db", place / "left.db"
    shutil.copyfile(sound, live)

    async def fill() -> None:
        store = await SqliteStore.open(live)
        for number in range(REQUESTS):
            await store.submit(InboxRequest(f"late{number}", RunId("late"), CancelRun(), number))
        for end in ("", "-wal"):
            shutil.copyfile(f"{live}{end}", f"{left}{end}")
        await store.close()

    asyncio.run(fill())
    return left


def _flipped(sound: Path, copy: Path, dice: random.Random) -> str:
    return rotting.flipped(sound, copy, dice)


def _cut(sound: Path, copy: Path, dice: random.Random) -> str:
    content = sound.read_bytes()
    length = dice.randrange(1, len(content))
    copy.write_bytes(content[:length])
    return f"cut to {length} bytes"


def _swapped(sound: Path, copy: Path, dice: random.Random) -> str:
    content = sound.read_bytes()
    one, two = sorted(dice.sample(range(1, len(content) // PAGE), 2))
    pages = [content[at : at + PAGE] for at in range(0, len(content), PAGE)]
    pages[one], pages[two] = pages[two], pages[one]
    copy.write_bytes(b"".join(pages))
    return f"pages {one + 1} and {two + 1} swapped"


def _log(logged: Path, copy: Path, dice: random.Random) -> str:
    shutil.copyfile(logged, copy)
    content = bytearray(Path(f"{logged}-wal").read_bytes())
    place = dice.randrange(32) if dice.random() < 0.3 else dice.randrange(len(content))
    content[place] ^= 1 << dice.randrange(8)
    Path(f"{copy}-wal").write_bytes(content)
    return f"byte {place} of the log"
