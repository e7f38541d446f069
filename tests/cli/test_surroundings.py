"""The verbs that look at settings and surroundings, completion, errors, and the demonstration."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.shell import Shell

CANARY = "canary-7f3a9c"


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


def test_config_shows_where_each_setting_comes_from_and_no_secret(shell: Shell) -> None:
    shell.write("treadle.toml", 'output = "json"\n[engine]\ngrace_ms = 1\n')
    shell.environment |= {"TREADLE_STORE": "env.db", "TREADLE_SECRET_TOKEN": CANARY}
    done = shell("config", "--origin")
    origins = {row["setting"]: row["origin"] for row in json.loads(done.stdout)}
    assert origins["store"] == "TREADLE_STORE"
    assert origins["engine.grace_ms"] == str(shell.folder / "treadle.toml")
    assert origins["net.allow"] == "default"
    assert CANARY not in done.stdout + done.stderr + shell("doctor", "--output", "text").stdout


def test_doctor_tells_of_a_queue_that_has_no_worker(shell: Shell) -> None:
    shell.write("texts.yaml", "workflow: texts\nnodes: {upper: {queue: texts, action: {kind: work, name: upper}}}\n")
    with shell.going("serve", "--port", "0", "--deploy", "texts.yaml", until="sign in"):
        shell("run", "texts", "--no-wait")
        [line] = [
            row for row in json.loads(shell("doctor", "-o", "json", code=None).stdout) if row["check"] == "queues"
        ]
    assert (line["verdict"], line["finding"]) == ("warn", "1 waiting in 'texts'")


def test_doctor_of_a_folder_without_a_store_says_how_to_make_one(shell: Shell) -> None:
    rows = shell.json("doctor")
    [store] = [row for row in rows if row["check"] == "store"]
    assert store["verdict"] == "warn"
    assert "treadle engine" in store["remedy"]


def test_a_file_that_is_no_database_is_bad_and_not_touched(shell: Shell) -> None:
    shell.write("treadle.db", "this is a diary, not a database " * 200)
    before = (shell.folder / "treadle.db").read_bytes()
    assert any(row["verdict"] == "bad" for row in shell.json("doctor", code=1))
    assert shell("runs", "list", code=5).stderr.count("\n") == 1
    assert (shell.folder / "treadle.db").read_bytes() == before


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("runs", "list"), 5),
        (("run", "nope.yaml"), 4),
        (("run", "nope"), 5),
        (("deploy", "nope.yaml"), 4),
        (("graph", "nope.yaml"), 4),
        (("validate", "nope.yaml"), 4),
        (("validate", "quick.yaml", "--library", "nope.yaml"), 4),
        (("validate", "quick.yaml", "--nope"), 2),
        (("backup", "x.db"), 5),
        (("fsck",), 5),
        (("runs", "show"), 2),
        (("runs", "list", "--status", "nonsense"), 2),
        (("run", "quick.yaml", "--input", "{"), 3),
        (("run", "quick.yaml", "--input", "@nope.json"), 4),
        (("run", "broken.yaml"), 3),
    ],
)
def test_an_error_is_told_on_stderr_alone_with_its_code(shell: Shell, words: tuple[str, ...], code: int) -> None:
    shell.write("quick.yaml", "workflow: quick\nnodes: {only: {}}\n")
    shell.write("broken.yaml", "workflow: broken\nnodes: {only: {nonsense: 1}}\n")
    done = shell(*words, code=code)
    assert done.stdout == ""
    *shown, last = done.stderr.splitlines()
    assert last.startswith("treadle: ")
    assert code == 3 or not shown, "one line, without boxes around it"


def test_debug_adds_the_traceback(shell: Shell) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "treadle.cli.main", "runs", "list", "--debug"],
        capture_output=True,
        text=True,
        cwd=shell.folder,
        env=shell.environment,
        check=False,
    )
    assert done.returncode == 5
    assert "Traceback" in done.stderr


def test_completion_knows_the_verbs_of_a_group(shell: Shell) -> None:
    script = shell("completion", "bash").stdout
    for word in ("runs", "watch", "gates", "complete", "--store"):
        assert word in script
    check = subprocess.run(["bash", "-n"], input=script, text=True, capture_output=True, check=False)
    assert check.returncode == 0, check.stderr


@pytest.mark.parametrize(
    ("format", "words"), [("text", "only"), ("mermaid", "flowchart"), ("svg", "<svg"), ("json", "{")]
)
def test_a_graph_is_drawn_in_every_format(shell: Shell, format: str, words: str) -> None:
    shell.write("quick.yaml", "workflow: quick\nnodes: {only: {}, then: {}}\ntransitions: [{from: only, to: then}]\n")
    drawn = shell("graph", "quick.yaml", "--format", format).stdout
    assert words in drawn
    assert "then" in drawn


def test_the_demonstration_ends_by_itself_without_a_terminal(shell: Shell) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "treadle.cli.nodes.demo"],
        capture_output=True,
        text=True,
        cwd=shell.folder,
        env=shell.environment,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["letter"] == "Published: On the treadle loom"
    for words in ("tries again in", "walks out", "waits for a person", "everything agrees"):
        assert words in done.stderr


def test_a_backup_that_fails_leaves_the_old_copy(shell: Shell) -> None:
    shell.write("copy.db", "the copy of yesterday")
    shell.write("broken.db", "this is no database")
    shell("backup", "copy.db", "--overwrite", "--store", "broken.db", code=5)
    assert (shell.folder / "copy.db").read_text() == "the copy of yesterday"


def test_a_pipe_gets_the_names_of_nodes_in_full(desk: Shell) -> None:
    shell = desk
    name = "a_node_with_a_name_of_more_than_forty_characters_in_all"
    shell.write("long.yaml", f"workflow: long\nnodes: {{{name}: {{}}}}\n")
    run = shell.json("run", "long.yaml")["run"]
    assert f" {name}" in shell("runs", "show", run).stdout
