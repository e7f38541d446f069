"""The four tables: what is in them happens, what is not raises InvalidTransition, and nothing leaves a final state."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.driving import TASK, Driven, graph_of
from treadle.errors import InvalidTransition
from treadle.kernel import lifecycle
from treadle.kernel.evolve import evolve, replay
from treadle.kernel.state import RunState
from treadle.model import commands as c
from treadle.model import events as e
from treadle.model.ids import RunId, TokenId
from treadle.model.states import ExternalState, GateState, RunStatus, TokenState

Move = Callable[[str, str], str]
MACHINES: dict[str, tuple[Move, list[str]]] = {
    "token": (lifecycle.move_token, [s.value for s in TokenState]),
    "run": (lifecycle.move_run, [s.value for s in RunStatus]),
    "gate": (lifecycle.move_gate, [s.value for s in GateState]),
    "external task": (lifecycle.move_external, [s.value for s in ExternalState]),
}


def legal(machine: str) -> dict[tuple[str, str], str]:
    return {(str(state), cause): str(after) for (state, cause), after in lifecycle.TABLES[machine].items()}


@pytest.mark.parametrize("machine", MACHINES)
def test_every_row_is_a_move_and_every_other_pair_is_refused(machine: str) -> None:
    move, states = MACHINES[machine]
    rows = legal(machine)
    for cause in sorted({cause for _, cause in rows}):
        for state in states:
            if (state, cause) in rows:
                assert move(state, cause) == rows[state, cause]
            else:
                with pytest.raises(InvalidTransition, match="INVALID_TRANSITION"):
                    move(state, cause)


@pytest.mark.parametrize("machine", MACHINES)
def test_a_cause_nobody_knows_is_refused(machine: str) -> None:
    move, states = MACHINES[machine]
    for state in states:
        with pytest.raises(InvalidTransition, match="moon landed"):
            move(state, "moon landed")


FINAL = [
    ("token", "completed"),
    ("gate", "completed"),
    ("gate", "expired"),
    ("gate", "closed"),
    ("external task", "answered"),
    ("external task", "closed"),
]


@pytest.mark.parametrize(("machine", "state"), FINAL)
def test_nothing_leaves_a_final_state(machine: str, state: str) -> None:
    assert not [cause for before, cause in legal(machine) if before == state]


def test_a_token_that_did_not_succeed_leaves_that_state_by_an_operators_command_only() -> None:
    back = {"token.retry_scheduled", "token.waiting"}
    for state, more in (("failed", CHANGED), ("timed_out", CHANGED), ("cancelled", set())):
        causes = {cause for before, cause in legal("token") if before == state}
        assert causes == back | more, "a new attempt, it waits where it waited, or an operator skips or moves it"


CHANGED = {"token.skipped", "token.jumped"}


def test_a_live_token_can_always_be_cancelled() -> None:
    for state in ("pending", "dispatched", "executing", "waiting"):
        assert legal("token")[state, "token.cancelled"] == "cancelled"


def test_every_state_can_be_reached() -> None:
    begins = {"token": {"created"}, "run": {"created"}, "gate": {"open"}, "external task": {"offered"}}
    for machine, (_, states) in MACHINES.items():
        reached = begins[machine] | set(legal(machine).values())
        assert set(states) <= reached, machine


ILLEGAL: list[tuple[str, Callable[[int], e.Event]]] = [
    ("a visit completes before it began", lambda seq: e.TokenCompleted(seq, 0, TokenId(2))),
    ("a visit resumes that does not wait", lambda seq: e.TokenResumed(seq, 0, TokenId(1))),
    ("a run resumes that is not paused", lambda seq: e.RunResumed(seq, 0, "x")),
    ("a run starts twice", lambda seq: e.RunStarted(seq, 0, RunId("r"), "w", 1, "h", {})),
    ("a run is compensated without compensating", lambda seq: e.RunCompensated(seq, 0)),
]


@pytest.mark.parametrize(("why", "event"), ILLEGAL, ids=[why for why, _ in ILLEGAL])
def test_a_history_with_an_illegal_move_cannot_be_folded(why: str, event: Callable[[int], e.Event]) -> None:
    driven = Driven(graph_of({"nodes": {"a": TASK, "b": TASK}, "start": ["a", "b"]})).start()
    upto = [
        one for one in driven.history if not (isinstance(one, e.TokenDispatched | e.TokenStarted) and one.token == 2)
    ]
    for number, one in enumerate(upto, 1):
        one.seq = number
    state = replay(driven.graph, upto)
    with pytest.raises(InvalidTransition):
        evolve(state, event(state.seq + 1))


def test_a_history_with_a_gap_cannot_be_folded() -> None:
    driven = Driven(graph_of({"nodes": {"a": TASK}})).start()
    gap: list[Any] = [driven.history[0], driven.history[2]]
    with pytest.raises(AssertionError, match="gap: 3 after 1"):
        replay(driven.graph, gap)


def tried_again() -> Driven:
    driven = Driven(graph_of({"nodes": {"a": {**TASK, "retry": {"max_attempts": 2}}}})).start()
    driven.fail("a", retryable=True)
    driven.fire("retry")
    return driven


def failed_and(command: c.Command) -> Driven:
    driven = Driven(graph_of({"nodes": {"a": TASK, "b": TASK}, "transitions": [{"from": "a", "to": "b"}]})).start()
    driven.fail("a")
    assert driven.do(command).rejection is None
    return driven


MOVES: list[Callable[[], Driven]] = [
    tried_again,
    lambda: failed_and(c.RetryToken(TokenId(1))),
    lambda: failed_and(c.SkipToken(TokenId(1), {})),
    lambda: failed_and(c.JumpToken(TokenId(1), "b")),
]


@pytest.mark.parametrize("moved", MOVES, ids=["node retry", "retry", "skip", "jump"])
def test_every_change_of_a_visit_bumps_its_version(moved: Callable[[], Driven]) -> None:
    driven = moved()
    state = RunState(driven.graph)
    was, version = TokenState.PENDING, 0
    for event in driven.history:
        evolve(state, event)
        token = state.tokens.get(TokenId(1))
        if token is not None:
            assert token.version > version or token.state == was, f"{event.type}: {was} → {token.state}"
            was, version = token.state, token.version
    assert version > 2, driven.log()
