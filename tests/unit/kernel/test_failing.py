"""What a failure leads to, in the order of 2.6: backoff, handlers, the branch, the run; and the operator's retry."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from typing import Any

import pytest

from tests.driving import TASK, Driven, graph_of
from treadle.model import commands as c
from treadle.model import events as e
from treadle.model.errors import Error
from treadle.model.ids import TokenId

Json = Any


def alone(**fields: Json) -> Driven:
    return Driven(graph_of({"nodes": {"a": {**TASK, **fields}}})).start()


BACKOFFS: list[tuple[dict[str, Json], list[int]]] = [
    ({"max_attempts": 3}, [0, 0]),
    ({"max_attempts": 3, "initial_delay_ms": 10}, [10, 10]),
    ({"max_attempts": 4, "backoff": "linear", "initial_delay_ms": 10}, [10, 20, 30]),
    ({"max_attempts": 5, "backoff": "exponential", "initial_delay_ms": 10}, [10, 20, 40, 80]),
    ({"max_attempts": 5, "backoff": "exponential", "initial_delay_ms": 10, "max_delay_ms": 25}, [10, 20, 25, 25]),
]


@pytest.mark.parametrize(("retry", "delays"), BACKOFFS)
def test_each_try_is_delayed_as_the_policy_says_and_counted(retry: dict[str, Json], delays: list[int]) -> None:
    driven = alone(retry=retry)
    seen = []
    for attempt in range(1, len(delays) + 1):
        assert driven.token("a").attempt == attempt
        driven.fail("a", retryable=True)
        seen.append(next(iter(driven.state.timers.values())).due - driven.now)
        driven.fire("retry")
    assert seen == delays
    driven.fail("a", retryable=True)
    assert driven.state.error is not None and driven.state.error.attempts == len(delays) + 1


def test_jitter_follows_from_the_run_s_seed_alone() -> None:
    retry = {"max_attempts": 2, "backoff": "exponential", "initial_delay_ms": 1000}

    def delay(seed: int) -> int:
        driven = Driven(graph_of({"nodes": {"a": {**TASK, "retry": retry}}})).start(seed=seed)
        driven.fail("a", retryable=True)
        return next(iter(driven.state.timers.values())).due - driven.now

    assert delay(0) == 1000
    assert delay(7) == delay(7) and len({delay(seed) for seed in range(1, 30)}) > 10
    assert all(900 <= delay(seed) <= 1100 for seed in range(1, 30))


@pytest.mark.parametrize("tries", [1, 2, 3])
def test_a_failure_says_how_often_the_visit_was_tried_again(tries: int) -> None:
    driven = alone(retry={"max_attempts": tries})
    for _ in range(tries - 1):
        driven.fail("a", retryable=True)
        driven.fire("retry")
    events = driven.fail("a", retryable=True).events
    assert [event.retry_count for event in events if isinstance(event, e.TokenFailed)] == [tries - 1]


def test_an_error_that_is_not_retryable_is_never_tried_again() -> None:
    driven = alone(retry={"max_attempts": 3})
    driven.fail("a", retryable=False)
    assert driven.state.status == "failed" and not driven.count("token.retry_scheduled")


def test_task_retries_count_together_with_node_attempts() -> None:
    driven = alone(retry={"max_attempts": 2})
    driven.do(c.FailAttempt(TokenId(1), 1, Error("TASK_FAILED", "x", retryable=True), tries=2))
    driven.fire("retry")
    driven.do(c.FailAttempt(TokenId(1), 2, Error("TASK_FAILED", "x"), tries=1))
    assert driven.state.error is not None and driven.state.error.attempts == 5


def test_a_missing_answer_is_a_retryable_timeout() -> None:
    driven = alone(timeout_ms=50, retry={"max_attempts": 2})
    events = driven.fire("attempt").events
    assert [x.error.kind for x in events if isinstance(x, e.TokenRetryScheduled) and x.error] == ["TASK_TIMEOUT"]
    driven.fire("retry")
    driven.fire("attempt")
    assert driven.count("token.timed_out") == 1 and driven.state.status == "failed"


HANDLED = graph_of(
    {
        "nodes": {"a": TASK, "next": TASK, "handler": TASK, "both": TASK},
        "transitions": [
            {"from": "a", "to": "next"},
            {"from": "a", "to": "handler", "on": "failure"},
            {"from": "a", "to": "both", "on": "always"},
        ],
    }
)


def test_an_unconditional_transition_is_no_failure_edge() -> None:
    driven = Driven(HANDLED).start()
    driven.fail("a")
    assert [len(driven.tokens(ref)) for ref in ("next", "handler", "both")] == [0, 1, 1]


def test_a_handler_sees_where_and_how_often_it_failed() -> None:
    driven = Driven(HANDLED).start()
    driven.fail("a", kind="BOOM")
    last = driven.token("handler").last_error
    assert last is not None and (last.kind, last.node, last.path, last.attempts) == ("BOOM", "a", "root", 1)
    driven.finish("handler")
    driven.finish("both")
    assert driven.state.status == "completed"


def test_a_failure_beyond_its_handlers_fails_the_run_and_withdraws_the_others() -> None:
    driven = Driven(graph_of({"nodes": {"a": TASK, "b": TASK}, "start": ["a", "b"]})).start()
    driven.fail("a")
    assert driven.state.status == "failed" and driven.count("token.cancelled") == 1


def test_the_others_may_finish_first() -> None:
    document = {"nodes": {"a": TASK, "b": TASK}, "start": ["a", "b"], "on_unhandled_failure": "let_others_finish"}
    driven = Driven(graph_of(document)).start()
    driven.fail("a", kind="FIRST")
    assert driven.state.status == "running"
    driven.fail("b", kind="SECOND")
    assert driven.state.error is not None and driven.state.error.kind == "FIRST"


def test_an_operator_retries_the_same_visit_and_the_run_is_reopened() -> None:
    driven = alone()
    driven.fail("a")
    driven.do(c.RetryToken(TokenId(1)))
    token = driven.token("a")
    assert (driven.state.status, token.id, token.state, token.attempt) == ("running", 1, "executing", 2)
    assert driven.state.error is None
    driven.finish("a")
    assert driven.state.status == "completed"


@pytest.mark.parametrize("state", ["executing", "completed", "cancelled"])
def test_only_a_failed_visit_can_be_retried(state: str) -> None:
    driven = Driven(graph_of({"nodes": {"a": TASK, "b": TASK}, "start": ["a", "b"]})).start()
    if state == "completed":
        driven.finish("a")
    elif state == "cancelled":
        driven.do(c.CancelToken(TokenId(1)))
    rejection = driven.do(c.RetryToken(TokenId(1))).rejection
    assert rejection is not None and rejection.kind == "INVALID_STATE"


def test_a_visit_whose_join_has_fired_cannot_be_retried() -> None:
    transitions = [
        {"id": "t", "from": "a", "to": "b", "spawn_count": 2},
        {"from": "b", "to": "z", "synchronization": {"sibling_group": "t"}},
    ]
    driven = Driven(graph_of({"nodes": {"a": {}, "b": TASK, "z": TASK}, "transitions": transitions})).start()
    driven.fail("b", 0)
    failed = driven.token("b", 0).id
    driven.finish("b", 1)
    rejection = driven.do(c.RetryToken(failed)).rejection
    assert rejection is not None and rejection.kind == "INVALID_STATE" and "join" in rejection.message


def test_a_routing_failure_names_the_node_and_what_to_do() -> None:
    transitions = [{"from": "a", "to": "b", "condition": "input.go == true"}]
    document: dict[str, Json] = {"nodes": {"a": {}, "b": {}}, "transitions": transitions}
    driven = Driven(graph_of(document)).start({"go": False})
    error = driven.state.error
    assert error is not None and error.kind == "NO_MATCHING_TRANSITION" and "'a'" in error.message
    document["nodes"]["a"] = {"on_no_match": "end"}
    assert Driven(graph_of(document)).start({"go": False}).state.status == "completed"


def test_a_loop_is_followed_so_often_and_then_does_not_match() -> None:
    transitions = [{"from": "a", "to": "a", "loop": {"max_iterations": 3}}, {"from": "a", "to": "z", "priority": 2}]
    driven = Driven(graph_of({"nodes": {"a": TASK, "z": {}}, "start": "a", "transitions": transitions})).start()
    rounds = 0
    while not driven.ended:
        driven.finish("a")
        rounds += 1
    assert rounds == 4 and driven.state.status == "completed"


@pytest.fixture
def patience() -> Iterator[None]:
    """A decision that never comes is a failure, not a hanging suite."""

    def ring(*_: object) -> None:
        raise AssertionError("no decision within two seconds")

    signal.signal(signal.SIGALRM, ring)
    signal.alarm(2)
    yield
    signal.alarm(0)


@pytest.mark.usefixtures("patience")
def test_a_failed_fan_in_routed_back_into_its_own_join_obeys_the_loop_s_limit() -> None:
    sync = {"sibling_group": "a", "strategy": {"cel": "arrived + failed >= 2"}}
    back = {"from": "a", "to": "a", "on": "failure", "loop": {"max_iterations": 1}, "synchronization": sync}
    driven = Driven(graph_of({"nodes": {"a": TASK}, "start": "a", "transitions": [back]})).start()
    driven.fail("a")
    assert driven.state.error is not None and driven.state.error.kind == "QUORUM_UNREACHABLE"
    assert driven.count("join.failed") == 1
