"""Looking after a PostgreSQL store from the command line: moving to it and back, checking it, examining it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.shell import Shell
from tests.postgres import new_database
from treadle.testing.postgres import run_all

NAP = "workflow: nap\nnodes: {nap: {action: {kind: wait, ms: 60000000}}}\n"


@pytest.fixture
def dsn() -> Iterator[str]:
    with new_database() as made:
        yield made


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
    assert "may have gone on" in shell("db", "undo", dsn, code=5).stderr


def test_a_copy_can_be_made_and_what_is_there_is_not_overwritten(shell: Shell, dsn: str) -> None:
    shell("db", "move", "a.db", dsn, "--keep-source")
    assert shell.json("runs", "list", "--store", "a.db") == []
    assert "is not empty" in shell("db", "move", "a.db", dsn, code=5).stderr


def test_an_owner_is_named_and_stays_owner(shell: Shell, dsn: str) -> None:
    with shell.going("engine", "--store", "a.db", until="coordinat"):
        assert "is coordinated by engine" in shell("db", "move", "a.db", dsn, code=5).stderr
        assert shell.json("runs", "list", "--store", "a.db")


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
        assert found["nodes"]["finding"].startswith("1 engines, 0 workers")
        assert found["leases"]["verdict"] == "ok"
    shell("db", "move", dsn, "b.db", "--wait")
    assert "was moved to" in verdicts(shell, dsn)["move"]["finding"]
