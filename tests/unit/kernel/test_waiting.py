"""Signals, triggers, mutexes, pauses and deadlines at their edges (2.7, A2, A4, A9)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.driving import TASK, Driven, graph_of, problems
from treadle.model import commands as c
from treadle.model import effects as x
from treadle.model.ids import TimerId, TokenId

Json = Any


def waiting_for(**config: Json) -> Driven:
    nodes = {"hold": TASK, "a": {"action": {"kind": "signal", "name": "s", **config}}, "beside": TASK}
    transitions = [{"from": "hold", "to": "a"}]
    return Driven(graph_of({"nodes": nodes, "transitions": transitions, "start": ["hold", "beside"]})).start()


@pytest.mark.parametrize(("buffer", "age", "taken"), [(None, 9999, 1), (100, 100, 1), (100, 101, 0), ("none", 0, 0)])
def test_a_waiter_takes_an_early_signal_only_as_old_as_it_says(buffer: Json, age: int, taken: int) -> None:
    driven = waiting_for(**({"buffer": buffer} if buffer is not None else {}))
    driven.do(c.SendSignal("s", None, 1, "1"))
    driven.now += age
    driven.finish("hold")
    assert driven.count("signal.taken") == taken


def test_a_signal_that_comes_while_it_waits_is_taken_whatever_the_buffer() -> None:
    driven = waiting_for(buffer="none")
    driven.finish("hold")
    driven.do(c.SendSignal("s", None, 1, "1"))
    assert driven.count("signal.taken") == 1


@pytest.mark.parametrize(
    ("wanted", "sent", "taken"), [(None, "k", 1), ("k", "k", 1), ("k", "other", 0), ("k", None, 0), (1, "1", 0)]
)
def test_a_waiter_with_a_key_takes_only_a_signal_with_that_key(wanted: Json, sent: Json, taken: int) -> None:
    driven = waiting_for(**({"key": {"literal": wanted}} if wanted is not None else {}))
    driven.finish("hold")
    driven.do(c.SendSignal("s", sent, 1, "1"))
    assert driven.count("signal.taken") == taken


def test_one_signal_is_taken_by_the_one_that_has_waited_longest() -> None:
    document = {
        "nodes": {"a": {"action": {"kind": "signal", "name": "s"}}, "b": {"action": {"kind": "signal", "name": "s"}}}
    }
    driven = Driven(graph_of({**document, "start": ["b", "a"]})).start()
    driven.do(c.SendSignal("s", None, 1, "1"))
    assert [len(driven.tokens(ref)) for ref in ("b", "a")] == [0, 1]


def test_a_repeated_signal_is_received_once() -> None:
    driven = waiting_for()
    for _ in range(3):
        driven.do(c.SendSignal("s", None, 1, "same"))
    assert driven.count("signal.received") == 1


def offered(**fields: Json) -> Driven:
    return Driven(
        graph_of(
            {
                "nodes": {"offer": {}, "b": TASK, "c": TASK},
                "transitions": [
                    {"from": "offer", "to": "b", "trigger": {"signal": "go"}, **fields},
                    {"from": "offer", "to": "c", "trigger": {"after_ms": 100}},
                ],
            }
        )
    ).start()


def test_the_first_trigger_wins_and_the_other_course_is_withdrawn() -> None:
    driven = offered()
    driven.do(c.SendSignal("go", None, 1, "1"))
    assert len(driven.tokens("b")) == 1 and not driven.state.timers and not problems(driven)
    other = offered()
    other.fire("trigger")
    other.do(c.SendSignal("go", None, 1, "1"))
    assert len(other.tokens("c")) == 1 and not other.tokens("b")


def test_a_trigger_that_does_not_interrupt_starts_a_token_beside_once_per_signal() -> None:
    driven = offered(interrupting=False)
    for number in range(3):
        driven.do(c.SendSignal("go", None, 1, str(number)))
    assert len(driven.tokens("b")) == 3 and driven.token("offer").state == "waiting"


def test_a_trigger_whose_condition_is_false_takes_no_signal() -> None:
    driven = offered(condition="input.never == true")
    driven.do(c.SendSignal("go", None, 1, "1"))
    assert driven.token("offer").state == "waiting" and not driven.count("signal.taken")


MUTEX = {**TASK, "mutex": "m"}


def test_a_mutex_admits_one_visit_at_a_time_in_order_of_arrival() -> None:
    driven = Driven(graph_of({"nodes": {"a": MUTEX, "b": MUTEX, "c": MUTEX}, "start": ["b", "a", "c"]})).start()
    begun = []
    while not driven.ended:
        inside = [token for token in driven.state.tokens.values() if token.state == "executing"]
        assert len(inside) == 1, driven.log()
        begun.append(inside[0].node)
        driven.finish(inside[0].node)
    assert begun == ["b", "a", "c"]


@pytest.mark.parametrize("end", ["fails", "is cancelled", "times out"])
def test_a_mutex_is_freed_however_its_holder_ends(end: str) -> None:
    nodes = {"a": {**MUTEX, "timeout_ms": 10}, "b": MUTEX, "h": {}}
    document = {"nodes": nodes, "start": ["a", "b"], "transitions": [{"from": "a", "to": "h", "on": "failure"}]}
    driven = Driven(graph_of(document)).start()
    assert driven.token("b").waiting == "mutex"
    {"fails": lambda: driven.fail("a"), "times out": lambda: driven.fire("attempt")}.get(
        end, lambda: driven.do(c.CancelToken(TokenId(1)))
    )()
    assert driven.token("b").state == "executing"


def test_a_mutex_is_held_across_a_retry() -> None:
    nodes = {"a": {**MUTEX, "retry": {"max_attempts": 2, "initial_delay_ms": 10}}, "b": MUTEX}
    driven = Driven(graph_of({"nodes": nodes, "start": ["a", "b"]})).start()
    driven.fail("a", retryable=True)
    assert driven.token("b").waiting == "mutex"
    driven.fire("retry")
    driven.finish("a")
    assert driven.token("b").state == "executing"


CHAIN = graph_of({"nodes": {"a": {**TASK, "timeout_ms": 100}, "b": TASK}, "transitions": [{"from": "a", "to": "b"}]})


def test_a_paused_run_records_results_and_routes_them_when_it_resumes() -> None:
    driven = Driven(CHAIN).start()
    driven.do(c.PauseRun())
    assert [event.type for event in driven.finish("a").events] == ["callback.received"] and not driven.tokens("b")
    driven.do(c.ResumeRun())
    assert driven.token("b").state == "executing"


def test_a_pause_freezes_every_timer_by_its_own_length() -> None:
    driven = Driven(CHAIN).start()
    due = next(iter(driven.state.timers.values())).due
    driven.now += 30
    driven.do(c.PauseRun())
    driven.now += 500
    assert not driven.do(c.FireTimer(TimerId(1))).events
    effects = driven.do(c.ResumeRun()).effects
    assert [timer.due for timer in driven.state.timers.values()] == [due + 500]
    assert x.SetTimer(TimerId(1), due + 500) in effects


def test_a_timer_fires_only_when_due_and_only_once() -> None:
    driven = Driven(CHAIN).start()
    early = driven.do(c.FireTimer(TimerId(1)))
    assert early.rejection is not None and not early.events
    driven.fire("attempt")
    assert not driven.do(c.FireTimer(TimerId(1))).events


@pytest.mark.parametrize(("policy", "status"), [("human_gate", "paused"), ("fail", "failed"), ("cancel", "timed_out")])
def test_a_run_s_deadline_follows_its_policy(policy: str, status: str) -> None:
    driven = Driven(graph_of({"nodes": {"a": TASK}, "timeout_ms": 100, "on_timeout": policy})).start()
    driven.fire("run")
    assert driven.state.status == status and not problems(driven)


def test_extending_a_deadline_resumes_the_run_with_a_new_one() -> None:
    driven = Driven(graph_of({"nodes": {"a": TASK}, "timeout_ms": 100})).start()
    driven.fire("run")
    driven.do(c.ExtendTimeout(250))
    assert driven.state.status == "running"
    assert [(t.purpose, t.due) for t in driven.state.timers.values()] == [("run", driven.now + 250)]


def test_a_visit_that_is_skipped_says_nothing_more_of_what_it_waited_for() -> None:
    nodes = {"a": {"action": {"kind": "signal", "name": "s"}}, "b": TASK, "z": {"join": "all_inbound"}}
    transitions = [{"from": "a", "to": "z"}, {"from": "b", "to": "z"}]
    driven = Driven(graph_of({"nodes": nodes, "transitions": transitions})).start()
    waits = driven.token("a")
    assert waits.detail["signal"] == "s"
    driven.do(c.PauseRun())
    assert driven.do(c.SkipToken(waits.id, {})).rejection is None
    driven.do(c.ResumeRun())
    assert (driven.token("a").waiting, driven.token("a").detail) == ("siblings", None), driven.log()
    driven.finish("b")
    assert driven.state.status == "completed" and not problems(driven)
