"""What people do from a terminal, and what they are told when nobody is there to do it for them."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.served import ServedShell
from tests.cli.shell import Shell, hear
from tests.cli.test_engine_verbs import FAILING, KEEPING, REVIEW, SIGNALLED, started


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


@pytest.fixture
def attended(desk: Shell) -> Iterator[Shell]:
    """With an engine."""
    shell = desk
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


def test_the_sender_of_a_kept_request_can_learn_that_it_was_refused(shell: Shell) -> None:
    file = shell.write("signalled.yaml", SIGNALLED)
    with shell.going("engine", "--deploy", file, until="coordinates"):
        run = started(shell, "signalled")
    shell("runs", "signal", run, "news", "1", code=5)
    said = shell("runs", "pause", run, "--by", "ana", code=5).stderr
    request = said.split("treadle requests show ")[1].split("`")[0]
    assert "waiting" in shell("requests", "show", request, code=5).stdout
    engine = shell.begin("engine")
    try:
        heard = hear(engine, "a kept request is refused")
        assert f"treadle requests show {request}" in heard and "is completed" in heard
    finally:
        engine.terminate()
        engine.communicate(timeout=60)
    shown = shell("requests", "show", f"…{request[-12:]}", code=1).stdout  # as a narrow table has it
    assert request in shown and "refused" in shown and "is completed" in shown
    assert [row["status"] for row in shell.json("requests")] == ["refused", "done"]
    assert [row["id"] for row in shell.json("requests", "--refused")] == [request]
    assert "refused: pause run by ana" in shell("runs", "show", run).stdout
    assert "1 was refused" in shell("doctor").stdout
    assert "there is no request" in shell("requests", "show", "kept-1", code=4).stderr


def test_an_ended_run_refuses_at_once_although_no_engine_runs(shell: Shell) -> None:
    file = shell.write("keeping.yaml", KEEPING)
    shell("run", file)
    [row] = shell.json("runs")
    assert "had ended before: it is completed" in shell("runs", "cancel", row["run"], code=4).stderr
    assert "is completed" in shell("runs", "pause", row["run"], code=4).stderr
    assert "is completed" in shell("runs", "retry", row["run"], code=4).stderr
    assert shell.json("requests") == []


def test_a_command_to_a_failed_run_is_kept_behind_the_retry_that_opens_it(shell: Shell) -> None:
    file = shell.write("failing.yaml", FAILING)
    shell("run", file, code=1)
    [row] = shell.json("runs")
    assert "is kept" in shell("runs", "retry", row["run"], code=5).stderr
    assert "is kept" in shell("runs", "cancel", row["run"], code=5).stderr
    assert [one["command"] for one in shell.json("requests")] == ["cancel_run", "retry_run"]


def test_a_start_that_is_refused_later_is_told_to_who_asks_for_its_run(shell: Shell) -> None:
    file = shell.write("signalled.yaml", SIGNALLED)
    shell("deploy", file)
    run = started(shell, "signalled")
    shell.write("signalled.yaml", f"{SIGNALLED}input_schema: {{type: object, required: [draft]}}\n")
    shell("deploy", file)
    with shell.going("engine", until="coordinates"):
        shell.json("run", "signalled", "--no-wait", "--input", '{"draft": 1}')  # answered after the kept one
    assert "its start was refused" in shell("runs", "show", run, code=4).stderr
    [kept] = shell.json("requests")
    assert (kept["run"], kept["command"], kept["status"], kept["kind"]) == (run, "start_run", "refused", "SCHEMA")


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
    if not isinstance(attended, ServedShell):  # a service knows who asks
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


def test_a_run_that_is_out_of_time_is_ended_by_an_operator(desk: Shell) -> None:
    shell = desk
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


BOARD = """\
workflow: board
nodes:
  a: {}
  sign:
    action:
      kind: human
      title: Sign the contract
      description: "**Read** it first."
      assign: {users: [Ada], groups: [board], quorum: {of: 3, accept: 2}}
      form: {type: object, required: [ok, why], properties: {ok: {type: boolean}, why: {type: string}}}
transitions: [{from: a, to: sign, spawn_count: 2}]
"""


def test_gates_are_listed_for_people_commented_and_answered_at_once(desk: Shell) -> None:
    shell = desk
    if isinstance(desk, ServedShell):
        desk.groups = dict.fromkeys(("Bob", "Eve"), ("board",))
    file = shell.write("board.yaml", BOARD)
    with shell.going("engine", "--deploy", file, until="coordinates"):
        run = started(shell, "board")
        while len(gates := shell.json("gates", "list", "--run", run)) < 2:
            pass  # the engine opens both at once
        first, second = (gate["gate"] for gate in gates)
        assert len(shell.json("gates", "list", "--mine", "Eve", "--group", "board", "--text", "CONTRACT")) == 2
        assert shell.json("gates", "list", "--mine", "Eve") == shell.json("gates", "list", "--overdue") == []
        [count] = shell.json("gates", "list", "--by-node", "--assignee", "board")
        assert (count["workflow"], count["node"], count["count"]) == ("board", "sign", 2)
        shell("gates", "comment", first, "Is it the newest draft?", "--by", "Bob")
        shell("gates", "comment", first, " ", "--by", "Bob", code=3)
        shown = shell.json("gates", "show", first)
        assert [(said["text"], said["by"]) for said in shown["comments"]] == [("Is it the newest draft?", "Bob")]
        assert (shown["description"], shown["commented"]) == ("**Read** it first.", 1)
        assert "Bob: Is it the newest draft?" in shell("gates", "show", first).stdout
        refused = shell("gates", "complete", first, '{"ok": 1}', "--by", "Ada", code=3).stderr
        assert "$.ok" in refused and "$.why" in refused
        yes = '{"ok": true, "why": "fine"}'
        shell("gates", "answer", yes, first, second, "--by", "Ada")
        assert [row["answered"] for row in shell.json("gates", "list", "--run", run)] == [1, 1]
        shell("gates", "complete", first, yes, "--by", "Bob")
        results = shell.json("gates", "answer", yes, first, second, "--by", "Eve", code=4)
        assert [(row["gate"], row["ok"]) for row in results] == [(first, False), (second, True)]
        assert "answered by Bob" in results[0]["problem"]
        assert shell.json("runs", "show", run)["status"] == "completed"
