"""Who watches a run sees what runs and what waits, why a queue stands, and that the store does not answer."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import structlog

from tests.cli.shell import Shell, hear
from tests.cli.test_picture import text_of
from tests.postgres import new_database
from treadle.cli.frame.opening import drive
from treadle.cli.watch import follow as watching
from treadle.cli.watch import picture
from treadle.cli.watch.follow import _Attendant
from treadle.cli.watch.narration import Narrator
from treadle.cli.watch.overview import Overview
from treadle.cli.watch.queue_words import why
from treadle.errors import StoreUnavailable
from treadle.language import load_text
from treadle.model import events as e
from treadle.model.ids import RunId, TokenId
from treadle.model.states import RunStatus
from treadle.runtime.queue.queue_settings import QueueRules, QueueView, read_rate

LIMITED = """
workflow: limited
nodes:
  begin: {}
  work: {concurrency: {limit: 2}, action: {kind: python, function: "builtins:dict"}}
transitions: [{id: all, from: begin, to: work, spawn_count: 8}]
"""
QUEUED = 'workflow: queued\nnodes: {work: {queue: gup, action: {kind: python, function: "builtins:dict"}}}\n'
VISIT = TokenId(2)
START = e.RunStarted(1, 0, RunId("run"), "w", 1, "hash", None)


def told(*events: e.Event) -> list[str]:
    narrator = Narrator(Overview(load_text(QUEUED).require()))
    return [line.split("work", 1)[1].strip() for event in (START, *events) for line in narrator.tell(event)]


def created(token: int) -> e.Event:
    return e.TokenCreated(token, 0, TokenId(token), "work", "root")


def test_branches_that_wait_for_a_limit_are_not_said_to_run() -> None:
    view = Overview(load_text(LIMITED).require())
    view.apply([START, *(created(token) for token in range(2, 10))])
    view.apply([e.TokenDispatched(10, 0, TokenId(token), 1, None) for token in range(2, 10)])
    view.apply([e.TokenStarted(11, 0, TokenId(token), 1) for token in (2, 3)])
    shown = text_of(picture.picture(view, 1_000))
    assert "6 wait for their turn" in shown


def test_work_of_a_queue_runs_when_somebody_has_begun_it() -> None:
    assert told(
        created(2),
        e.TokenDispatched(3, 0, VISIT, 1, None, "gup"),
        e.TokenStarted(4, 5, VISIT, 1, "red"),
        e.TokenDispatched(5, 9, VISIT, 1, None, "gup", 1),
        e.TokenStarted(6, 9, VISIT, 1, "blue"),
        e.TokenStarted(7, 9, VISIT, 1, "blue"),
        e.TokenDispatched(8, 9, VISIT, 1, None, "gup", 2, True),
    ) == [
        "waits in queue 'gup'",
        "running",
        "waits in queue 'gup' again: the node that executed it before is gone",
        "running again: the node that executed it before is gone",
        "waits in queue 'gup' again: the node that executed it before has stopped",
    ]


@pytest.mark.parametrize(
    ("workers", "rules", "told"),
    [
        ((), QueueRules(), "it has no worker (treadle worker --queue gpu)"),
        (("red",), QueueRules(), ""),
        (("red",), QueueRules(concurrency=2, rate=read_rate("5/s")), "its limit is 2 at once"),
        (("red",), QueueRules(concurrency=3, rate=read_rate("5/s")), "its limits are 5/s"),
        (("red",), QueueRules(key_concurrency=1), "its limits are per key 1 at once"),
    ],
)
def test_why_a_queue_stands(workers: tuple[str, ...], rules: QueueRules, told: str) -> None:
    assert why(QueueView("gpu", 4, 2, 0, 1_000, workers, rules)) == told


class Away:
    """A run of a store that comes and goes, and the client it is reached by."""

    def __init__(self, *answers: RunStatus | Exception) -> None:
        self.answers = list(answers)

    async def status(self) -> RunStatus:
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def is_owned(self) -> bool:
        return True


def test_a_store_that_does_not_answer_is_told_once(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(watching, "ATTEND_S", 0)
    gone = StoreUnavailable("gone")
    run: Any = Away(RunStatus.RUNNING, gone, gone, gone, RunStatus.RUNNING, RunStatus.COMPLETED)
    asyncio.run(_Attendant(run, run, Overview(), is_drawn=False).attend())
    assert capsys.readouterr().err.splitlines() == [
        "the store does not answer; still waiting",
        "the store answers again",
    ]


def test_who_only_asks_sees_no_log(capsys: pytest.CaptureFixture[str]) -> None:
    async def verb() -> int:
        structlog.get_logger("treadle.store").info("no notices for now: the store is polled instead")
        structlog.get_logger("treadle.store").warning("a heartbeat failed")
        return 0

    assert drive(verb()) == 0
    out, err = capsys.readouterr()
    assert out + err == ""


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    with new_database() as dsn:
        made = Shell(tmp_path)
        made.write("treadle.toml", f'store = "{dsn}"\n[engine]\nlease_ms = 2000\nqueues = {{cpu = 1}}\n')
        made.write("queued.yaml", QUEUED)
        yield made


def test_a_queue_nobody_works_for_is_told_everywhere(shell: Shell) -> None:
    nobody = "it has no worker (treadle worker --queue gup)"
    with shell.going("engine", "--name", "red", "--deploy", "queued.yaml", until="coordinates") as engine:
        run = shell("run", "queued", "--no-wait").stdout.strip()
        watching = shell.begin("runs", "watch", run)
        assert "waits in queue 'gup'" in hear(watching, nobody)
        assert nobody in shell("runs", "show", run).stdout
        doctor = {line["check"]: line for line in shell.json("doctor", code=1)}  # tests run without fsync
        assert (doctor["queues"]["finding"], doctor["queues"]["remedy"]) == ("1 waiting in 'gup'", nobody)
        assert [row["queue"] for row in shell.json("queues")] == ["cpu", "gup"]
        with shell.going("engine", "--name", "blue", until="coordinates"):
            assert {row["node"] for row in shell.json("nodes")} == {"red", "blue"}
            engine.terminate()
            assert "stopped; blue goes on with its runs" in hear(engine, "stopped")
        worker = ("worker", "--queue", "gup", "other", "--functions", "builtins")
        with shell.going(*worker, until="works for gup"), shell.going("engine", until="coordinates"):
            output, _said = watching.communicate(timeout=60)
            assert output == "{}\n"
