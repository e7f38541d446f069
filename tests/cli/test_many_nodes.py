"""The same verbs on a database: `--store postgresql://…` is all a user changes."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.shell import Shell, hear
from tests.cli.test_engine_verbs import QUICK, REVIEW, SIGNALLED, SLEEPY
from tests.postgres import new_database
from treadle.cli.main import run_verb
from treadle.cli.nodes.nodes import ranges
from treadle.testing.world.postgres import run_all

PASSWORD = "hunter2-secret"


@pytest.fixture(scope="module")
def dsn() -> Iterator[str]:
    with new_database() as made:
        yield made


@pytest.fixture
def shell(tmp_path: Path, dsn: str) -> Shell:
    """A folder whose settings name the database."""
    made = Shell(tmp_path)
    made.write("treadle.toml", f'store = "{dsn}"\n[engine]\nlease_ms = 2000\n')
    for name, text in {"review": REVIEW, "signalled": SIGNALLED, "quick": QUICK, "sleepy": SLEEPY}.items():
        made.write(f"{name}.yaml", text)
    return made


def test_without_a_node_run_executes_by_itself_and_leaves_no_node_behind(shell: Shell) -> None:
    assert json.loads(shell("run", "quick.yaml").stdout) == {"answer": 42}
    assert shell.json("nodes") == []
    assert shell.json("fsck")["ok"]


def test_two_engines_share_the_store_and_any_process_reaches_any_run(shell: Shell) -> None:
    shell("deploy", "review.yaml")
    with shell.going("engine", until="coordinates"), shell.going("engine", until="coordinates"):
        rows = shell.json("nodes")
        while [len(row["shards"]) for row in rows] != [32, 32]:
            rows = shell.json("nodes")  # the second one has just begun to be given its share
        assert sorted(shard for row in rows for shard in row["shards"]) == list(range(64))
        for _ in range(2):
            run = shell("run", "review", "--no-wait", "-i", '{"draft": "x"}').stdout.strip()
            watching = shell.begin("runs", "watch", run)
            hear(watching, "waits for a person")
            assert "SCHEMA" in shell("gates", "complete", run, "{}", code=3).stderr
            shell("gates", "complete", run, '{"publish": true}')
            output, _said = watching.communicate(timeout=60)
            assert json.loads(output) == {"published": True, "text": "read x"}
    assert shell.json("fsck")["ok"]


def test_run_leaves_the_execution_to_the_nodes_that_are_there(shell: Shell) -> None:
    with shell.going("engine", "--deploy", "quick.yaml", until="coordinates"):
        done = shell("run", "quick")
        assert json.loads(done.stdout) == {"answer": 42}
        assert "the run is executed by the nodes of" in done.stderr


def test_a_killed_node_is_replaced_by_the_other_without_anybody_asking(shell: Shell) -> None:
    shell("deploy", "signalled.yaml")
    with shell.going("engine", until="coordinates") as first:
        runs = [shell("run", "signalled", "--no-wait").stdout.strip() for _ in range(2)]
        with shell.going("engine", until="coordinates"):
            first.kill()
            first.wait(timeout=60)
            for run in runs:  # answered when the lease is over
                shell("runs", "signal", run, "news", '"late"')
                assert json.loads(shell("runs", "watch", run).stdout) == {"got": "late"}
    assert shell.json("fsck")["ok"]


def test_an_engine_that_is_told_to_stop_leaves_at_once_and_says_so(shell: Shell) -> None:
    engine = shell.begin("engine")
    hear(engine, "coordinates")
    engine.send_signal(signal.SIGTERM)
    _output, said = engine.communicate(timeout=60)
    assert engine.returncode == 0
    assert "stopped" in said
    assert shell.json("nodes") == []


def test_what_a_database_cannot_do_is_said(shell: Shell) -> None:
    assert "pg_dump" in shell("backup", "copy.db", code=4).stderr


def test_a_watcher_is_told_when_nobody_is_there(shell: Shell) -> None:
    with shell.going("engine", "--deploy", "sleepy.yaml", until="coordinates"):
        run = shell("run", "sleepy", "--no-wait").stdout.strip()
        assert shell.json("runs", "show", run)["coordinated"] is True
    watching = shell.begin("runs", "watch", run)
    hear(watching, "no engine coordinates the store now")
    watching.send_signal(signal.SIGINT)
    watching.communicate(timeout=60)
    assert "no engine coordinates the store now" in shell("runs", "show", run).stderr
    assert shell.json("runs", "show", run)["coordinated"] is False


@pytest.mark.parametrize(
    "store",
    [
        f"postgresql://somebody:{PASSWORD}@127.0.0.1:1/nothing",
        f"postgresql://127.0.0.1:1/nothing?user=somebody&password={PASSWORD}",
        f"postgresql://somebody:{PASSWORD}/x@127.0.0.1/nothing",
    ],
)
def test_no_verb_shows_a_password(
    tmp_path: Path, store: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TREADLE_ENGINE_OPEN_WAIT_MS", "0")
    Path("quick.yaml").write_text(QUICK)
    verbs = ["run quick.yaml", "runs list", "doctor", "fsck", "nodes", "engine", "deploy quick.yaml", "backup x.db"]
    for verb in [*verbs, "config --origin"]:
        for origin in ("flag", "variable"):
            monkeypatch.setenv("TREADLE_STORE", store if origin == "variable" else "other.db")
            run_verb([*verb.split(), *(["--store", store] if origin == "flag" else [])], debug=True)
            out, err = capsys.readouterr()
            assert PASSWORD not in out + err, verb
            assert "127.0.0.1" in out + err or "cannot be read" in out + err


def test_a_database_that_cannot_be_reached_is_one_line_with_a_remedy(tmp_path: Path) -> None:
    done = Shell(tmp_path)("runs", "list", "--store", "postgresql://127.0.0.1:1/nothing", code=5)
    assert done.stderr.count("\n") == 1
    assert "127.0.0.1:1/nothing" in done.stderr


def test_without_the_driver_the_error_names_the_extra(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    shell.write("sitecustomize.py", "import sys; sys.modules['asyncpg'] = None\n")
    shell.environment["PYTHONPATH"] = os.pathsep.join([str(tmp_path), shell.environment.get("PYTHONPATH", "")])
    done = shell("runs", "list", "--store", "postgresql://127.0.0.1/x", code=5)
    assert "treadle[postgres]" in done.stderr


def test_shards_are_told_as_ranges() -> None:
    assert ranges(()) == "0"
    assert ranges((3,)) == "1: 3"
    assert ranges((0, 1, 2, 5, 7, 8)) == "6: 0-2, 5, 7-8"


def test_a_second_schema_is_another_store(dsn: str, tmp_path: Path) -> None:
    asyncio.run(run_all(dsn, "CREATE SCHEMA IF NOT EXISTS beside"))
    shell = Shell(tmp_path)
    shell.environment["TREADLE_STORE"] = f"{dsn}&search_path=beside" if "?" in dsn else f"{dsn}?search_path=beside"
    shell.write("quick.yaml", QUICK)
    assert json.loads(shell("run", "quick.yaml").stdout) == {"answer": 42}
    assert len(shell.json("runs", "list")) == 1
