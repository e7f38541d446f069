"""`treadle worker` and `treadle queues`: what their options mean. That they work is seen in
`tests/runtime/test_workers`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.shell import Shell
from tests.cli.test_engine_verbs import QUICK
from tests.postgres import new_database
from treadle.cli.frame.exits import USAGE, VerbFailed
from treadle.cli.frame.opening import functions_in
from treadle.cli.nodes.queues import changed
from treadle.cli.nodes.worker import read_queues
from treadle.runtime.queue.queue_settings import QueueRules, read_rate
from treadle.runtime.worker import PLACES

NOTHING = dict.fromkeys(("concurrency", "rate", "key_concurrency", "key_rate"))


def test_queues_and_their_places() -> None:
    assert read_queues(("gpu", "cpu:4", "a:b:2")) == {"gpu": PLACES, "cpu": 4, "a:b": 2}


@pytest.mark.parametrize("word", ["cpu:0", "cpu:", ":3", "cpu:many"])
def test_a_queue_that_is_written_wrongly_is_named(word: str) -> None:
    with pytest.raises(VerbFailed, match=f"--queue {word}"):
        read_queues((word,))


def test_functions_of_a_module_are_its_own_public_ones() -> None:
    assert list(functions_in("tests.runtime.worker_tasks")) == ["knock"]
    with pytest.raises(VerbFailed, match="cannot be imported"):
        functions_in("no_such_module_anywhere")


def test_what_is_not_named_stays_and_none_takes_away() -> None:
    before = QueueRules(concurrency=5, rate=read_rate("3/s"), weights={"a": 2.0, "b": 4.0})
    after = changed(before, {**NOTHING, "rate": "none", "key_concurrency": "2"}, ("a=1", "c=0.5"))
    assert after == QueueRules(concurrency=5, key_concurrency=2, weights={"b": 4.0, "c": 0.5})


@pytest.mark.parametrize(
    ("given", "weights"),
    [
        ({"concurrency": "many"}, ()),
        ({"concurrency": "0"}, ()),
        ({"rate": "fast"}, ()),
        ({}, ("a",)),
        ({}, ("a=heavy",)),
        ({}, ("a=-1",)),
    ],
)
def test_what_cannot_be_meant_is_refused(given: dict[str, str], weights: tuple[str, ...]) -> None:
    with pytest.raises(VerbFailed) as refused:
        changed(None, {**NOTHING, **given}, weights)
    assert refused.value.code == USAGE


def test_a_file_has_no_workers_and_says_so(tmp_path: Path) -> None:
    said = Shell(tmp_path)("worker", "--queue", "gpu", "--store", "t.db", code=5)
    assert "a file has one engine" in said.stderr


def test_what_was_set_is_said_and_a_queue_nobody_knows_is_doubted(tmp_path: Path) -> None:
    with new_database() as dsn:
        shell = Shell(tmp_path)
        shell.environment["TREADLE_STORE"] = dsn
        shell("deploy", shell.write("quick.yaml", QUICK))
        with shell.going("worker", "--queue", "gpu", "--name", "box", until="works for"):
            with shell.going("worker", "--queue", "gpu", "--name", "box", until="works for"):
                assert "box ×2" in shell("queues").stdout
                names = [row.split()[0] for row in shell("nodes").stdout.splitlines()[1:]]
                assert len(set(names)) == 2
            assert shell("queues", "set", "gpu", "--weight", "b1=3").stderr == "gpu: weight b1=3\n"
            doubted = shell("queues", "set", "gup", "--concurrency", "1").stderr
            assert "did you mean gpu?" in doubted
            assert shell("queues", "set", "gpu", "--concurrency", "0", code=2).stderr


NEEDS = """
workflow: needs
nodes:
  a: {queue: gpu, task: {steps: [{ref: s, action: {kind: python, function: nobody_has_this}}]}}
"""


def test_work_that_nobody_can_do_is_told_with_what_they_lack(tmp_path: Path) -> None:
    with new_database() as dsn:
        shell = Shell(tmp_path)
        shell.environment |= {"TREADLE_STORE": dsn, "TREADLE_ENGINE_LEASE_MS": "1000"}
        shell("deploy", shell.write("needs.yaml", NEEDS))
        with (
            shell.going("engine", "--name", "desk", until="coordinates"),
            shell.going("worker", "--queue", "gpu", "--name", "box", until="works for"),
        ):
            run = shell.json("run", "needs", "--no-wait")["run"]
            for _ in range(100):
                queue = shell.json("queues")[-1]
                assert (queue["queue"], set(queue["workers"])) == ("gpu", {"box", "desk"})
                if len(queue["lacks"]) == 2:  # each says so with its next beat
                    break
            assert queue["lacks"] == {name: ["function 'nobody_has_this'"] for name in ("box", "desk")}
            assert "box (lacks function 'nobody_has_this')" in shell("queues").stdout
            assert "function 'nobody_has_this'" in shell("nodes").stdout
            (line,) = [one for one in shell.json("doctor", code=1) if one["check"] == "queues"]
            assert line["verdict"] == "warn" and "lack function 'nobody_has_this'" in line["remedy"]
            assert "its workers lack function" in shell("runs", "show", run).stdout
