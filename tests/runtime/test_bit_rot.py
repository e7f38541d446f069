"""A bit that a disk has changed is noticed: by `fsck` whatever it was, by an engine without harm to other runs."""

from __future__ import annotations

import asyncio
import random
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import apsw
import asyncpg
import pytest

from tests.postgres import new_database
from tests.runtime import rotting
from tests.runtime.executing import on_loop
from tests.runtime.test_answers import ASKS
from treadle.errors import CommandRefused, StoreDamaged
from treadle.model import events as e
from treadle.model.ids import RunId, TokenId
from treadle.model.states import RunStatus
from treadle.runtime.engine import Engine
from treadle.runtime.operate.fsck import Report
from treadle.runtime.operate.moving import move
from treadle.runtime.operate.upkeep import check_everything
from treadle.store import seals
from treadle.store.port import Batch, Commit
from treadle.store.postgres import PostgresStore
from treadle.store.sqlite import SqliteStore

FLIPS = 160
"""That change something; as many as the trial had that found a quarter of them unseen."""


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return rotting.fill(tmp_path_factory.mktemp("sound"))


def test_whatever_a_flipped_bit_changes_is_noticed(sound: Path, tmp_path: Path) -> None:
    assert asyncio.run(check_everything(sound)).ok
    before, copy, dice = rotting.contents(sound), tmp_path / "copy.db", random.Random(10)
    unseen: list[str] = []
    counted = 0
    while counted < FLIPS:
        which = rotting.flipped(sound, copy, dice)
        if rotting.is_noticed(copy):
            counted += 1
        elif rotting.is_changed(copy, before):
            unseen.append(which)
            counted += 1
    assert not unseen


VALUES = {
    "history": "UPDATE history SET block = {changed}",
    "outbox": "UPDATE outbox SET effect = {changed}",
    "gates": "UPDATE gates SET title = 'No?'",
    "requests": "UPDATE requests SET at = at + 1",
    "documents": "UPDATE documents SET hash = hash || '0'",
    "blobs": "UPDATE blobs SET content = {changed}",
    "log_entries": "UPDATE log_entries SET subject = 'another'",
    "notes": "UPDATE notes SET at = at + 1",
    "entities": "UPDATE entities SET email = 'ann@example.org'",
}
"""How a value of each table is changed so that it can still be read."""


def spoil(place: Path, table: str) -> None:
    """In a copy of the file; the last byte of a value is one more than it was."""
    column = {"history": "block", "outbox": "effect", "blobs": "content"}.get(table, "''")
    connection = apsw.Connection(str(place))
    connection.create_scalar_function("spoilt", lambda kept: kept[:-1] + bytes([kept[-1] ^ 1]))  # type: ignore[arg-type, misc]
    connection.execute(VALUES[table].format(changed=f"spoilt({column})"))
    connection.close()


@pytest.mark.parametrize("table", ["outbox", "work"])
def test_an_effect_whose_first_byte_has_changed_is_not_taken_for_one_without_a_checksum(
    sound: Path, tmp_path: Path, table: str
) -> None:
    copy = tmp_path / "copy.db"
    copy.write_bytes(sound.read_bytes())
    connection = apsw.Connection(str(copy))
    connection.create_scalar_function("spoilt", lambda kept: bytes([kept[0] ^ 1]) + kept[1:])  # type: ignore[arg-type, misc]
    connection.execute(f"UPDATE {table} SET effect = spoilt(effect)")
    connection.close()
    report = asyncio.run(check_everything(copy))
    # Queue work is judged as the rows of the outbox that it would be moved as.
    assert [one.check for one in report.findings if "(outbox, " in one.message] == ["checksum"] * 2, report.findings


@pytest.mark.parametrize("table", VALUES)
def test_a_checksum_stands_with_every_value_a_run_depends_on(sound: Path, tmp_path: Path, table: str) -> None:
    copy = tmp_path / "copy.db"
    copy.write_bytes(sound.read_bytes())
    spoil(copy, table)
    report = asyncio.run(check_everything(copy))
    assert any(one.check == "checksum" and f"({table}, " in one.message for one in report.findings), report.findings


def without_seals(place: Path) -> None:
    """As a Treadle before checksums has written it."""
    connection = apsw.Connection(str(place))
    connection.create_scalar_function("bare", lambda kept: kept[5:] if kept and kept[0] == seals.MARK else kept)  # type: ignore[arg-type, misc]
    for table, column in (
        ("history", "block"),
        ("outbox", "effect"),
        ("gates", "assign"),
        ("requests", "command"),
        ("documents", "body"),
    ):
        connection.execute(f"UPDATE {table} SET {column} = bare({column})")
    connection.execute("UPDATE gates SET assign = NULL WHERE assign = x'c0'")
    connection.close()


@on_loop
async def test_what_was_written_before_checksums_is_accepted_and_counted(sound: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy.db"
    copy.write_bytes(sound.read_bytes())
    without_seals(copy)
    async with Engine(copy) as engine:
        gates = await engine.gates()
        answered = engine.run(gates[0].run)
        await engine.complete_gate(gates[0].run, gates[0].visit, {"ok": True})
        await answered.wait(30)
    report = await check_everything(copy)
    assert report.ok, report.findings
    assert report.unsealed > 20, "what was there has no checksum"
    assert report.sealed > 0, "what came since has"


@on_loop
async def test_a_damaged_run_is_refused_and_the_others_go_on(tmp_path: Path) -> None:
    place = tmp_path / "treadle.db"
    async with Engine(place) as engine:
        await engine.deploy(ASKS)
        bad, good = await engine.start("asks"), await engine.start("asks")
    connection = apsw.Connection(str(place))
    connection.create_scalar_function("spoilt", lambda kept: kept[:-1] + bytes([kept[-1] ^ 1]))  # type: ignore[arg-type, misc]
    connection.execute(
        "UPDATE history SET block = spoilt(block) WHERE run = (SELECT id FROM runs WHERE run = ?)", (bad.id,)
    )
    connection.close()
    async with Engine(place) as engine:
        with pytest.raises(StoreDamaged, match=f"run {bad.id}: .*treadle.db is damaged .history.*restore a backup"):
            await engine.run(bad.id).history()
        with pytest.raises(CommandRefused, match=f"{bad.id} cannot be read.*checksum does not match"):
            await engine.complete_gate(bad.id, TokenId(1), {"ok": True})
        await engine.complete_gate(good.id, TokenId(1), {"ok": True})
        assert (await engine.run(good.id).wait(30)).status == "completed"


@on_loop
async def test_a_damaged_row_is_left_out_and_told_of(sound: Path, tmp_path: Path) -> None:
    """Rows are read for many runs at once: one of them must not keep the others from being read."""
    copy = tmp_path / "copy.db"
    copy.write_bytes(sound.read_bytes())
    connection = apsw.Connection(str(copy))
    connection.execute("UPDATE requests SET workflow = 'another' WHERE request = 'r0'")
    connection.execute("UPDATE gates SET title = 'No?' WHERE (run, token) = (SELECT run, token FROM gates LIMIT 1)")
    connection.close()
    told: list[str] = []
    store = await SqliteStore.open(copy)
    try:
        store.tell = lambda problem: told.append(problem.where)
        assert [request.id for request in await store.inbox(0, 1)] == ["r1"]
        assert len(await store.find_gates()) == 1
    finally:
        await store.close()
    assert told == ["requests, r0", "gates, visit 1"]


IN_A_DATABASE = {
    "history": "UPDATE history SET block = set_bit(block, 77, 1 - get_bit(block, 77))",
    "requests": "UPDATE requests SET at = at + 1",
    "gates": "UPDATE gates SET title = 'No?'",
    "documents": "UPDATE documents SET hash = hash || '0'",
    "blobs": "UPDATE blobs SET content = set_bit(content, 77, 1 - get_bit(content, 77))",
    "outbox": "UPDATE outbox SET effect = set_bit(effect, 77, 1 - get_bit(effect, 77))",
}


def test_a_move_carries_checksums_and_a_database_is_checked_alike(sound: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy.db"
    copy.write_bytes(sound.read_bytes())

    async def moved(dsn: str) -> tuple[Report, Report]:
        before = await check_everything(copy)
        await move(copy, dsn)
        return before, await check_everything(dsn)

    with new_database() as dsn:
        before, after = asyncio.run(moved(dsn))
        assert after.ok and (after.sealed, after.unsealed) == (before.sealed, before.unsealed)
        for table, change in IN_A_DATABASE.items():
            asyncio.run(_ask(dsn, change))
            report = asyncio.run(check_everything(dsn))
            found = [one for one in report.findings if one.check == "checksum" and f"({table}, " in one.message]
            assert found, (table, report.findings)


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_a_page_of_a_history_is_read_without_the_blocks_behind_it(tmp_path: Path, kind: str) -> None:
    """The last block is damaged: whoever reads it is told."""
    with new_database() if kind == "postgres" else nullcontext("") as dsn:
        asyncio.run(_read_pages(tmp_path / "t.db", dsn))


async def _read_pages(place: Path, dsn: str) -> None:
    run = RunId("r")
    store: Any = await (PostgresStore.open(dsn, shards=1) if dsn else SqliteStore.open(place))
    try:
        fence = await store.lease(0, "me", None, 60_000)
        started = e.RunStarted(1, 0, run, "w", 1, "hash", None)
        events = [started, *(e.Custom(seq, 7, "x", seq) for seq in range(2, 31))]
        for begin in (0, 10, 20):
            block = tuple(events[begin : begin + 10])
            await store.commit(Batch([Commit(run, begin, block, (), RunStatus.RUNNING)]), fence)
        if dsn:
            await _ask(dsn, "UPDATE history SET block = set_bit(block, 77, 1 - get_bit(block, 77)) WHERE seq = 30")
        else:
            connection = apsw.Connection(str(place))
            connection.execute("UPDATE history SET block = x'c1' WHERE seq = 30")
            connection.close()
        assert await store.history(run, 0, 10) == events[:10]
        assert await store.history(run, 3, 10) == events[3:13]
        assert await store.history(run, 10, 10) == events[10:20]
        assert await store.history(run, 19, 1) == events[19:20]
        for page in ((run, 10, 11), (run, 0, None), (run, 25, 1)):
            with pytest.raises(StoreDamaged, match="ends with event 30"):
                await store.history(*page)
    finally:
        await store.close()


async def _ask(dsn: str, statement: str) -> None:
    connection = await asyncpg.connect(dsn)
    try:
        await connection.execute(statement)
    finally:
        await connection.close()
