"""`treadle runs budget`, `treadle runs export` and `treadle replay`, as a user sees them."""

from __future__ import annotations

from pathlib import Path

from tests.cli.shell import Shell
from tests.cli.test_engine_verbs import started

SPENDER = """
workflow: spender
budget: {visits: 1}
nodes:
  a: {action: {kind: set, values: {v: 1}}}
  b: {action: {kind: set, values: {v: 2}}}
transitions: [{from: a, to: b}]
"""


def test_a_budget_is_shown_and_raised_and_the_run_becomes_a_test(desk: Shell, tmp_path: Path) -> None:
    shell = desk
    file = shell.write("spender.yaml", SPENDER)
    with shell.going("engine", "--deploy", file, until="coordinates"):
        run = started(shell, "spender")
        while shell.json("runs", "show", run)["status"] != "paused":
            pass  # it pauses before its second visit
        [visits] = [row for row in shell.json("runs", "budget", run) if row["part"] == "visits"]
        assert (visits["spent"], visits["limit"]) == (1, 1)
        shell("runs", "resume", run)
        assert shell.json("runs", "show", run)["status"] == "paused"
        assert "no limit on cost" in shell("runs", "budget", run, "--cost", "2", code=3).stderr
        dry = shell("runs", "budget", run, "--visits", "2", "--dry-run")
        assert "it would go on" in dry.stderr + dry.stdout
        assert shell.json("runs", "show", run)["status"] == "paused"
        assert shell.json("runs", "budget", run, "--visits", "2") == {"run": run, "done": "raised"}
        shell("runs", "watch", run)
        exported = tmp_path / "recorded.scenario.yaml"
        shell("runs", "export", run, code=2)
        shell("runs", "export", run, "--scenario", "--to", str(exported))
        assert shell.json("replay", file, "--runs", run)[0]["verdict"] == "same"
        other = shell.write("other.yaml", SPENDER.replace("{from: a, to: b}", "{from: a, to: b, condition: 'false'}"))
        [row] = shell.json("replay", other, "--since", "1h", code=1)
        assert (row["run"], row["verdict"]) == (run, "different")
        assert row["recorded"] != row["replayed"]
        shell("replay", file, code=2)
    assert "1 passed" in shell.here("test", str(exported)).stdout
