"""The judge can see: each kind of loss and doubling, planted into honest evidence, is found."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from copy import deepcopy

import pytest
from msgspec.structs import replace

from tests.torture.engine import DATABASE
from tests.torture.inside import play
from tests.torture.judge import judge
from tests.torture.verdict import Evidence
from treadle.model import events as e
from treadle.model.states import RunStatus
from treadle.store.sqlite import SqliteStore


@pytest.fixture(scope="module")
def honest(tmp_path_factory: pytest.TempPathFactory) -> Evidence:
    place = tmp_path_factory.mktemp("honest")

    async def run() -> Evidence:
        return await play(place, await SqliteStore.open(place / DATABASE), seed=3, actors=8)

    return asyncio.run(run())


def first(evidence: Evidence, kind: type[e.Event]) -> tuple[str, int]:
    """A run that has such an event, and where."""
    for run, history in evidence.histories.items():
        for position, event in enumerate(history):
            if isinstance(event, kind):
                return run, position
    raise AssertionError(f"no {kind.__name__} at all")


def lose_a_run(evidence: Evidence) -> None:
    run = next(line["run"] for line in evidence.client if line["op"] == "started")
    del evidence.runs[run], evidence.histories[run]


def start_twice(evidence: Evidence) -> None:
    run = next(line["run"] for line in evidence.client if line["op"] == "started")
    evidence.runs["again"] = replace(evidence.runs[run], run="again")
    evidence.histories["again"] = evidence.histories[run]


def change_an_output(evidence: Evidence) -> None:
    for run, history in evidence.histories.items():
        if evidence.runs[run].workflow == "chain":
            history[-1] = replace(history[-1], output={"n": -1})
            return


def leave_a_run_open(evidence: Evidence) -> None:
    run = next(run for run, row in evidence.runs.items() if row.workflow == "nap")
    evidence.runs[run] = replace(evidence.runs[run], status=RunStatus.RUNNING)


def lose_a_signal(evidence: Evidence) -> None:
    run, position = first(evidence, e.SignalReceived)
    del evidence.histories[run][position]


def lose_an_answer(evidence: Evidence) -> None:
    run = next(line["run"] for line in evidence.client if line["op"] == "answered")
    evidence.histories[run] = [event for event in evidence.histories[run] if not isinstance(event, e.GateCompleted)]


def undo_a_cancellation(evidence: Evidence) -> None:
    run = next(line["run"] for line in evidence.client if line["op"] == "cancelled")
    evidence.runs[run] = replace(evidence.runs[run], status=RunStatus.COMPLETED)


def fire_a_join_twice(evidence: Evidence) -> None:
    run, position = first(evidence, e.JoinFired)
    evidence.histories[run].insert(position, evidence.histories[run][position])


def undo_in_the_wrong_order(evidence: Evidence) -> None:
    run, _ = first(evidence, e.CompensationCompleted)
    history = evidence.histories[run]
    places = [n for n, event in enumerate(history) if isinstance(event, e.CompensationCompleted)]
    history[places[0]], history[places[1]] = history[places[1]], history[places[0]]


def execute_again_without_a_kill(evidence: Evidence) -> None:
    evidence.work.append(evidence.work[0])


def execute_after_the_result(evidence: Evidence) -> None:
    line = evidence.work[0]
    evidence.deaths[int(line["engine"].partition("-")[0])] = [line["at"]]
    evidence.work.append({**line, "engine": "1-other", "at": line["at"] + 60_000})


def execute_again_before_the_kill(evidence: Evidence) -> None:
    line = evidence.work[0]
    evidence.deaths[int(line["engine"].partition("-")[0])] = [line["at"] + 60_000]
    evidence.work.insert(1, {**line, "engine": "1-other"})


def never_execute(evidence: Evidence) -> None:
    run = evidence.work[0]["run"]
    evidence.work = [line for line in evidence.work if line["run"] != run]


def leave_a_timer(evidence: Evidence) -> None:
    evidence.left["the timers"] = 1


def start_for_nobody(evidence: Evidence) -> None:
    row = next(iter(evidence.runs.values()))
    evidence.runs["stray"] = replace(row, run="stray", idempotency_key="invented", parent=None)
    evidence.histories["stray"] = evidence.histories[row.run]


FORGERIES = [
    lose_a_run,
    start_twice,
    change_an_output,
    leave_a_run_open,
    lose_a_signal,
    lose_an_answer,
    undo_a_cancellation,
    fire_a_join_twice,
    undo_in_the_wrong_order,
    execute_again_without_a_kill,
    execute_after_the_result,
    execute_again_before_the_kill,
    never_execute,
    leave_a_timer,
    start_for_nobody,
]


@pytest.mark.slow
def test_the_judge_finds_nothing_where_nothing_happened(honest: Evidence) -> None:
    verdict = judge(honest)
    assert verdict.findings == []
    assert verdict.repeated == 0 and verdict.runs >= 8 * 12
    assert {"gate", "saga", "ticks", "quorum", "holder"} <= verdict.kinds.keys()


@pytest.mark.parametrize("forge", FORGERIES, ids=lambda forge: forge.__name__)
def test_the_judge_finds(honest: Evidence, forge: Callable[[Evidence], None]) -> None:
    forged = deepcopy(honest)
    forge(forged)
    assert judge(forged).findings
