"""The first two levels of failure (2.6): the action's own retries, then the whole task again."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from tests.unit.runtime.attempts import FACTS, attempt, cel, fail, failure, mock, result, step, task
from treadle.actions.mock import mock_reply
from treadle.actions.protocol import Call, Done, Reply, failed
from treadle.actions.registry import Registry
from treadle.runtime.execute.task import Invoke

DOWN = {"error": {"message": "down", "retryable": True}}
WRONG = {"error": {"message": "wrong"}}
FINE = {"output": {"ok": True}}


class Script:
    """Answers successive tries of a step with successive outcomes; the last one repeats."""

    def __init__(self, **outcomes: list[dict[str, Any]]) -> None:
        self.outcomes = outcomes
        self.calls: list[str] = []
        self.keys: list[str] = []

    def __call__(self, invoke: Invoke) -> Reply | None:
        ref = invoke.call.step
        if ref not in self.outcomes:
            return None
        done = self.calls.count(ref)
        self.calls.append(ref)
        self.keys.append(invoke.call.key)
        return mock_reply(self.outcomes[ref][min(done, len(self.outcomes[ref]) - 1)], invoke.call)


def policy(max_attempts: int = 3, **fields: Any) -> dict[str, Any]:
    return {"retry_policy": {"max_attempts": max_attempts, "initial_delay_ms": 100, **fields}}


@pytest.mark.parametrize(
    ("outcomes", "execution", "tries", "ok", "elapsed_ms"),
    [
        ([DOWN], {}, 1, False, 0),
        ([DOWN, FINE], policy(), 2, True, 100),
        ([DOWN, DOWN, FINE], policy(backoff="exponential"), 3, True, 300),
        ([DOWN, DOWN, FINE], policy(backoff="linear", max_delay_ms=150), 3, True, 250),
        ([DOWN], policy(), 3, False, 200),
        ([WRONG, FINE], policy(), 1, False, 0),
        ([DOWN, WRONG, FINE], policy(), 2, False, 100),
        ([WRONG, FINE], policy(retryable_errors=["TASK_FAILED"]), 2, True, 100),
        ([DOWN, FINE], policy(retryable_errors=["RATE_LIMITED"]), 1, False, 0),
        ([DOWN, FINE], policy(retryable_errors=[]), 1, False, 0),
    ],
)
def test_an_action_retries_what_its_policy_calls_retryable(
    outcomes: Any, execution: Any, tries: int, ok: bool, elapsed_ms: int
) -> None:
    script = Script(a=outcomes)
    outcome, took = attempt(mock("a", execution=execution), hook=script)
    assert (len(script.calls), outcome.error is None, took) == (tries, ok, elapsed_ms)
    assert outcome.tries == 0, "action retries are invisible"
    assert len(set(script.keys)) == 1, "and carry the same idempotency key"


def test_a_task_that_starts_over_carries_the_same_key() -> None:
    script = Script(a=[DOWN, FINE])
    outcome, _ = attempt(task(mock("a", on_failure="retry"), retry={"max_attempts": 2}), hook=script)
    assert (outcome.error, outcome.tries) == (None, 1)
    assert len(script.keys) == 2
    assert len(set(script.keys)) == 1


def test_a_status_may_be_named_among_retryable_errors() -> None:
    registry, statuses = Registry(), [418, 200]

    class Teapot:
        name = "teapot"

        def run(self, call: Call) -> Reply:
            status = statuses.pop(0)
            return Done({}) if status == 200 else failed("teapot", "HTTP", details={"status": status})

    registry.register(Teapot())
    assert result(step("a", "teapot", execution=policy(retryable_errors=["418"])), registry=registry) == {}


@pytest.mark.parametrize(("jitter", "elapsed_ms"), [(None, 100), (lambda: 0.5, 105), (lambda: -1.0, 90)])
def test_jitter_is_given_not_drawn(jitter: Any, elapsed_ms: int) -> None:
    hook = Script(a=[DOWN, FINE])
    definition = mock("a", execution=policy(backoff="exponential"))
    assert attempt(definition, hook=hook, facts=replace(FACTS, jitter=jitter))[1] == elapsed_ms


def test_an_action_that_does_not_answer_in_time_is_retryable_infrastructure() -> None:
    slow = step("call", "mock", {"after_ms": 500}, execution={"timeout_ms": 200})
    outcome, took = attempt(slow)
    assert outcome.error is not None
    assert (outcome.error.kind, outcome.error.retryable, took) == ("TASK_TIMEOUT", True, 200)
    assert outcome.error.message == "step 'call': the mock action did not answer within 200 ms"


@pytest.mark.parametrize(("after_ms", "ok"), [(199, True), (200, True), (201, False)])
def test_an_answer_at_the_last_instant_is_in_time(after_ms: int, ok: bool) -> None:
    slow = step("call", "mock", {"after_ms": after_ms}, execution={"timeout_ms": 200})
    assert (attempt(slow)[0].error is None) is ok


def test_every_try_of_an_action_has_the_whole_timeout() -> None:
    hook = Script(a=[{"after_ms": 500}, {"after_ms": 150, **FINE}])
    outcome, took = attempt(mock("a", execution={"timeout_ms": 200, **policy()}), hook=hook)
    assert (outcome.output, took) == ({"ok": True}, 200 + 100 + 150)


RETRY = {"max_attempts": 3, "initial_delay_ms": 50}


@pytest.mark.parametrize(
    ("on_failure", "retry", "outcomes", "tries", "ok", "elapsed_ms"),
    [
        ("abort", RETRY, [WRONG, FINE], 0, False, 0),
        ("retry", None, [WRONG, FINE], 0, False, 0),
        ("retry", {"max_attempts": 1}, [WRONG, FINE], 0, False, 0),
        ("retry", RETRY, [WRONG, FINE], 1, True, 50),
        ("retry", RETRY, [DOWN, WRONG, FINE], 2, True, 100),
        ("retry", RETRY, [WRONG], 2, False, 100),
        ("continue", RETRY, [WRONG, FINE], 0, True, 0),
    ],
)
def test_only_a_step_that_says_retry_starts_the_task_over(
    on_failure: str, retry: Any, outcomes: Any, tries: int, ok: bool, elapsed_ms: int
) -> None:
    script = Script(check=outcomes)
    definition = task(mock("first"), mock("check", on_failure=on_failure), retry=retry)
    outcome, took = attempt(definition, hook=script)
    assert (outcome.tries, outcome.error is None, took) == (tries, ok, elapsed_ms)
    assert len(script.calls) == tries + 1


def test_starting_over_discards_state_and_requests_and_begins_at_the_first_step() -> None:
    script = Script(check=[WRONG, FINE], write=[FINE])
    definition = task(
        mock("write", output_mapping={"state.n": {"cel": "has(state.n) ? state.n + 1 : 1"}}),
        step("tell", "emit", {"type": "try", "data": "$.state.n"}),
        mock("check", on_failure="retry"),
        step("end", "set", {"values": {"n": "$.state.n"}}, output_mapping={"output.n": "$.n"}),
        retry=RETRY,
    )
    outcome, _ = attempt(definition, hook=script)
    assert outcome.output == {"n": 1}
    assert [request.data for request in outcome.requests] == [1]  # type: ignore[union-attr]
    assert script.calls == ["write", "check", "write", "check"]
    assert script.keys == ["r1:7:1:write", "r1:7:1:check"] * 2, "one key per visit and step, whatever starts over"


def test_action_retries_and_task_retries_nest() -> None:
    script = Script(a=[DOWN])
    definition = task(mock("a", on_failure="retry", execution=policy(2)), retry=RETRY)
    outcome, took = attempt(definition, hook=script)
    assert (len(script.calls), outcome.tries, took) == (6, 2, 3 * 100 + 2 * 50)
    assert outcome.error is not None
    assert outcome.error.retryable, "a node retry may still help"


def test_continue_records_the_error_and_goes_on() -> None:
    definition = task(
        fail("fetch", error={"kind": "GONE", "message": "no such page"}, on_failure="continue"),
        step("end", "set", {"values": {"errors": "$.state._errors"}}, output_mapping={"output.e": "$.errors"}),
    )
    recorded = result(definition)["e"]["fetch"]
    assert (recorded["kind"], recorded["message"], recorded["node"]) == ("GONE", "no such page", "review")


def test_a_later_condition_can_ask_for_a_recorded_error() -> None:
    definition = task(
        fail("fetch", on_failure="continue"),
        mock(
            "fall_back",
            {"from": "cache"},
            when={"type": "exists", "field": "$.state._errors.fetch"},
            output_mapping={"output.from": "$.from"},
        ),
    )
    assert result(definition) == {"from": "cache"}


def test_an_error_that_finds_no_place_fails_the_task() -> None:
    definition = task(
        mock("occupy", {"v": 5}, output_mapping={"state._errors": "$.v"}), fail("a", on_failure="continue")
    )
    assert failure(definition).message == "a broke"


def test_a_failed_task_asks_nothing_of_its_run() -> None:
    outcome, _ = attempt(task(step("tell", "emit", {"type": "begun"}), fail("end")))
    assert outcome.requests == ()


@pytest.mark.parametrize("on_failure", ["retry", "continue"])
def test_a_step_told_to_fail_by_its_condition_has_failed_like_any_other(on_failure: str) -> None:
    told = mock("a", when={"if": cel("true"), "then": "fail"}, on_failure=on_failure)
    outcome, _ = attempt(task(told, retry=RETRY))
    assert (outcome.tries, outcome.error is None) == ((2, False) if on_failure == "retry" else (0, True))


def test_an_error_says_where_it_happened() -> None:
    error = failure(task(mock("a"), fail("b")))
    assert (error.node, error.path, error.details) == ("review", "root.review.0", {"step": "b"})


NUMBER = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


@pytest.mark.parametrize(
    ("schemas", "input", "output", "message"),
    [
        ({"input_schema": NUMBER}, {"n": "x"}, {"n": 1}, "input of node 'review': $.n: "),
        ({"output_schema": NUMBER}, {}, {"n": "x"}, "output of node 'review': $.n: "),
        ({"output_schema": NUMBER}, {}, None, "output of node 'review': $: "),
    ],
)
def test_a_schema_violation_is_a_business_failure_and_starts_nothing_over(
    schemas: Any, input: Any, output: Any, message: str
) -> None:
    script = Script(a=[{"output": output}])
    definition = task(mock("a", on_failure="retry"), retry=RETRY, **schemas)
    outcome, _ = attempt(definition, input, hook=script)
    assert outcome.error is not None
    assert (outcome.error.kind, outcome.error.retryable, outcome.tries) == ("SCHEMA", False, 0)
    assert outcome.error.message.startswith(message)
    assert len(script.calls) == (0 if "input_schema" in schemas else 1)


def test_an_output_that_breaks_its_schema_takes_its_requests_with_it() -> None:
    outcome, _ = attempt(task(step("tell", "emit", {"type": "x"}), mock("end"), output_schema=NUMBER))
    assert outcome.requests == ()


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (mock("a", input_mapping={"x": {"cel": "input.n / 0"}}), "input_mapping of step 'a': "),
        (mock("a", {"v": 1}, output_mapping={"output.x": {"cel": "output.v / 0"}}), "output of step 'a': "),
        (mock("a", {"v": 1}, output_mapping={"state.x": "$.v", "state.x.y": "$.v"}), "output of step 'a': "),
        (mock("a", when=cel("nobody > 1")), "step 'a', expr, column 1: unknown name"),
        (mock("a", output_mapping={"input.x": "$.v"}), "step 'a', input.x: input is never writable"),
        (step("a", "tempalte"), "did you mean 'template'?"),
    ],
)
def test_a_mistake_in_a_definition_is_an_error_and_never_an_exception(bad: Any, message: str) -> None:
    error = failure(bad, {"n": 1})
    assert error.retryable is False
    assert message in error.message


def test_a_broken_mapping_is_a_failure_of_its_step() -> None:
    broken = mock("a", input_mapping={"x": {"cel": "input.n / 0"}}, on_failure="continue")
    assert result(task(broken, mock("b", {"v": 1}, output_mapping={"output.v": "$.v"})), {"n": 1}) == {"v": 1}
