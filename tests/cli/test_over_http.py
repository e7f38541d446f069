"""`--server`: what a verb prints is the same either way, and a verb that makes no sense remotely says why.

That verbs work over HTTP is seen in the tests of the verbs themselves, which are run for a store and for a service
(`desk`, `shared_desk`).
"""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.cli.served import ServedShell, opened
from tests.cli.shell import Shell, hear
from tests.cli.test_engine_verbs import KEEPING, REVIEW, SIGNALLED, SLEEPY, started
from tests.cli.test_undoing import JOURNEY
from treadle.cli.frame.exits import INTERRUPTED, INVALID, OK, REFUSED, STORE, USAGE
from treadle.cli.frame.options import NOT_OVER_HTTP
from treadle.cli.main import VERBS
from treadle.language import load_file

LEAD = Path(__file__).parents[2] / "examples" / "lead.yaml"
REFUSALS = {
    "init": "it makes files in this folder",
    "validate": "it reads files of this folder",
    "test": "it plays scenarios in this process",
    "schema": "it prints what this version knows",
    "dev": "it serves a store itself",
    "engine": "it coordinates a store itself",
    "serve": "it serves a store itself",
    "backup": "it copies the files of a store",
    "db move": "it moves a store",
    "fsck": "it reads every row of a store",
    "doctor": "it looks at the machine and the store",
    "requests": "a service keeps no requests",
    "requests show R": "a service keeps no requests",
    "completion bash": "it prints a script for this shell",
}
"""Verbs that cannot ask a service, and why not."""
ASKING = {
    *("graph", "run", "worker", "deploy", "migrate", "replay", "runs", "nodes", "gates", "entities", "schedules"),
    *("queue", "queues", "artifacts", "dead", "keys", "config"),
}
"""Verbs that can. `worker` is tried in tests/server; `config` shows the setting."""
READING = [
    "runs",
    "runs list --workflow review --status running",
    "runs list --tag odd",
    "runs list --entity lead/7",
    "runs list --limit 2",
    "runs list --after REVIEW",
    "runs list --parent JOURNEY",
    "runs show REVIEW",
    "runs show JOURNEY",
    "runs show KEEPING",
    "runs show LEAD",
    "runs show REVIEW --at 3",
    "runs history JOURNEY",
    "runs history JOURNEY --after 4 --limit 3",
    "runs watch KEEPING",
    "runs compensations JOURNEY",
    "runs groups JOURNEY",
    "gates",
    "gates list --workflow review",
    "gates list --by-node",
    "gates list --mine Ada --text publish",
    "gates show REVIEW",
    "artifacts list KEEPING",
    "schedules",
    "dead list",
    "queues",
    "entities",
    "entities show lead/7",
    "entities journey lead/7",
    "entities positions lead",
    "entities conversion lead",
    "keys",
    "runs show nobody",
    "gates show KEEPING",
    "entities show lead/8",
]
"""Verbs that only read."""


@pytest.fixture(scope="module")
def served(services: Any) -> ServedShell:
    return ServedShell(services.project())


@pytest.fixture(scope="module")
def runs(served: ServedShell) -> dict[str, str]:
    """A store with something of everything; names that stand for its runs."""
    texts = {"review": REVIEW, "keeping": KEEPING, "journey": JOURNEY, "signalled": SIGNALLED, "sleepy": SLEEPY}
    served("deploy", *(served.write(f"{name}.yaml", text) for name, text in texts.items()))
    found = {
        "REVIEW": started(served, "review", "--input", '{"draft": "x"}', "--tag", "odd", "--key", "k"),
        "KEEPING": started(served, "keeping"),
        "JOURNEY": started(served, "journey"),
    }
    served("runs", "watch", found["KEEPING"])
    served("runs", "watch", found["JOURNEY"], code=1)
    with opened(served) as client:
        company = {"company": "Shuttle", "employees": 3}
        lead = client.start(load_file(LEAD), company, entity={"type": "lead", "id": "7", "name": "Bea"})
        lead.result(30)
        found["LEAD"] = lead.id
        while not client.gates(found["REVIEW"]):
            pass  # it has just begun
    served("schedules", "add", "nightly", "sleepy", "--cron", "0 3 * * *", "--timezone", "Europe/Berlin")
    return found


@pytest.mark.parametrize("words", READING)
def test_what_a_verb_prints_is_the_same_on_the_store_and_over_http(
    served: ServedShell, runs: dict[str, str], words: str
) -> None:
    for name, run in runs.items():
        words = words.replace(name, run)
    given = (*words.split(), "--output", "json")
    store, remote = served.here(*given, "--store", "treadle.db"), served.here(*given)
    assert (store.returncode, store.stderr) == (remote.returncode, remote.stderr)
    assert bool(store.stdout) == (store.returncode in (0, 1))
    assert _read(store.stdout) == _read(remote.stdout)


def _read(text: str) -> Any:
    return json.loads(text) if text else None


def test_a_node_is_shown_with_the_same_fields(served: ServedShell) -> None:
    (store,), (remote,) = served.json("nodes", "--store", "treadle.db"), served.json("nodes")
    assert store.keys() == remote.keys()
    assert (store["node"], store["coordinates"]) == (remote["node"], True)


@pytest.mark.parametrize("format", ["text", "mermaid", "svg", "json"])
def test_a_deployed_workflow_is_drawn_the_same(served: ServedShell, runs: dict[str, str], format: str) -> None:
    assert runs
    given = ("graph", "journey", "--format", format)
    drawn = served(*given).stdout
    assert drawn == served(*given, "--store", "treadle.db").stdout
    assert "hotel" in drawn


@pytest.mark.parametrize("words", REFUSALS)
def test_a_verb_that_needs_the_store_says_why_it_cannot_ask_a_service(tmp_path: Path, words: str) -> None:
    done = Shell(tmp_path).here(*words.split(), "--server", "http://127.0.0.1:9")
    assert (done.returncode, done.stdout) == (USAGE, "")
    verb = words.split()[0]
    assert done.stderr.startswith(f"treadle: `treadle {verb}` cannot ask a service: {REFUSALS[words]}")


def test_every_verb_either_asks_or_says_why_it_cannot() -> None:
    verbs = {name for name, *_ in VERBS}
    assert {words.split()[0] for words in REFUSALS} == NOT_OVER_HTTP.keys()
    assert NOT_OVER_HTTP.keys() | ASKING == verbs
    assert not NOT_OVER_HTTP.keys() & ASKING


def test_requests_are_refused_also_where_a_variable_names_the_service(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    shell.environment["TREADLE_SERVER"] = "http://127.0.0.1:9"
    assert "a service keeps no requests" in shell.here("requests").stderr


def test_options_that_a_service_does_not_take_are_refused(served: ServedShell, runs: dict[str, str]) -> None:
    done = served("run", "sleepy", "--no-wait", "--trigger", '{"by": "hand"}', code=INVALID)
    assert "a service makes the trigger of a run itself" in done.stderr
    served.environment["TREADLE_KEY"] = served.project.key_of("Ada")
    try:
        there = ("--server", served.project.url)
        for words in (("runs", "pause", runs["REVIEW"]), ("gates", "complete", runs["REVIEW"], '{"publish": true}')):
            done = Shell.here(_Plain(served), *words, "--by", "Bob", *there)
            assert done.returncode == REFUSED
            assert "the key is of 'Ada', so this cannot be done by 'Bob'" in done.stderr
    finally:
        del served.environment["TREADLE_KEY"]
    assert served.json("runs", "show", runs["REVIEW"])["status"] == "running"


class _Plain(Shell):
    """The folder and variables of another shell, without a service of its own."""

    def __init__(self, other: Shell) -> None:
        super().__init__(other.folder)
        self.environment = other.environment


def test_a_key_is_made_listed_and_revoked(served: ServedShell) -> None:
    made = served.json("keys", "create", "robot", "--role", "viewer", "--expires", "90d")
    local = served.json("keys", "create", "robot", "--role", "viewer", "--expires", "90d", "--store", "treadle.db")
    assert made.keys() == local.keys()
    assert {made["id"], local["id"]} <= {row["id"] for row in served.json("keys")}
    assert served.json("keys", "revoke", made["key"])["id"] == made["id"], "by the key itself"
    assert served.json("keys", "revoke", local["id"]).keys() == local.keys() - {"key"}
    assert served("keys", "revoke", made["id"], code=REFUSED).stderr.startswith("treadle: NOT_FOUND: there is no key")
    assert made["key"] not in str(served.json("keys"))


def test_the_rules_of_a_queue_are_set_and_taken_away(served: ServedShell) -> None:
    words = ("queues", "set", "gpu", "--concurrency", "2", "--rate", "5/s", "--weight", "a=3")
    there = served.json(*words)
    assert there == served.json(*words, "--store", "treadle.db")
    [row] = [row for row in served.json("queues") if row["queue"] == "gpu"]
    assert (row["rules"]["concurrency"], row["rules"]["weights"]) == (2, {"a": 3.0})
    served("queues", "set", "gpu", "--concurrency", "none", "--rate", "none", "--weight", "a=1")
    assert not [row for row in served.json("queues") if row["rules"]["concurrency"] or row["rules"]["weights"]]


def test_what_a_service_finds_wrong_with_a_definition_is_shown_as_validate_shows_it(served: ServedShell) -> None:
    served.write("bad.yaml", "workflow: bad\nnodes: {only: {action: {kind: python, function: nobody}}}\n")
    for verb in ("deploy", "run"):
        done = served(verb, "bad.yaml", code=INVALID)
        assert "error UNKNOWN_FUNCTION <service>  nodes.only" in done.stderr
        assert done.stderr.splitlines()[-1] == "treadle: 1 error; nothing was deployed"


def test_a_service_that_is_not_there_and_a_wrong_key_are_told_apart(served: ServedShell) -> None:
    shell = _Plain(served)
    nobody = {"TREADLE_KEY": "tdl_nobody_" + "x" * 40, "TREADLE_ENGINE_OPEN_WAIT_MS": "1"}
    shell.environment = {**served.environment, **nobody}
    gone = shell.here("runs", "--server", "http://127.0.0.1:9")
    assert (gone.returncode, gone.stderr.count("\n")) == (STORE, 1)
    assert "http://127.0.0.1:9 cannot be reached" in gone.stderr
    wrong = shell.here("runs", "--server", served.project.url)
    assert wrong.returncode == REFUSED
    assert "UNAUTHENTICATED: this needs a key" in wrong.stderr
    assert shell.here("runs", "--server", "ftp://x").returncode == STORE
    both = shell.here("runs", "--server", served.project.url, "--store", "treadle.db")
    assert (both.returncode, both.stderr) == (USAGE, "treadle: --store and --server: give one of them\n")


def test_who_stops_watching_leaves_the_run_to_the_service(served: ServedShell, runs: dict[str, str]) -> None:
    assert runs
    watching = served.begin("run", "signalled")
    heard = hear(watching, "waits for signal")
    assert f"the run is executed by {served.project.url}\n" in heard
    watching.send_signal(signal.SIGINT)
    _output, said = watching.communicate(timeout=60)
    assert watching.returncode == INTERRUPTED
    run = said.split("no longer watching; run ")[1].split()[0]
    served("runs", "signal", run, "news", "1")
    done = served("runs", "watch", run)
    assert (done.returncode, json.loads(done.stdout)) == (OK, {"got": 1})
