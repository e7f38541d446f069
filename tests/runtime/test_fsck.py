"""`fsck` agrees with every sound store, and finds each way in which rows and histories can disagree."""

from __future__ import annotations

import asyncio
from pathlib import Path

import apsw
import pytest

from treadle.language import load_text
from treadle.runtime.engine import Engine
from treadle.runtime.fsck import Report
from treadle.runtime.upkeep import back_up, check_file, examine

WAITING = """\
workflow: waiting
nodes:
  begin: {}
  ask: {action: {kind: human, title: Yes?, due_ms: 600000}}
  nap: {action: {kind: wait, ms: 600000}}
transitions: [{from: begin, to: ask}, {from: begin, to: nap}]
"""
QUICK = "workflow: quick\noutput: {x: 1}\nnodes: {only: {action: {kind: set, values: {a: 1}}}}\n"


async def _fill(place: Path) -> None:
    async with Engine(place) as engine:
        ended = await engine.start(load_text(QUICK, "quick").require(), {})
        await ended.wait(30)
        paused = await engine.start(load_text(WAITING, "waiting").require(), {})
        await engine.start("waiting", {})
        await paused.pause("look")


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with an ended, a waiting and a paused run."""
    place = tmp_path_factory.mktemp("sound") / "treadle.db"
    asyncio.run(_fill(place))
    return place


@pytest.fixture
def place(sound: Path, tmp_path: Path) -> Path:
    """A copy of it to spoil."""
    asyncio.run(back_up(sound, tmp_path / "copy.db"))
    return tmp_path / "copy.db"


def spoil(place: Path, statement: str) -> None:
    connection = apsw.Connection(str(place))
    connection.execute(statement)
    assert connection.changes() > 0, "nothing was spoilt"
    connection.close()


def checked(place: Path) -> Report:
    return asyncio.run(check_file(place))


def test_a_sound_store_has_no_findings_and_everything_was_looked_at(sound: Path) -> None:
    seen: list[int] = []
    report = asyncio.run(check_file(sound, seen.append))
    assert report.findings == []
    assert (report.runs, seen[-1]) == (3, 3)
    assert report.events > 20
    assert report.gates == 2


@pytest.mark.parametrize(
    ("statement", "check", "words"),
    [
        ("UPDATE runs SET status = 'failed' WHERE workflow = 'quick'", "row", "status"),
        ("UPDATE runs SET started = started + 1 WHERE workflow = 'quick'", "row", "started"),
        ("UPDATE runs SET idempotency_key = 'x' WHERE workflow = 'quick'", "row", "idempotency_key"),
        ("UPDATE runs SET version = 9 WHERE workflow = 'quick'", "document", "is gone"),
        ("DELETE FROM gates", "gate", "has no row"),
        ("UPDATE gates SET token = 77", "gate", "which has none open"),
        ("DELETE FROM timers", "timer", "has no row"),
        ("UPDATE timers SET due = due + 1", "timer", "its row says"),
        ("UPDATE timers SET timer = timer + 50", "timer", "unknown to the run"),
        ("UPDATE runs SET seq = seq + 1 WHERE workflow = 'quick'", "file", "its history ends at"),
    ],
)
def test_what_does_not_agree_is_found(place: Path, statement: str, check: str, words: str) -> None:
    spoil(place, statement)
    report = checked(place)
    assert not report.ok
    assert any(finding.check == check and words in finding.message for finding in report.findings), report.findings


def test_a_missing_piece_of_history_is_found(place: Path) -> None:
    spoil(place, "DELETE FROM history WHERE id = (SELECT max(id) - 1 FROM history WHERE run = 1)")
    assert {finding.check for finding in checked(place).findings} <= {"gap", "file"}
    assert not checked(place).ok


def test_an_examination_counts_what_is_open_and_who_owns_it(sound: Path) -> None:
    health = asyncio.run(examine(sound))
    assert health.owner is None
    assert (health.open_runs, health.requests, health.dead_letters) == (2, 0, 0)
    assert health.facts["journal_mode"] == "wal"

    async def owned() -> str | None:
        async with Engine(sound, name="me"):
            return (await examine(sound)).owner

    assert "me" in (asyncio.run(owned()) or "")
