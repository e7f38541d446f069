"""`treadle runs compensations`: going on where undoing failed."""

from __future__ import annotations

from pathlib import Path

from tests.cli.shell import Shell
from tests.cli.test_engine_verbs import started

JOURNEY = """
workflow: journey
on_compensation_failure: continue
nodes:
  flight: {compensate: {action: {kind: mock, error: {message: no flights}}}}
  hotel: {compensate: {action: {kind: mock}}}
  train: {compensate: {action: {kind: mock, error: {message: no trains}}}}
  pay: {action: {kind: mock, error: {message: no money}}}
transitions: [{from: flight, to: hotel}, {from: hotel, to: train}, {from: train, to: pay}]
"""


def test_what_failed_is_listed_retried_and_skipped(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    file = shell.write("journey.yaml", JOURNEY)
    with shell.going("engine", "--deploy", file, until="coordinates"):
        run = started(shell, "journey")
        shell("runs", "watch", run, code=1)
        rows = shell.json("runs", "compensations", run)
        assert [(row["node"], row["status"]) for row in rows] == [
            ("flight", "failed"),
            ("hotel", "completed"),
            ("train", "failed"),
        ]
        assert f"treadle runs compensations {run} (--retry, --skip)" in shell("runs", "show", run).stdout
        assert "TASK_FAILED: no flights" in shell("runs", "compensations", run).stdout
        assert "runs compensations" in shell("runs", "retry", run, code=4).stderr
        assert "1 (flight), 3 (train)" in shell("runs", "compensations", run, "--skip", code=4).stderr
        shell("runs", "compensations", run, "--skip", "--retry", code=2)
        shell("runs", "compensations", run, "--skip", "--record", "1")
        assert shell.json("runs", "compensations", run, "--retry") == {"run": run, "done": "retried", "record": 3}
        shell("runs", "watch", run, code=1)
        assert [row["attempts"] for row in shell.json("runs", "compensations", run)] == [1, 1, 2]
        shell("runs", "compensations", run, "--skip", "--by", "Ada")
        assert shell.json("runs", "show", run)["status"] == "compensated"
