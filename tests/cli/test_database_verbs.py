"""Looking after a PostgreSQL store from the command line: moving to it and back, checking it, examining it."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import pytest

from tests.cli.shell import Shell, hear
from treadle.store.sqlite.transfer import SqliteTransfer
from treadle.store.transfer import Mark
from treadle.testing.world.postgres import run_all

NAP = "workflow: nap\nnodes: {nap: {action: {kind: wait, ms: 60000000}}}\n"


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    shell = Shell(tmp_path)
    shell("deploy", shell.write("nap.yaml", NAP), "--store", "a.db")
    shell("run", "nap", "--no-wait", "--store", "a.db")
    return shell


def verdicts(shell: Shell, dsn: str) -> dict[str, Any]:
    """Something is always bad: tests run without fsync."""
    return {line["check"]: line for line in shell.json("doctor", "--store", dsn, code=1)}


def test_a_file_becomes_a_database_and_a_file_again(shell: Shell, dsn: str) -> None:
    done = shell.json("db", "move", "a.db", dsn)
    assert (done["rows"]["requests"], done["resumed"]) == (1, False)
    assert shell.json("fsck", "--store", dsn)["ok"]
    refused = shell("runs", "list", "--store", "a.db", code=5)
    assert "was moved to postgresql://" in refused.stderr
    assert "use that one" in refused.stderr
    assert "was moved to" in shell("db", "move", "a.db", "b.db", code=5).stderr
    shell("db", "move", dsn, "c.db")
    with shell.going("engine", "--store", "c.db", until="coordinat"):
        assert [run["workflow"] for run in shell.json("runs", "list", "--store", "c.db")] == ["nap"]
    assert "may have gone on" in shell("db", "undo", dsn, code=4).stderr


def test_a_copy_can_be_made_and_what_is_there_is_not_overwritten(shell: Shell, dsn: str) -> None:
    shell("db", "move", "a.db", dsn, "--keep-source")
    assert shell.json("runs", "list", "--store", "a.db") == []
    assert "is not empty" in shell("db", "move", "a.db", dsn, code=4).stderr
    assert "nothing to undo" in shell("db", "undo", "a.db", code=4).stderr


def test_an_owner_is_named_and_stays_owner(shell: Shell, dsn: str) -> None:
    with shell.going("engine", "--store", "a.db", until="coordinat"):
        refused = shell("db", "move", "a.db", dsn, code=5).stderr
        assert "is in use by engine " in refused
        assert "--wait" in refused
        assert shell.json("runs", "list", "--store", "a.db")


def test_who_waits_is_told_for_whom_and_what_comes_next(shell: Shell, dsn: str) -> None:
    with shell.going("engine", "--store", "a.db", until="coordinat") as engine:
        moving = shell.begin("db", "move", "a.db", dsn, "--wait")
        assert "is in use by engine" in hear(moving, "waiting until")
        engine.terminate()
        _out, said = moving.communicate(timeout=60)
    assert "was moved to" in said
    assert said.splitlines()[-1].startswith("next: ")


def test_a_worker_is_no_coordinator(shell: Shell, dsn: str) -> None:
    shell("deploy", "nap.yaml", "--store", dsn)
    with shell.going("worker", "--queue", "gpu", "--name", "gpubox", "--store", dsn, until="works for"):
        assert "is in use by node gpubox:" in shell("db", "move", dsn, "c.db", code=5).stderr


def test_a_moved_file_is_told_by_doctor_and_fsck_in_its_own_words(shell: Shell, dsn: str) -> None:
    shell("db", "move", "a.db", dsn)
    found = {line["check"]: line for line in shell.json("doctor", "--store", "a.db", code=1)}["store"]
    assert "it was moved to postgresql://" in found["finding"]
    assert found["remedy"] == "use that one"
    assert "it was moved to" in shell("fsck", "--store", "a.db").stderr


def test_fsck_of_where_an_unfinished_move_goes_says_so(shell: Shell) -> None:
    async def begin() -> None:
        target = await SqliteTransfer.open(shell.folder / "t.db", create=True)
        await target.take(wait=False)
        await target.begin(Mark("m1", "arriving", "a.db", 1_700_000_000_000))
        await target.close()

    asyncio.run(begin())
    said = shell("fsck", "--store", "t.db").stderr
    assert "it is incomplete: a move from a.db has begun at 2023-11-14" in said
    assert "run `treadle db move` again" in said


def test_findings_stand_whole_on_a_pipe_with_the_remedy_below(shell: Shell, dsn: str) -> None:
    shell("db", "move", "a.db", dsn)
    lines = shell("doctor", "--store", "a.db", code=1).stdout.splitlines()
    number = next(number for number, line in enumerate(lines) if line.startswith("bad"))
    assert lines[number].endswith("UTC")
    assert lines[number + 1].strip() == "→ use that one"


def test_somebody_elses_tables_and_missing_rights_are_bad(shell: Shell, dsn: str) -> None:
    asyncio.run(run_all(dsn, "CREATE SCHEMA theirs", "CREATE TABLE theirs.runs (a int)"))
    theirs = f"{dsn}{'&' if '?' in dsn else '?'}search_path=theirs"
    for _ in range(2):  # also after an engine has tried
        tables = verdicts(shell, theirs)["tables"]
        assert tables["verdict"] == "bad"
        assert tables["finding"].endswith("names: runs")
        assert "already exists" in shell("engine", "--store", theirs, code=5).stderr
    shell("deploy", "nap.yaml", "--store", dsn)
    name = f"reader_{os.getpid()}"
    try:
        asyncio.run(run_all(dsn, f"CREATE USER {name}", f"GRANT SELECT ON ALL TABLES IN SCHEMA public TO {name}"))
        rights = verdicts(shell, as_user(dsn, name))["rights"]
        assert (rights["verdict"], rights["finding"]) == ("bad", "this user lacks DELETE, INSERT, UPDATE, CREATE")
    finally:
        asyncio.run(run_all(dsn, f"DROP OWNED BY {name}", f"DROP USER {name}"))
    assert verdicts(shell, dsn)["rights"]["verdict"] == "ok"


def as_user(dsn: str, name: str) -> str:
    """The same database for somebody without a password."""
    parts = urlsplit(dsn)
    return urlunsplit(parts._replace(netloc=f"{name}@{parts.netloc.rpartition('@')[2]}"))


def test_a_doctor_sees_what_is_wrong_with_a_database(shell: Shell, dsn: str) -> None:
    empty = verdicts(shell, dsn)
    assert empty["tables"]["verdict"] == "warn"
    assert empty["synchronous_commit"]["verdict"] == "ok"
    assert {"postgresql", "clocks", "connections", "transactions", "autovacuum"} <= empty.keys()
    shell("db", "move", "a.db", dsn)
    found = verdicts(shell, dsn)
    assert found["fsync"]["verdict"] == "bad"
    assert (found["nodes"]["verdict"], found["requests"]["verdict"]) == ("warn", "warn")
    asyncio.run(run_all(dsn, "ALTER TABLE outbox SET (autovacuum_enabled = false)"))
    asyncio.run(run_all(dsn, "INSERT INTO leases VALUES (3, 'gone', 1, 4000000000000)"))
    found = verdicts(shell, dsn)
    assert found["autovacuum"]["finding"] == "off for outbox"
    assert found["leases"]["finding"] == "1 belong to nodes that are gone"
    asyncio.run(run_all(dsn, "UPDATE leases SET until = 0"))
    with shell.going("engine", "--store", dsn, until="coordinat"):
        found = verdicts(shell, dsn)
        assert found["nodes"]["finding"].startswith("1 engine, 0 workers")
        assert found["leases"]["verdict"] == "ok"
    shell("db", "move", dsn, "b.db", "--wait")
    assert "was moved to" in verdicts(shell, dsn)["move"]["finding"]
