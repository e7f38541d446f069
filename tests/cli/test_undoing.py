"""`treadle runs compensations`: going on where undoing failed."""

from __future__ import annotations

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


def test_what_failed_is_listed_retried_and_skipped(desk: Shell) -> None:
    shell = desk
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


def test_a_compensated_run_says_why_it_failed_and_what_was_not_undone(desk: Shell) -> None:
    shell = desk
    file = shell.write("journey.yaml", JOURNEY)
    with shell.going("engine", "--deploy", file, until="coordinates"):
        run = started(shell, "journey")
        ended = shell("runs", "watch", run, code=1).stderr
        assert "compensation failed  TASK_FAILED at pay: no money  (not undone: " in ended
        halted = shell.json("runs", "show", run)
        assert (halted["error"]["message"], halted["skipped"]) == ("no money", [])
        assert halted["undo_error"]["message"] == "compensation of flight, train failed"
        shell("runs", "compensations", run, "--skip", "--record", "1", "--by", "Ada")
        shell("runs", "compensations", run, "--skip", "--by", "Bo")
    shown = shell.json("runs", "show", run)
    assert (shown["status"], shown["error"]["message"], shown["undo_error"]) == ("compensated", "no money", None)
    assert [(one["node"], one["by"]) for one in shown["skipped"]] == [("flight", "Ada"), ("train", "Bo")]
    assert "not undone  flight, skipped by Ada · train, skipped by Bo" in shell("runs", "show", run).stdout
    watched = shell("runs", "watch", run, code=1).stderr
    assert "train            stays as it is: its compensation was skipped by Bo" in watched
    assert "no engine" not in watched, "a run that has ended needs none"
