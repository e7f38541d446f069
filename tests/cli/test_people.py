"""What people do from a terminal, and what they are told when nobody is there to do it for them."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.shell import Shell, hear
from tests.cli.test_engine_verbs import KEEPING, REVIEW, SIGNALLED, started


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


@pytest.fixture
def attended(shell: Shell) -> Iterator[Shell]:
    """With an engine."""
    files = [shell.write("review.yaml", REVIEW), shell.write("keeping.yaml", KEEPING)]
    shell("deploy", *files)
    with shell.going("engine", until="coordinates"):
        yield shell


def test_what_nobody_can_act_on_is_checked_before_it_is_kept(shell: Shell) -> None:
    file = shell.write("review.yaml", REVIEW)
    with shell.going("engine", "--deploy", file, until="coordinates"):
        run = started(shell, "review", "--input", '{"draft": "x"}')
        watching = shell.begin("runs", "watch", run)
        hear(watching, "waits for a person")
        watching.send_signal(signal.SIGINT)
        watching.communicate(timeout=60)
    assert "SCHEMA" in shell("gates", "complete", run, "{}", code=3).stderr
    assert "is kept" in shell("gates", "complete", run, '{"publish": true}', code=5).stderr
    assert "does not take it" in shell("schedules", "add", "s", "review", "--cron", "@daily", code=3).stderr
    shell("schedules", "add", "s", "review", "--cron", "@daily", "--input", '{"draft": "x"}')


def test_who_watches_a_run_that_nobody_moves_is_told(shell: Shell) -> None:
    file = shell.write("signalled.yaml", SIGNALLED)
    with shell.going("engine", "--deploy", file, until="coordinates"):
        run = started(shell, "signalled")
        assert shell.json("runs", "show", run)["coordinated"] is True
        [node] = shell.json("nodes")
        assert (node["coordinates"], node["shards"], node["requests"]) == (True, [0], 0)
    assert shell.json("nodes") == []
    assert "no engine coordinates the store now" in shell("runs", "show", run).stderr
    watching = shell.begin("runs", "watch", run)
    hear(watching, "no engine coordinates the store now")
    shell("runs", "signal", run, "news", "1", code=5)
    assert "(nobody)" in shell("nodes", code=1).stdout
    with shell.going("engine", until="coordinates"):
        output, _said = watching.communicate(timeout=60)
    assert json.loads(output) == {"got": 1}


def test_a_human_task_is_claimed_handed_on_and_answered(attended: Shell) -> None:
    run = started(attended, "review", "--input", '{"draft": "x"}')
    watching = attended.begin("runs", "watch", run)
    hear(watching, "waits for a person")
    attended("gates", "claim", run, code=2)
    attended("gates", "claim", run, "--by", "Ada")
    [gate] = attended.json("gates", "list")
    assert (gate["claimed_by"], gate["can"][0]) == ("Ada", "answer")
    assert "Ada" in attended("gates", "list").stdout
    for others in (("complete", run, '{"publish": true}', "--by", "Bob"), ("release", run, "--by", "Bob")):
        assert "claimed by 'Ada'" in attended("gates", *others, code=4).stderr
    assert "claimed by 'Ada'" in attended("gates", "claim", run, "--by", "Bob", code=4).stderr
    assert attended.json("gates", "delegate", run, "Bob", "--by", "Ada")["to"] == "Bob"
    assert "claimed by 'Bob'" in attended("gates", "claim", run, "--by", "Ada", code=4).stderr
    attended("gates", "release", run, "--by", "Ada", "--force")
    attended("gates", "claim", run, "--by", "Eve")
    attended("gates", "complete", run, '{"publish": false}', "--by", "Bob", "--force")
    assert "by Bob  instead of Eve" in attended("runs", "history", run).stdout
    assert json.loads(watching.communicate(timeout=60)[0])["published"] is False


def test_a_run_that_is_out_of_time_is_ended_by_an_operator(shell: Shell) -> None:
    file = shell.write("late.yaml", SIGNALLED + "timeout_ms: 1\n")
    with shell.going("engine", "--deploy", file, until="coordinates"):
        run = started(shell, "signalled")
        while shell.json("runs", "show", run)["status"] != "paused":
            pass  # a millisecond has hardly passed
        [gate] = shell.json("gates", "list")
        assert (gate["gate"], gate["can"]) == (f"{run}/0", ["extend", "abort"])
        assert "has not ended by its deadline" in gate["title"]
        assert f"treadle runs abort {run}" in shell("gates", "show", run).stdout
        assert "extend it or abort it" in shell("gates", "complete", run, "1", code=4).stderr
        shell("runs", "abort", run)
        assert shell.json("runs", "show", run)["status"] == "cancelled"
        assert shell.json("gates", "list") == []
        for verb in ("abort", "cancel"):
            assert "had ended before: it is cancelled" in shell("runs", verb, run, code=4).stderr


def test_the_page_behind_a_run_that_is_gone_is_not_the_end_of_the_list(attended: Shell) -> None:
    run = started(attended, "keeping")
    assert run not in [row["run"] for row in attended.json("runs", "list", "--after", run)]
    assert "no run" in attended("runs", "list", "--after", "gone", code=4).stderr
