"""A store with something of everything, copies of it with flipped bits, and what each of them says.

Used by the tests of bit rot and by the campaign of `./dev torture`.
"""

from __future__ import annotations

import asyncio
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import apsw

from treadle.errors import TreadleError
from treadle.model.commands import CancelRun
from treadle.model.ids import RunId
from treadle.runtime.operate.upkeep import back_up, check_everything
from treadle.store.port import Batch, InboxRequest
from treadle.store.rows import SHARD
from treadle.store.service import CHAINED
from treadle.store.sqlite import SqliteStore
from treadle.store.sqlite.connect import connect
from treadle.store.sqlite.transfer import _page
from treadle.store.transfer import SHELVES


def fill(folder: Path) -> Path:
    """A file as an engine has left it that was killed, with a request nobody has answered, a dead letter and a run
    without most of its history."""
    place, copy = folder / "full.db", folder / "sound.db"
    subprocess.run([sys.executable, "-m", "tests.runtime.moving", "engine", str(place)], timeout=120, check=False)
    asyncio.run(_finish(place))
    asyncio.run(back_up(place, copy))
    return copy


async def _finish(place: Path) -> None:
    store = await SqliteStore.open(place)
    try:
        fence = await store.lease(SHARD, "test", None, 60_000, evict=True)
        assert fence is not None
        rows = await store.outbox(SHARD)
        await store.commit(Batch(parked=[(rows[0].id, "nobody answers")]), fence)
        for number in range(3):
            await store.submit(InboxRequest(f"r{number}", RunId(f"run{number}"), CancelRun("me"), 1_000 + number))
        quick = [row.run for row in await _ended(store)]
        await store.forget(quick, fence, history=False)
    finally:
        await store.close()


async def _ended(store: SqliteStore) -> list[Any]:
    from treadle.model.states import RUN_ENDED
    from treadle.store.port import RunQuery

    return await store.find_runs(RunQuery(statuses=tuple(RUN_ENDED)))


def contents(place: Path) -> list[Any]:
    """Every row, but for what says nothing: see `_meaning`."""
    connection = connect(place, read_only=True)
    try:
        found: list[Any] = []
        for shelf in SHELVES:
            after: Any = ()
            while rows := (page := _page(connection, shelf, after)).rows:
                found += [(shelf, *_meaning(shelf, row)) for row in rows]
                after = page.after
        found += connection.execute("SELECT tag, runs.run FROM tags JOIN runs ON runs.id = tags.run ORDER BY 1, 2")
        return found
    finally:
        connection.close()


def _meaning(shelf: str, row: tuple[Any, ...]) -> tuple[Any, ...]:
    if shelf == "outbox":
        run, _id, effect, parked = row  # the number, and the words of why it was given up
        return run, effect, parked is not None
    if shelf == "gates":
        return row[:-2]  # `people` and `words` repeat the row for lists
    if shelf == "entities":
        return row[:-1]  # `search`, too
    if shelf == "log_heads" and row[0] not in CHAINED:
        return row[0], row[1], row[3]  # no hashes without a chain
    return row


def is_noticed(place: Path) -> bool:
    """Whether `fsck` says that something is wrong, in words."""
    try:
        return not asyncio.run(check_everything(place)).ok
    except (TreadleError, apsw.Error):
        return True


def is_changed(place: Path, sound: list[Any]) -> bool:
    """Whether it reads differently. What cannot be read has been noticed by whoever reads."""
    try:
        return contents(place) != sound
    except (TreadleError, apsw.Error, UnicodeDecodeError):
        return True


def flipped(sound: Path, copy: Path, dice: random.Random) -> str:
    """A copy with one bit changed anywhere, but for long stretches of one byte (a large value, free space), which would
    take most of them; which."""
    content = bytearray(sound.read_bytes())
    place = dice.randrange(len(content))
    while len(set(content[place - place % 32 : place - place % 32 + 32])) == 1:
        place = dice.randrange(len(content))
    bit = dice.randrange(8)
    content[place] ^= 1 << bit
    copy.write_bytes(content)
    return f"bit {bit} of byte {place}"
