"""`treadle doctor`: checks the surroundings of a store. Each line is ok, warn or bad, and has a remedy.

Exit codes: 0 nothing bad · 1 something is bad.
"""

from __future__ import annotations

import os
import platform
import shutil
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from treadle.cli.frame.exits import NO, OK
from treadle.cli.frame.options import OutputOption, StoreOption, configuration
from treadle.cli.upkeep.diagnosis import (
    LATE_WARN_MS,
    REFUSED_RECENTLY_MS,
    Diagnosis,
    left_alone,
    refused_requests,
    size,
)
from treadle.project.settings import Configuration

if TYPE_CHECKING:
    from treadle.runtime.operate.upkeep import Health

FREE_WARN, FREE_BAD = 1 << 30, 64 << 20
"""Bytes left on the disk: below a gigabyte somebody should act soon, below 64 MiB the next burst may not fit."""
WAL_WARN = 256 << 20
"""Bytes of write-ahead log: more means that a long reader keeps it from being written back."""
CLOCK_SANE_FROM = 1_735_689_600
"""1 January 2025, in seconds: an earlier clock has lost its battery."""


def doctor(*, store: StoreOption = None, output: OutputOption = None) -> int:
    """Check the surroundings: versions, disk, owner, clock."""
    from treadle.cli.frame.opening import drive

    return drive(_doctor(configuration(store, output)))


async def _doctor(config: Configuration) -> int:
    from treadle.cli.screen.output import Out

    lines = [*_surroundings(config)]
    if config.store.dsn is not None:
        from treadle.cli.upkeep.doctor_postgres import lines as database

        lines += await database(config.store)
    elif not config.store.is_missing:
        lines += await _store(config)
    else:
        lines.append(
            Diagnosis("store", "warn", f"{config.store} does not exist", "treadle run or treadle engine makes it")
        )
    out = Out(config["output"])
    out.rows(("verdict", "check", "finding"), list(_rows(lines, words=out.text)), "", (("wrap", "finding"),))
    return NO if any(line.verdict == "bad" for line in lines) else OK


def _rows(lines: list[Diagnosis], *, words: bool) -> Iterator[dict[str, str]]:
    """In a table the remedy gets a line of its own below the finding: there is no room for both side by side."""
    for line in lines:
        yield line._asdict()
        if words and line.remedy:
            yield {"finding": f"→ {line.remedy}"}


def _surroundings(config: Configuration) -> Iterator[Diagnosis]:
    from importlib.metadata import version

    yield Diagnosis("treadle", "ok", version("treadle"))
    known = (3, 11) <= sys.version_info[:2] <= (3, 14)
    remedy = "" if known else "use Python 3.11–3.14"
    yield Diagnosis("python", "ok" if known else "bad", f"{platform.python_version()} on {platform.system()}", remedy)
    yield Diagnosis("settings", "ok", str(config.file) if config.file is not None else "no treadle.toml")
    now = time.time()
    if now < CLOCK_SANE_FROM:
        yield Diagnosis(
            "clock", "bad", time.strftime("%Y-%m-%d", time.gmtime(now)), "set the clock: timers depend on it"
        )
    else:
        yield Diagnosis("clock", "ok", time.strftime("%Y-%m-%d %H:%M:%S %Z", time.localtime(now)))
    if config.store.path is None:
        return
    folder = config.store.path.resolve().parent
    if not folder.is_dir():
        yield Diagnosis("folder", "bad", f"{folder} does not exist", "make it, or choose another --store")
        return
    writable = os.access(folder, os.W_OK)
    yield Diagnosis(
        "folder", "ok" if writable else "bad", str(folder), "" if writable else "make it writable for this user"
    )
    yield _disk(folder)


def _disk(folder: Path) -> Diagnosis:
    free = shutil.disk_usage(folder).free
    verdict = "ok" if free > FREE_WARN else "warn" if free > FREE_BAD else "bad"
    return Diagnosis(
        "disk", verdict, f"{size(free)} free", "" if verdict == "ok" else "free some space, or move the store"
    )


async def _store(config: Configuration) -> list[Diagnosis]:
    from treadle.errors import StorePlaceError, TreadleError
    from treadle.runtime.operate.upkeep import examine

    try:
        assert config.store.path is not None, "only a SQLite file is examined here"
        health = await examine(config.store.path)
    except StorePlaceError as problem:  # moved, or on a filesystem that does not fit: the error has its own remedy
        return [Diagnosis("store", "bad", f"{problem.path}: {problem.problem}", problem.remedy)]
    except (TreadleError, OSError) as problem:
        return [Diagnosis("store", "bad", str(problem), "restore a backup, or run treadle fsck on a copy")]
    return [Diagnosis("store", "ok", str(config.store)), *_file(health), *_work(health), *await _queues(config)]


async def _queues(config: Configuration) -> list[Diagnosis]:
    from treadle.errors import TreadleError
    from treadle.runtime.connecting import connect

    try:
        async with connect(config.store, wait_s=0) as client:
            return left_alone(await client.queues())
    except TreadleError:  # another check reports it
        return []


def _file(health: Health) -> Iterator[Diagnosis]:
    facts = health.facts
    yield Diagnosis("sqlite", "ok", str(facts.get("sqlite_version", "?")))
    mode = str(facts.get("journal_mode", "?")).lower()
    yield Diagnosis(
        "journal", "ok" if mode == "wal" else "bad", mode, "" if mode == "wal" else "let an engine open it once"
    )
    synchronous = str(facts.get("synchronous", "?")).lower()
    synchronous = {"0": "off", "1": "normal", "2": "full", "3": "extra"}.get(synchronous, synchronous)
    full = synchronous in ("full", "extra")
    yield Diagnosis(
        "synchronous", "ok" if full else "bad", synchronous, "" if full else "answers may be lost in a power cut"
    )
    quick = str(facts.get("quick_check", "?"))
    remedy = "" if quick == "ok" else "keep a copy of the file, run treadle fsck on it, restore a backup"
    yield Diagnosis("pages", "ok" if quick == "ok" else "bad", quick, remedy)
    yield from _length(facts)
    if facts.get("open_to_all"):
        yield Diagnosis(
            "permissions", "warn", "every user of this machine may read it", "chmod 600 the file and its -wal"
        )
    if facts.get("filesystem"):
        yield Diagnosis("filesystem", "ok", str(facts["filesystem"]))
    wal = next((count for name, count in health.sizes.items() if name.endswith("-wal")), 0)
    remedy = "" if wal < WAL_WARN else "a process reads for very long: look for a stuck backup or watcher"
    sizes = ", ".join(f"{name} {size(count)}" for name, count in health.sizes.items())
    yield Diagnosis("size", "ok" if wal < WAL_WARN else "warn", sizes, remedy)


def _length(facts: dict[str, Any]) -> Iterator[Diagnosis]:
    """Compares the length of the file with its header. Not while the log has pages: then it may be shorter."""
    wanted = int(facts.get("page_size", 0)) * int(facts.get("page_count", 0))
    if not facts.get("wal_bytes") and facts.get("bytes") != wanted:
        found = f"{facts.get('bytes')} bytes, its header says {wanted}"
        yield Diagnosis("length", "bad", found, "it was cut or grew: keep a copy, restore a backup")


def _work(health: Health) -> Iterator[Diagnosis]:
    from treadle.cli.screen.output import duration, now_ms

    owned = health.owner is not None
    idle = not (health.open_runs or health.requests)
    remedy = "" if owned or idle else "treadle engine"
    yield Diagnosis("owner", "ok" if owned or idle else "warn", health.owner or "no engine coordinates it", remedy)
    yield Diagnosis("runs", "ok", f"{health.open_runs:,} open")
    late = health.oldest_request or 0
    asked = f"{health.requests} unanswered" + (f", the oldest for {duration(late)}" if health.requests else "")
    bad = owned and late > LATE_WARN_MS
    remedy = (
        "restart the owner: it does not answer" if bad else "treadle engine answers them" if health.requests else ""
    )
    yield Diagnosis("requests", "bad" if bad else "warn" if health.requests else "ok", asked, remedy)
    since = now_ms() - REFUSED_RECENTLY_MS
    yield refused_requests(sum(at >= since for at in health.refused))
    late = health.oldest_timer or 0
    stuck = owned and late > LATE_WARN_MS
    due = f"{health.timers_due} overdue by up to {duration(late)}" if health.timers_due else "none overdue"
    remedy = "restart the owner" if stuck else "treadle engine fires them" if health.timers_due and not owned else ""
    yield Diagnosis("timers", "bad" if stuck else "warn" if remedy else "ok", due, remedy)
    dead = health.dead_letters
    yield Diagnosis(
        "dead letters", "warn" if dead else "ok", str(dead) if dead else "none", "treadle dead list" if dead else ""
    )
