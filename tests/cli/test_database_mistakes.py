"""Ordinary mistakes with a database: one line that names them, an exit code, and nothing changed."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import asyncpg
import pytest

from tests.cli.shell import Shell, hear
from tests.cli.test_engine_verbs import QUICK
from treadle.store.postgres import connect
from treadle.testing.world.postgres import run_all

SECRET = "hunter2"
SCENARIO = """
scenario: {name}
definitions: [{{file: quick.yaml}}]
start: {{workflow: quick}}
expect: {{status: completed}}
"""


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    made = Shell(tmp_path)
    made.write("quick.yaml", QUICK)
    return made


def tables(dsn: str) -> int:
    async def count() -> int:
        connection = await asyncpg.connect(dsn)
        try:
            found: int = await connection.fetchval(
                "SELECT count(*) FROM pg_class WHERE relnamespace = 'public'::regnamespace"
            )
            return found
        finally:
            await connection.close()

    return asyncio.run(count())


@pytest.mark.parametrize("verb", ["nodes", "runs list", "fsck", "queues", "gates list", "schedules list"])
def test_who_only_looks_makes_no_store(shell: Shell, dsn: str, verb: str) -> None:
    said = shell(*verb.split(), "--store", dsn, code=5).stderr
    assert "there is no store here; start an engine or deploy first" in said
    assert tables(dsn) == 0


def test_who_only_looks_changes_no_older_store_and_who_deploys_does(
    shell: Shell, dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    older = connect.migrations()[:-1]
    monkeypatch.setattr(connect, "migrations", lambda: older)
    asyncio.run(connect.migrate(dsn, 64))
    said = shell("nodes", "--store", dsn, code=5).stderr
    assert "its schema has version" in said
    assert "an engine of this Treadle brings it up to date" in said
    shell("deploy", "quick.yaml", "--store", dsn)
    assert shell.json("nodes", "--store", dsn) == []


def test_a_slip_in_the_options_of_an_address_is_no_bug(shell: Shell, dsn: str) -> None:
    mistaken = f"{dsn}{'&' if '?' in dsn else '?'}serch_path=x"
    for verb in (["runs", "list"], ["engine"], ["run", "quick.yaml"]):
        said = shell(*verb, "--store", mistaken, code=5).stderr
        assert 'unrecognized configuration parameter "serch_path"; look at the options behind the ?' in said


def test_who_may_only_read_is_told_what_is_missing(shell: Shell, dsn: str) -> None:
    shell("deploy", "quick.yaml", "--store", dsn)
    name = f"reader_{urlsplit(dsn).path[1:]}"
    rights = f"GRANT SELECT ON ALL TABLES IN SCHEMA public TO {name}"
    asyncio.run(run_all(dsn, f"CREATE ROLE {name} LOGIN PASSWORD 'reads'", rights))
    try:
        parts = urlsplit(dsn)
        where = parts.netloc.rpartition("@")[2]
        reader = urlunsplit(parts._replace(netloc=f"{name}:reads@{where}"))
        assert shell.json("runs", "list", "--store", reader) == []
        for verb in (["engine"], ["run", "quick"], ["run", "quick", "--no-wait"]):
            said = shell(*verb, "--store", reader, code=5).stderr
            assert "permission denied" in said
            assert "let this user read and write the tables" in said
    finally:
        asyncio.run(run_all(dsn, f"DROP OWNED BY {name}", f"DROP ROLE {name}"))


@pytest.mark.parametrize("verb", ["doctor", "fsck", "nodes"])
def test_without_the_driver_it_is_said_how_to_get_it(tmp_path: Path, verb: str) -> None:
    script = f"""import sys
sys.modules["asyncpg"] = None
from treadle.cli.main import main
sys.argv = ["treadle", "{verb}", "--store", "postgresql://127.0.0.1:1/x"]
main()"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, cwd=tmp_path, timeout=60, check=False
    )
    assert done.returncode in (1, 5), done.stderr
    assert "pip install 'treadle[postgres]'" in " ".join((done.stdout + done.stderr).split())


def in_schema(dsn: str, name: str) -> str:
    return f"{dsn}{'&' if '?' in dsn else '?'}search_path={name}"


def test_two_stores_in_one_database_are_told_apart(shell: Shell, dsn: str) -> None:
    asyncio.run(run_all(dsn, "CREATE SCHEMA a", "CREATE SCHEMA b"))
    a, b = in_schema(dsn, "a"), in_schema(dsn, "b")
    shell("deploy", "quick.yaml", "--store", a)
    said = shell("db", "move", a, b).stderr
    assert "?search_path=a was moved to" in said
    assert "?search_path=b" in said
    assert "?search_path=b" in shell("runs", "list", "--store", a, code=5).stderr
    assert shell.json("runs", "list", "--store", b) == []


def test_there_is_nothing_to_move_in_an_empty_store(shell: Shell, dsn: str) -> None:
    assert "there is no store in it" in shell("db", "move", dsn, "new.db", code=5).stderr
    asyncio.run(connect.migrate(dsn, 64))
    assert "there is nothing in it to move" in shell("db", "move", dsn, "new.db", code=4).stderr
    shell("deploy", "quick.yaml", "--store", dsn)  # it is not sealed
    shell("db", "move", dsn, "other.db")
    said = shell("db", "move", "other.db", dsn, code=4).stderr
    assert "it was itself moved to" in said
    assert "move to a new file or database" in said


@pytest.mark.parametrize("address", [f"postgresql://ada:{SECRET}@127.0.0.1:1/x", SECRET])
def test_scenarios_on_a_server_that_cannot_be_used_say_so_once(shell: Shell, address: str) -> None:
    for name in ("one", "two"):
        shell.write(f"{name}.scenario.yaml", SCENARIO.format(name=name))
    shell.environment["TREADLE_TEST_POSTGRES"] = address
    for jobs in ("1", "2"):
        done = shell("test", ".", "--store", "postgres", "--jobs", jobs, code=5)
        assert done.stderr.count("TREADLE_TEST_POSTGRES") == 1
        assert SECRET not in done.stderr


def test_an_engine_says_whose_queues_it_serves_and_as_much_as_it_is_asked_to(shell: Shell, dsn: str) -> None:
    shell.environment["TREADLE_LOG_LEVEL"] = "info"
    with shell.going("engine", "--store", dsn, until="coordinates") as first:
        shell.environment["TREADLE_ENGINE_QUEUES"] = '{"cpu": 8}'
        second = shell.begin("engine", "--store", dsn, "--name", "second")
        try:
            assert "and works for cpu (8 at once); Ctrl-C" in hear(second, "coordinates")
            assert "node=second" in hear(first, "there is another node")
        finally:
            second.terminate()
            second.communicate(timeout=60)
        assert "node=second" in hear(first, "a node has left")
