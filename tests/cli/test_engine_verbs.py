"""An owner in one process, everybody else in others: what the verbs do to a real store."""

from __future__ import annotations

import base64
import json
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.shell import Shell, hear

REVIEW = """\
workflow: review
input_schema: {type: object, required: [draft]}
output: {published: $.state.decision.publish, text: $.state.text}
nodes:
  read:
    action: {kind: template, template: "read {{ draft }}"}
    input_mapping: {draft: $.input.draft}
    output_mapping: {state.text: $.text}
  decide:
    action: {kind: human, title: Publish it?, form: {type: object, required: [publish]}}
    output_mapping: {state.decision: $}
transitions: [{from: read, to: decide}]
"""
SLEEPY = "workflow: sleepy\nnodes:\n  nap: {action: {kind: wait, ms: 600000}}\n"
SIGNALLED = """\
workflow: signalled
output: {got: $.state.got}
nodes:
  listen: {action: {kind: signal, name: news}, output_mapping: {state.got: $}}
"""
FAILING = """\
workflow: failing
nodes:
  fine: {}
  check: {action: {kind: assert, condition: "input.ok == true", message: it is not ok}, input_mapping: {ok: $.input.ok}}
transitions: [{from: fine, to: check}]
"""
QUICK = "workflow: quick\noutput: {answer: 42}\nnodes: {only: {}}\n"
KEEPING = """\
workflow: keeping
nodes:
  keep: {action: {kind: artifact_write, name: note.txt, content_type: text/plain, content: kept for good}}
"""


@pytest.fixture(scope="module")
def owned(shared_desk: Shell) -> Iterator[Shell]:
    """A store with workflows, and an engine that coordinates it."""
    shell = shared_desk
    texts = {"review": REVIEW, "sleepy": SLEEPY, "signalled": SIGNALLED, "failing": FAILING, "keeping": KEEPING}
    files = [shell.write(f"{name}.yaml", text) for name, text in texts.items()]
    shell("deploy", *files)
    with shell.going("engine", until="coordinates"):
        yield shell


@pytest.fixture
def alone(tmp_path: Path) -> Shell:
    """A folder nobody else works in."""
    return Shell(tmp_path)


def started(shell: Shell, workflow: str, *options: str) -> str:
    return shell("run", workflow, "--no-wait", *options).stdout.strip()


def test_a_run_asked_for_while_nobody_coordinates_is_started_by_the_next_engine(alone: Shell) -> None:
    file = alone.write("review.yaml", REVIEW)
    slip = alone("run", file, "--no-wait", "--input", "{}", code=3)
    assert "SCHEMA" in slip.stderr
    asked = alone("run", file, "--no-wait", "--input", '{"draft": "Hello"}')
    assert "the next one starts the run" in asked.stderr
    assert alone.json("runs", "list") == [], "nothing was executed by asking"
    with alone.going("engine", until="coordinates"):
        while not (runs := alone.json("runs", "list")):
            pass  # the engine has just begun to read what it was asked
    assert [run["run"] for run in runs] == [asked.stdout.strip()]


def test_a_run_is_executed_by_the_owner_and_answered_from_another_process(owned: Shell) -> None:
    run = started(owned, "review", "--input", '{"draft": "Hello"}', "--tag", "tried")
    watching = owned.begin("runs", "watch", run)
    hear(watching, "waits for a person")
    [gate] = owned.json("gates", "list", "--run", run)
    assert gate["title"] == "Publish it?"
    assert owned.json("gates", "show", gate["gate"])["form"]["required"] == ["publish"]
    assert "SCHEMA" in owned("gates", "complete", gate["gate"], "{}", code=3).stderr
    owned("gates", "complete", gate["gate"], '{"publish": true}', "--by", "Ada")
    output, _ = watching.communicate(timeout=60)
    assert watching.returncode == 0
    assert json.loads(output) == {"published": True, "text": "read Hello"}
    [row] = owned.json("runs", "list", "--tag", "tried")
    assert (row["run"], row["status"]) == (run, "completed")
    assert owned.json("runs", "show", run)["output"]["published"] is True
    owned("gates", "complete", f"{run}/99", "{}", code=4)


def test_history_is_complete_and_in_order_in_every_format(owned: Shell) -> None:
    run = started(owned, "keeping")
    owned("runs", "watch", run)
    events = owned.json("runs", "history", run)
    assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
    assert (events[0]["type"], events[-1]["type"]) == ("run.started", "run.completed")
    lines = owned("runs", "history", run, "--output", "jsonl").stdout.splitlines()
    assert [json.loads(line) for line in lines] == events
    assert "artifact.written" in owned("runs", "history", run[-12:]).stdout


def test_an_artifact_is_listed_and_fetched(owned: Shell) -> None:
    run = started(owned, "keeping")
    owned("runs", "watch", run)
    [row] = owned.json("artifacts", "list", run)
    assert (row["name"], row["size"]) == ("note.txt", 13)
    assert owned("artifacts", "get", run, "note.txt").stdout == "kept for good"
    assert "note.txt" in owned("artifacts", "get", run, "nope", code=4).stderr


def test_a_run_is_paused_resumed_and_cancelled(owned: Shell) -> None:
    run = started(owned, "sleepy")
    for verb, status in (("pause", "paused"), ("resume", "running"), ("cancel", "cancelled")):
        assert owned.json("runs", verb, run)["run"] == run
        assert owned.json("runs", "show", run)["status"] == status
    assert owned("runs", "watch", run, code=1).stdout == ""
    assert "INVALID_STATE" in owned("runs", "pause", run, code=4).stderr


def test_a_signal_wakes_a_run_and_counts_once(owned: Shell) -> None:
    run = started(owned, "signalled")
    owned("runs", "signal", run, "news", '{"n": 1}', "--id", "one")
    owned("runs", "signal", run, "news", '{"n": 1}', "--id", "one", code=None)
    assert json.loads(owned("runs", "watch", run).stdout) == {"got": {"n": 1}}


def test_a_failed_run_says_where_and_why_and_can_be_retried(owned: Shell) -> None:
    watched = owned("run", "failing", "--input", '{"ok": false}', code=1)
    assert watched.stdout == ""
    assert "at check" in watched.stderr
    assert "it is not ok" in watched.stderr
    [row] = owned.json("runs", "list", "--workflow", "failing", "--status", "failed")
    assert owned.json("runs", "retry", row["run"])["visits"] == [2]
    owned("runs", "watch", row["run"], code=1)
    assert owned.json("runs", "retry", row["run"], "2")["visits"] == [2]
    owned("runs", "watch", row["run"], code=1)
    assert "visit 1 is completed, not failed" in owned("runs", "retry", row["run"], "1", code=4).stderr
    again = owned("run", "failing", "--input", '{"ok": false}', "--output", "json", code=1)
    assert json.loads(again.stdout)["error"]["node"] == "check"


def test_the_same_key_gives_the_same_run(owned: Shell) -> None:
    assert started(owned, "sleepy", "--key", "k1") == started(owned, "sleepy", "--key", "k1")


def test_a_second_engine_is_told_who_owns_the_store(owned: Shell) -> None:
    refused = owned("engine", code=5)
    assert "pid" in refused.stderr
    assert refused.stdout == ""


def test_a_backup_beside_the_owner_is_a_store_by_itself(owned: Shell) -> None:
    run = started(owned, "keeping")
    owned("runs", "watch", run)
    owned("backup", "copy.db")
    assert owned("backup", "copy.db", code=4).stderr.count("\n") == 1
    assert any(row["run"] == run for row in owned.json("runs", "list", "--store", "copy.db"))
    assert owned.json("fsck", "--store", "copy.db")["ok"]


def test_fsck_and_doctor_find_nothing_wrong_with_a_store_in_use(owned: Shell) -> None:
    started(owned, "sleepy")
    report = owned.json("fsck")
    assert report["findings"] == []
    assert report["runs"] > 0
    verdicts = {row["check"]: row["verdict"] for row in owned.json("doctor")}
    assert {name for name, verdict in verdicts.items() if verdict != "ok"} <= {"disk"}
    assert {"sqlite", "synchronous", "owner", "clock", "disk", "requests", "timers"} <= verdicts.keys()


def test_a_schedule_is_kept_shown_paused_and_removed(owned: Shell) -> None:
    assert "fields" in owned("schedules", "add", "nightly", "sleepy", "--cron", "0 3 * *", code=3).stderr
    assert "no workflow" in owned("schedules", "add", "x", "nope", "--cron", "@daily", code=4).stderr
    owned("schedules", "add", "nightly", "sleepy", "--cron", "0 3 * * *", "--timezone", "Europe/Berlin")
    [row] = owned.json("schedules", "list")
    dues = [due["due"] for due in owned.json("schedules", "next", "nightly", "--count", "3")]
    assert dues == sorted(dues)
    assert dues[0] == row["next"]
    owned("schedules", "pause", "nightly")
    assert owned.json("schedules", "list")[0]["next"] is None
    owned("schedules", "resume", "nightly")
    owned("schedules", "remove", "nightly")
    assert owned.json("schedules", "list") == []
    owned("schedules", "remove", "nightly", code=4)


def test_dead_letters_are_listed_and_an_unknown_one_is_refused(owned: Shell) -> None:
    assert owned.json("dead", "list") == []
    owned("dead", "requeue", "7", code=4)
    owned("dead", "requeue", code=2)


def test_without_an_owner_run_executes_by_itself_and_prints_only_the_output(alone: Shell) -> None:
    done = alone("run", alone.write("quick.yaml", QUICK))
    assert json.loads(done.stdout) == {"answer": 42}
    assert "completed" in done.stderr
    lines = alone("run", "quick", "--output", "jsonl").stdout.splitlines()
    assert [json.loads(line)["type"] for line in (lines[0], lines[-1])] == ["run.started", "run.completed"]


@pytest.mark.parametrize("kill", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_goes_on_when_an_engine_opens_the_store_again(alone: Shell, kill: signal.Signals) -> None:
    process = alone.begin("run", alone.write("signalled.yaml", SIGNALLED))
    hear(process, "waits for signal")
    process.send_signal(kill)
    _output, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "goes on when an engine opens the store again" in said
    [row] = alone.json("runs", "list", "--status", "running")
    kept = alone("runs", "signal", row["run"], "news", "1", code=5)
    assert "the next engine" in kept.stderr
    with alone.going("engine", until="coordinates"):
        assert json.loads(alone("runs", "watch", row["run"]).stdout) == {"got": 1}


def test_a_killed_owner_is_replaced_and_its_run_ends(alone: Shell) -> None:
    alone("deploy", alone.write("signalled.yaml", SIGNALLED))
    with alone.going("engine", until="coordinates") as first:
        run = started(alone, "signalled")
        first.kill()
        first.wait(timeout=60)
    with alone.going("engine", until="coordinates"):
        alone("runs", "signal", run, "news", '"late"')
        assert json.loads(alone("runs", "watch", run).stdout) == {"got": "late"}
    assert alone.json("fsck")["ok"]


def test_dev_deploys_what_changes_and_keeps_the_version_before_a_broken_file(alone: Shell) -> None:
    (alone.folder / "workflows").mkdir()
    file = alone.write("workflows/quick.yaml", QUICK)
    with alone.going("dev", until="deployed quick v1") as dev:
        alone.write(file, QUICK.replace("42", "43"))
        hear(dev, "deployed quick v2")
        alone.write(file, "workflow: quick\nnodes: {only: {nonsense: 1}}\n")
        hear(dev, "the version before it stays")
        assert json.loads(alone("run", "quick").stdout) == {"answer": 43}


def test_what_init_makes_passes_its_own_test_and_is_not_overwritten(alone: Shell) -> None:
    alone("init")
    assert alone.json("test", "workflows")["passed"] == 1
    assert alone("validate", "--strict", "workflows").returncode == 0
    alone("init", code=4)


def test_a_dead_letter_is_shown_with_its_reason_and_tried_again_by_the_owner(alone: Shell) -> None:
    alone.write("treadle.toml", '[webhooks]\nsigning_secret = "S"\nsubscriptions = [{url = "http://127.0.0.1:9/"}]\n')
    alone.environment["TREADLE_SECRET_S"] = "whsec_" + base64.b64encode(bytes(24)).decode()
    file = alone.write("emitting.yaml", "workflow: emitting\nnodes:\n  say: {action: {kind: emit, type: hello}}\n")
    with alone.going("engine", "--deploy", file, until="coordinates"):
        alone("run", "emitting")
        letters = next(found for _ in range(30) if (found := alone.json("dead", "list")))
        assert "not a public address" in letters[0]["reason"]
        assert alone.json("dead", "requeue", str(letters[0]["id"])) == {"requeued": [letters[0]["id"]]}
    assert "is kept" in alone("dead", "requeue", "--all", code=5).stderr
    assert alone.json("fsck")["ok"]


def test_a_second_engine_is_told_how_to_wait(owned: Shell) -> None:
    assert "--wait" in owned("engine", code=5).stderr


def test_a_schedule_is_shown_in_its_own_time_zone_and_must_say_when(owned: Shell) -> None:
    assert "--every-ms" in owned("schedules", "add", "zoned", "sleepy", code=3).stderr
    added = owned("schedules", "add", "zoned", "sleepy", "--cron", "0 3 * * *", "--timezone", "Asia/Tokyo")
    assert "03:00:00 JST" in added.stderr
    assert "03:00:00 JST" in owned("schedules", "next", "zoned").stdout
    owned("schedules", "remove", "zoned")


def test_what_an_engine_finds_wrong_with_a_definition_looks_as_validate_shows_it(alone: Shell) -> None:
    alone.write("bad.yaml", "workflow: bad\nnodes: {only: {action: {kind: python, function: nobody}}}\n")
    said = alone("run", "bad.yaml", code=3).stderr
    assert said.startswith("error UNKNOWN_FUNCTION")
    assert said.splitlines()[-1] == "treadle: 1 error; nothing was deployed"
