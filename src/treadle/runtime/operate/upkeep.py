"""Maintenance of a store: backup while it is in use, checks, and its state of health.

Part of the composition root, like `engine.py`: it knows the concrete stores. All of it works beside the owner of the
store, and none of it coordinates.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from treadle.errors import StoreDamaged
from treadle.model.states import RUN_OPEN
from treadle.runtime.cluster.store_ownership import require_driver
from treadle.runtime.command.kept_requests import requests as requests_of
from treadle.runtime.operate.fsck import Finding, Progress, Report, check_store, damaged
from treadle.store.places import StoreLocation, place_of
from treadle.store.port import RunQuery
from treadle.store.rows import SHARD

if TYPE_CHECKING:
    from treadle.store.postgres.health import DatabaseHealth as DatabaseHealth
    from treadle.store.postgres.health import StoreHealth as StoreHealth

BACKUP_PROGRESS = Callable[[int, int], None]
"""Called with the pages left and the pages in all."""


class Health(Struct):
    """The health of a store, in numbers."""

    owner: str | None
    """The process that coordinates it now."""
    facts: dict[str, Any]
    """SQLite's own figures, and those of the file."""
    sizes: dict[str, int]
    """Bytes by file."""
    open_runs: int
    requests: int
    """Requests that are not answered yet."""
    oldest_request: int | None
    """Age of the oldest of them, in milliseconds."""
    timers_due: int
    """Timers that are due and not fired yet."""
    oldest_timer: int | None
    """How late the oldest of them is, in milliseconds."""
    dead_letters: int
    refused: tuple[int, ...] = ()
    """When those requests were made that were kept while no engine ran and that an engine has refused."""


async def back_up(
    place: Path, target: Path, progress: BACKUP_PROGRESS | None = None, *, overwrite: bool = False
) -> int:
    """Copies a store; returns the bytes written. The copy is a complete store as of one instant. `overwrite`: replace
    an existing target when the copy is complete."""
    from treadle.store.sqlite import SqliteStore

    store = await SqliteStore.open(place)
    try:
        await store.backup(target, progress, overwrite=overwrite)
    finally:
        await store.close()
    return target.stat().st_size


async def check_everything(place: str | PathLike[str] | StoreLocation, progress: Progress | None = None) -> Report:
    """`fsck`: checks the file or database itself, then every run in it. Works on a store that was moved or is being
    moved, too."""
    store = await open_to_read(place_of(place))
    store.tell = lambda _problem: None  # every damaged row becomes a finding
    try:
        damage = await store.integrity()
        if damage:
            return Report(findings=[Finding(None, "file", line) for line in damage])
        return await check_store(store, progress=progress)
    except StoreDamaged as problem:  # a damaged row that makes a whole list unreadable
        return Report(findings=[damaged(problem)])
    finally:
        await store.close()


async def open_to_read(place: StoreLocation) -> Any:
    """Opens a store for reading, even if it is marked as moved."""
    if place.dsn is not None:
        require_driver(place.dsn)
        from treadle.store.postgres import PostgresStore

        return await PostgresStore.open(place.dsn, read_only=True)
    from treadle.store.sqlite import SqliteStore

    return await SqliteStore.open(str(place), read_only=True)


async def examine(place: Path) -> Health:
    """The health of a SQLite file."""
    from treadle.store.sqlite import Ownership, SqliteStore

    store = await SqliteStore.open(place)
    try:
        now = time.time_ns() // 1_000_000
        requests = await store.inbox(SHARD, 1_000)
        due = await store.timers(SHARD, now, 1_000)
        opened = await store.find_runs(RunQuery(statuses=RUN_OPEN, limit=100_000))
        other = Ownership.who(place)
        return Health(
            owner=other.description if other is not None else None,
            facts=await store.facts(),
            sizes={file.name: file.stat().st_size for file in _files(place)},
            open_runs=len(opened),
            requests=len(requests),
            oldest_request=now - requests[0].at if requests else None,
            timers_due=len(due),
            oldest_timer=now - due[0].due if due else None,
            dead_letters=len(await store.outbox(SHARD, limit=100_000, parked=True)),
            refused=tuple(row.asked for row in await requests_of(store, None, 1_000) if row.status == "refused"),
        )
    finally:
        await store.close()


async def examine_database(place: StoreLocation) -> DatabaseHealth:
    """The health of a database, and of the store in it."""
    assert place.dsn is not None
    require_driver(place.dsn)
    from treadle.store.postgres.health import examine

    return await examine(place.dsn)


def _files(place: Path) -> list[Path]:
    return [file for end in ("", "-wal", "-shm") if (file := Path(f"{place}{end}")).exists()]
