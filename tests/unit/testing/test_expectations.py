"""Every key of `expect`, held against histories written by hand."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.testing.histories import begun, completed, created, observed, read, started
from treadle.model import events as e
from treadle.model.errors import Error
from treadle.model.ids import TokenId
from treadle.model.references import EntityRef
from treadle.model.states import Waiting
from treadle.testing.scenario.documents import read_documents
from treadle.testing.scenario.expectations import differences
from treadle.testing.scenario.observed import Observed
from treadle.testing.scenario.parse_expect import parse_expectation
from treadle.testing.scenario.place import ValuePlace

PANEL = [
    started(100),
    created(1, "ask"),
    *begun(1),
    completed(1),
    created(2, "judge", "root.ask.0", ((1, 0),), origin=TokenId(1)),
    created(3, "judge", "root.ask.1", ((1, 1),), origin=TokenId(1)),
    *begun(2),
    *begun(3),
    e.TokenWaiting(0, 0, TokenId(2), Waiting.SIBLINGS, output={"v": "aye"}),
    e.JoinMismatch(0, 0, TokenId(3), "t", "g"),
]


def panel(**fields: Any) -> Observed:
    return observed(read(*PANEL), now=250, **fields)


def check(text: str, world: Observed) -> list[str]:
    [document] = read_documents(text, "f")
    return [str(difference) for difference in differences(parse_expectation(ValuePlace.root(document)), world)]


@pytest.mark.parametrize(
    "text",
    [
        "status: running",
        "visits: {ask: 1, judge: 2}",
        "attempts: {ask: 1, 'judge[1]': 1}",
        "order: [ask, judge, judge]",
        "order: [ask, 'judge[0]', 'judge[1]']",
        "paths: {judge: [root.ask.1, root.ask.0]}",
        "state: {votes: [1]}",
        "state: {gone: null}",
        "output: {x: {contains: {a: 1}}}",
        "node_output: {'judge[0]': {v: aye}}",
        "waiting: [{node: judge, for: siblings, awaiting: 1}]",
        "waiting: [{node: 'judge[0]', for: siblings}]",
        "tokens: {completed: 1, waiting: 1, failed: 0}",
        "events: [run.started, token.completed, join.mismatch]",
        "no_events: [run.failed]",
        "event_counts: {token.created: 3, run.failed: 0}",
        "warnings: [join.mismatch]",
        "elapsed_ms: 150",
        "dispatches: {judge: 14}",
        "runs: {panel: {status: running}}",
    ],
)
def test_what_holds_is_not_mentioned(text: str) -> None:
    world = panel(state={"votes": [1], "more": 2}, output={"x": {"a": 1, "b": 2}}, awaiting=1, dispatches=7)
    assert check(text, world) == []


@pytest.mark.parametrize(
    ("text", "difference"),
    [
        ("status: completed", "status: expected completed, was running"),
        ("error: {kind: DEADLOCK}", "error: expected DEADLOCK, was no error"),
        ("visits: {ask: 2, judge: 2}", "visits.ask: expected 2, was 1"),
        ("visits: {ask: 1}", "visits.judge: expected none (not listed), was 2"),
        ("attempts: {decide: 1}", "attempts.decide: expected 1, was no such visit"),
        ("order: [ask, judge]", 'order: expected ["ask","judge"], was ["ask","judge","judge"]'),
        ("paths: {judge: [root]}", 'paths.judge: expected ["root"], was ["root.ask.0","root.ask.1"]'),
        ("state: {votes: []}", "state.votes: expected [], was [1]"),
        ("output: {x: 1}", "output.x: expected 1, was null"),
        ("node_output: {ask: 3}", "node_output.ask: expected 3, was null"),
        ("waiting: []", "waiting: expected nothing, was judge[0] for siblings"),
        (
            "waiting: [{node: ask, for: timer}]",
            "waiting: expected ask for timer, was judge[0] for siblings",
        ),
        ("tokens: {completed: 3}", "tokens.completed: expected 3, was 1"),
        (
            "events: [token.completed, run.started]",
            "events[1]: expected run.started after token.completed, was none there",
        ),
        ("no_events: [join.mismatch]", "no_events.join.mismatch: expected none, was 1"),
        ("event_counts: {token.created: 1}", "event_counts.token.created: expected 1, was 3"),
        ("warnings: []", 'warnings: expected [], was ["join.mismatch"]'),
        ("elapsed_ms: 3", "elapsed_ms: expected 3, was 150"),
        ("dispatches: {ask: 1}", "dispatches.ask: expected 1, was 0"),
        ("runs: {panel: {status: failed}}", "runs.panel.status: expected failed, was running"),
        ("runs: {other: {}}", "runs.other: expected a run, was none of panel"),
    ],
)
def test_what_does_not_hold_is_said_in_one_line(text: str, difference: str) -> None:
    assert check(text, panel(state={"votes": [1]})) == [difference]


def test_all_differences_are_reported_at_once() -> None:
    assert len(check("{status: failed, visits: {ask: 7, judge: 7}, elapsed_ms: 0}", panel())) == 4


def test_an_error_is_compared_by_kind_and_part_of_its_message() -> None:
    world = observed(read(started(), e.RunFailed(0, 0, Error("SCHEMA", "input.x is not a number"))))
    assert check("error: {kind: SCHEMA, message_contains: input.x}", world) == []
    assert len(check("error: {kind: DEADLOCK, message_contains: input.y}", world)) == 2


def test_a_finished_run_has_taken_as_long_as_it_ran_however_late_one_looks() -> None:
    world = observed(read(started(100), e.RunCompleted(0, 130, {"x": 1})), now=999)
    assert check("{elapsed_ms: 30, output: {x: 1}}", world) == []


def test_an_entity_is_where_its_last_move_took_it() -> None:
    world = observed(
        read(
            started(entity=EntityRef("e1", "lead")),
            e.EntityMoved(0, 0, "entered", edge="start"),
            e.EntityMoved(0, 0, "moved", section="won", completed_as="success", entity_type="customer"),
        )
    )
    journey = "journey: [{event: entered}, {section: won}]"
    assert check(f"entity: {{section: won, type: customer, completed_as: success, node: null, {journey}}}", world) == []
    assert len(check("entity: {edge: start, journey: [{event: entered}]}", world)) == 2
