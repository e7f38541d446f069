"""Every row of the lifecycle tables is taken: by the scenario files, or by one of the scripts below. None is theory.

Owns the scripts for rows that scenarios cannot reach, because their virtual workers never lose a lease and never dawdle
on a queue. A row nobody takes fails by name: then delete it, or write the scenario it was meant for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.driving import TASK, Driven, graph_of
from treadle.kernel import lifecycle
from treadle.kernel.evolve import evolve
from treadle.model import commands as c
from treadle.model import events as e
from treadle.model.ids import TokenId
from treadle.model.states import Waiting
from treadle.testing import run_file

Json = Any
Row = tuple[str, str, str]
TESTS = Path(__file__).parents[2]
UNDONE = {**TASK, "compensate": TASK}


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> Iterator[set[Row]]:
    """The rows taken while a test runs."""
    rows: set[Row] = set()
    monkeypatch.setattr(lifecycle, "recorder", rows)
    yield rows


def queued(**fields: Json) -> Driven:
    """A visit offered on a queue, and another that keeps the run open."""
    nodes = {"a": {**TASK, "queue": "q", **fields}, "beside": TASK, "h": {}}
    transitions = [{"from": "a", "to": "h", "on": "failure"}]
    return Driven(graph_of({"nodes": nodes, "start": ["a", "beside"], "transitions": transitions})).start()


def claimed(**fields: Json) -> Driven:
    driven = queued(**fields)
    driven.do(c.StartAttempt(TokenId(1), 1, "w", driven.now + 1000))
    return driven


def lose(driven: Driven) -> None:
    token = driven.token("a")
    driven.do(c.LoseWorker(token.id, token.attempt, token.recoveries))


def lost_for_good() -> None:
    driven = queued()
    while driven.tokens("a") and driven.token("a").state == "dispatched":
        lose(driven)


def gate_timed_out(retry: int) -> None:
    node = {"action": {"kind": "human"}, "timeout_ms": 10, "retry": {"max_attempts": retry}}
    Driven(graph_of({"nodes": {"a": node}})).start().fire("attempt")


def gate_claimed_in_an_old_history() -> None:
    """Version 0.1 wrote `token.waiting` where `gate.claimed` is written now."""
    driven = Driven(graph_of({"nodes": {"a": {"action": {"kind": "human"}}}})).start()
    seq = driven.state.seq + 1
    claimed = e.TokenWaiting(seq, driven.now, TokenId(1), Waiting.HUMAN, None, None, None, {"claimed_by": "ann"})
    evolve(driven.state, claimed)
    assert driven.state.tokens[TokenId(1)].detail == {"claimed_by": "ann"}


def claimed_at_work() -> None:
    driven = Driven(graph_of({"nodes": {"a": TASK}})).start()
    driven.do(c.StartAttempt(TokenId(1), 1, "node", driven.now + 1000))


def run_timed_out() -> None:
    whole = {"timeout_ms": 10, "on_timeout": "cancel", "compensation": "on_failure_and_cancel"}
    driven = Driven(
        graph_of({"nodes": {"a": UNDONE, "b": TASK}, "transitions": [{"from": "a", "to": "b"}], **whole})
    ).start()
    driven.finish("a")
    driven.fire("run")


def late_success() -> None:
    """A success that arrives after everything was undone is undone too."""
    driven = Driven(graph_of({"nodes": {"a": UNDONE, "b": UNDONE, "f": TASK}, "start": ["a", "b", "f"]})).start()
    driven.finish("a")
    driven.fail("f")
    driven.do(c.FinishAttempt(TokenId(4), 1, {}))
    assert driven.state.status == "compensated", driven.log()
    driven.do(c.FinishAttempt(TokenId(2), 1, {}))
    assert driven.state.status == "compensating", driven.log()


def timed_out_and_retried() -> None:
    driven = Driven(graph_of({"nodes": {"a": {**TASK, "timeout_ms": 10}}})).start()
    driven.fire("attempt")
    driven.do(c.RetryToken(TokenId(1)))


def failed_while_paused() -> None:
    transitions = [
        {"id": "t", "from": "a", "to": "b", "spawn_count": 2},
        {"from": "b", "to": "z", "synchronization": {"sibling_group": "t", "min_success_count": 1}},
    ]
    driven = Driven(graph_of({"nodes": {"a": {}, "b": TASK, "z": {}}, "transitions": transitions})).start()
    driven.do(c.PauseRun())
    driven.do(c.CancelGroup("t"))


SCRIPTS: list[Callable[[], object]] = [
    lambda: queued().do(c.CancelToken(TokenId(1))),
    lambda: queued(timeout_ms=10).fire("attempt"),
    lambda: queued(timeout_ms=10, retry={"max_attempts": 2}).fire("attempt"),
    lambda: lose(queued()),
    lost_for_good,
    lambda: claimed().finish("a"),
    lambda: claimed().fail("a"),
    lambda: claimed(retry={"max_attempts": 2}).fail("a", retryable=True),
    lambda: claimed().fire("lease"),
    lambda: claimed().do(c.CancelToken(TokenId(1))),
    lambda: claimed(timeout_ms=10).fire("attempt"),
    lambda: gate_timed_out(1),
    lambda: gate_timed_out(2),
    gate_claimed_in_an_old_history,
    claimed_at_work,
    run_timed_out,
    late_success,
    timed_out_and_retried,
    failed_while_paused,
]


@pytest.mark.slow
def test_every_row_of_the_lifecycle_tables_is_taken(taken: set[Row]) -> None:
    for folder in ("scenarios", "patterns"):
        for file in sorted((TESTS / folder).glob("*.scenario.yaml")):
            run_file(file)
    for script in SCRIPTS:
        script()
    never = [
        f"{machine}: {state} ── {cause} ──▶ {after}"
        for machine, rows in lifecycle.TABLES.items()
        for (state, cause), after in rows.items()
        if (machine, state, cause) not in taken
    ]
    assert not never, "rows that nothing takes:\n  " + "\n  ".join(never)
