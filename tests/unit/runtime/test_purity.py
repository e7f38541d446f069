"""Properties of the pipeline, for any task."""

from __future__ import annotations

import copy
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.runtime.attempts import FACTS, cel, step, task
from treadle.actions.registry import Registry
from treadle.model.definition import Task
from treadle.runtime.execute.drive import drive
from treadle.runtime.execute.task import TaskOutcome, run_task

values = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.sampled_from(["", "a", "$.input.a"]),
    lambda below: st.lists(below, max_size=3) | st.dictionaries(st.sampled_from("abc"), below, max_size=3),
    max_leaves=6,
)
sources = st.one_of(
    values,
    st.sampled_from(["$", "$.a", "$.a.b", "$.input", "$.input.a", "$.state", "$.state.a", "$.output.a"]),
    st.sampled_from(["state.a", "input.a + 1", "output", "1 / 0", "has(state.b) ? state.b : input"]).map(
        lambda expr: {"cel": expr}
    ),
)
targets = st.sampled_from(["state.a", "state.a.b", "state.b[0]", "output.a", "output.a.c", "output.b"])
conditions = st.sampled_from(["true", "false", "input.a == 1", "state.a > 0", "has(state._errors)"]).map(cel)
verbs = st.sampled_from(["continue", "skip", "succeed", "fail"])
gates = st.one_of(st.none(), conditions, st.fixed_dictionaries({"if": conditions, "then": verbs, "else": verbs}))
configs = st.one_of(
    st.fixed_dictionaries({"output": values, "after_ms": st.integers(0, 50)}).map(lambda c: ("mock", c)),
    st.fixed_dictionaries({"error": st.fixed_dictionaries({"retryable": st.booleans()})}).map(lambda c: ("mock", c)),
    st.dictionaries(st.sampled_from("abc"), sources, max_size=2).map(lambda v: ("set", {"values": v})),
    conditions.map(lambda c: ("assert", {"condition": c})),
    sources.map(lambda data: ("emit", {"type": "t", "data": data})),
)
retries = st.none() | st.fixed_dictionaries({"max_attempts": st.integers(1, 3), "initial_delay_ms": st.integers(0, 9)})


@st.composite
def tasks(draw: st.DrawFn) -> Task:
    steps = []
    for ref in "xyz"[: draw(st.integers(1, 3))]:
        kind, config = draw(configs)
        fields: dict[str, Any] = {
            "when": draw(gates),
            "on_failure": draw(st.sampled_from(["abort", "retry", "continue"])),
            "input_mapping": draw(st.none() | st.dictionaries(st.sampled_from("abc"), sources, max_size=2)),
            "output_mapping": draw(st.none() | st.dictionaries(targets, sources, max_size=3)),
            "execution": {"timeout_ms": draw(st.none() | st.integers(1, 60)), "retry_policy": draw(retries)},
        }
        steps.append(step(ref, kind, config, **fields))
    return task(*steps, retry=draw(retries))


@pytest.mark.slow
@given(tasks(), values)
def test_any_task_ends_with_an_outcome_changes_nothing_and_does_the_same_again(definition: Task, input: Any) -> None:
    written, given_input = msgspec.json.encode(definition), copy.deepcopy(input)
    first = drive(run_task(definition, input, FACTS, Registry()))
    again = drive(run_task(definition, input, FACTS, Registry()))
    assert isinstance(first[0], TaskOutcome)
    assert first == again
    assert msgspec.json.encode(definition) == written
    assert input == given_input
    msgspec.msgpack.encode(first[0])


def containers(value: Any) -> set[int]:
    """The identities of every object and array in a value."""
    if isinstance(value, dict):
        return {id(value)}.union(*map(containers, value.values()))
    return {id(value)}.union(*map(containers, value)) if isinstance(value, list) else set()


@pytest.mark.slow
@given(tasks(), values)
def test_an_output_shares_nothing_with_input_or_definition(definition: Task, input: Any) -> None:
    outcome, _ = drive(run_task(definition, input, FACTS, Registry()))
    given = [input] + [part for each in definition.steps for part in (each.action.config, each.input_mapping)]
    given += [each.output_mapping for each in definition.steps]
    assert not containers(outcome.output) & set[int]().union(*map(containers, given))
