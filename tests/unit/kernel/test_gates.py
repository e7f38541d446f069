"""Gates: what is recorded when somebody is passed over, and the gate of a run that is out of time."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from tests.driving import TASK, Driven, graph_of
from treadle.model import commands as c
from treadle.model import effects as x
from treadle.model import events as e
from treadle.model.ids import RUN_GATE, TokenId
from treadle.model.states import RunStatus
from treadle.runtime.deliver.outgoing import context_of
from treadle.store.port import OutboxRow

ONE = TokenId(1)
ASKED = {"title": "Sign", "form": {"type": "object"}, "assign": ["ann"]}
ASKING = {"kind": "human", **ASKED, "due_ms": 900, "remind_ms": 50}


def asking() -> Driven:
    return Driven(graph_of({"nodes": {"a": {"action": ASKING}}})).start()


def out_of_time() -> Driven:
    driven = Driven(graph_of({"timeout_ms": 10, "nodes": {"a": TASK}})).start()
    driven.fire("run")
    assert driven.state.status is RunStatus.PAUSED
    return driven


def gates_of(effects: list[x.Effect]) -> list[x.Effect]:
    return [effect for effect in effects if isinstance(effect, x.OpenGate | x.CloseGate | x.NoteGate)]


@pytest.mark.parametrize(
    ("command", "event"),
    [
        (c.CompleteGate(ONE, {}, "bob", force=True), e.GateCompleted),
        (c.ReleaseGate(ONE, "bob", force=True), e.GateReleased),
        (c.DelegateGate(ONE, "eve", "bob", force=True), e.GateDelegated),
    ],
)
def test_who_was_passed_over_by_force_is_recorded_and_only_then(command: c.Command, event: type[e.Event]) -> None:
    driven = asking()
    driven.do(c.ClaimGate(ONE, "ann"))
    refused = driven.do(replace(command, force=False))
    assert refused.rejection is not None
    assert "claimed by 'ann'" in refused.rejection.message
    assert "anybody else answers, releases or passes it on by force" in refused.rejection.message
    (forced,) = (one for one in driven.do(command).events if isinstance(one, event))
    assert (forced.by, forced.instead_of) == ("bob", "ann")  # type: ignore[attr-defined]
    free = asking()
    (given,) = [one for one in free.do(command).events if isinstance(one, event)] or [None]  # type: ignore[list-item]
    assert given is None or given.instead_of is None  # type: ignore[attr-defined]


def test_lists_are_told_who_has_a_gate() -> None:
    driven = asking()
    commands = (c.ClaimGate(ONE, "ann"), c.DelegateGate(ONE, "bob", "ann"), c.ReleaseGate(ONE, "bob"))
    noted = [effect for command in commands for effect in gates_of(driven.do(command).effects)]
    assert noted == [x.NoteGate(ONE, "ann"), x.NoteGate(ONE, "bob"), x.NoteGate(ONE)]


def test_who_is_told_or_reminded_of_a_gate_learns_what_is_asked_of_whom_until_when() -> None:
    driven = asking()
    opened = context_of(driven.state, OutboxRow(1, driven.state.run, x.OpenGate(ONE, "a")))
    assert opened is not None
    assert opened["gate"] == {
        "node_id": "a",
        **ASKED,
        "description": None,
        "escalated": None,
        "opened": driven.now,
        "due": driven.now + 900,
        "claimed_by": None,
    }
    driven.do(c.ClaimGate(ONE, "ann"))
    reminded = context_of(driven.state, OutboxRow(2, driven.state.run, x.RemindGate(ONE)))
    assert reminded is not None
    assert reminded["gate"] == {**opened["gate"], "claimed_by": "ann"}
    driven.do(c.CompleteGate(ONE, {}, "ann"))
    assert context_of(driven.state, OutboxRow(2, driven.state.run, x.RemindGate(ONE))) is None, "nobody has to answer"


@pytest.mark.parametrize("end", [c.ExtendTimeout(100), c.ResumeRun(), c.AbortRun(), c.CancelRun()], ids=repr)
def test_a_run_that_is_out_of_time_is_a_gate_until_somebody_decides(end: c.Command) -> None:
    driven = out_of_time()
    (opened,) = gates_of(driven.outside.said)
    assert isinstance(opened, x.OpenGate)
    assert (opened.token, opened.node) == (RUN_GATE, "")
    assert "has not ended by its deadline" in (opened.title or "")
    told = context_of(driven.state, OutboxRow(1, driven.state.run, opened))
    assert told is not None
    assert told["gate"] == {"node_id": None, "title": opened.title}
    assert gates_of(driven.do(c.PauseRun()).effects) == [], "it stands still already"
    assert gates_of(driven.do(end).effects) == [x.CloseGate(RUN_GATE)]
    assert context_of(driven.state, OutboxRow(1, driven.state.run, opened)) is None


@pytest.mark.parametrize("command", [c.CompleteGate(RUN_GATE, 1), c.ClaimGate(RUN_GATE, "ann")], ids=repr)
def test_the_gate_of_a_run_is_no_question(command: c.Command) -> None:
    refused = out_of_time().do(command).rejection
    assert refused is not None
    assert "extend it or abort it" in refused.message


def test_a_pause_by_an_operator_is_no_gate() -> None:
    driven = Driven(graph_of({"timeout_ms": 10, "nodes": {"a": TASK}})).start()
    assert gates_of(driven.do(c.PauseRun()).effects) == []
    assert gates_of(driven.do(c.ResumeRun()).effects) == []
