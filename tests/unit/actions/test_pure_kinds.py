"""`set`, `assert`, `template`: kinds that only compute."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.actions.calls import error, output

SCORE = {
    "type": "comparison",
    "left": {"field": "$.state.score"},
    "operator": ">=",
    "right": {"literal": 80},
}


@pytest.mark.parametrize(
    ("values", "result"),
    [
        ({"a": 1, "b": None}, {"a": 1, "b": None}),
        ({"who": "$.input.name", "n": "$.state.n"}, {"who": "ann", "n": 2}),
        ({"next": {"cel": "state.n + 1"}}, {"next": 3}),
        ({"text": {"literal": "$.input.name"}}, {"text": "$.input.name"}),
        ({"missing": "$.input.nobody"}, {"missing": None}),
        ({"deep.down": 1}, {"deep": {"down": 1}}),
    ],
)
def test_set_evaluates_sources_over_the_steps_context(values: dict[str, Any], result: Any) -> None:
    assert output("set", {"values": values}, {"name": "ann"}, state={"n": 2}) == result


def test_set_without_values_passes_its_input_on() -> None:
    assert output("set", {}, {"a": [1]}) == {"a": [1]}


def test_set_fails_when_a_computed_value_has_none() -> None:
    problem = error("set", {"values": {"x": {"cel": "input.a / 0"}}}, {"a": 1})
    assert (problem.kind, problem.retryable) == ("TASK_FAILED", False)
    assert "input.a / 0" in problem.message


def test_assert_holds() -> None:
    assert output("assert", {"condition": SCORE}, state={"score": 80}) == {}


@pytest.mark.parametrize(
    ("state", "message", "said"),
    [
        ({"score": 79}, None, "assertion failed (state.score >= 80)"),
        ({"score": 79}, "too low", "too low (state.score >= 80)"),
        ({}, None, "assertion failed (state.score >= 80, unevaluable: "),
    ],
)
def test_a_broken_assertion_is_a_business_failure_that_names_its_condition(
    state: Any, message: str | None, said: str
) -> None:
    problem = error("assert", {"condition": SCORE, "message": message}, state=state)
    assert (problem.kind, problem.retryable) == ("TASK_FAILED", False)
    assert problem.message.startswith(said)


def test_assert_sees_the_steps_input_and_the_tasks_output() -> None:
    cel = {"type": "cel", "expr": "input.n == output.n"}
    assert output("assert", {"condition": cel}, {"n": 1}, output={"n": 1}) == {}


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("Dear {{ name }},\n", "Dear Ann,\n"),
        ("{% for i in items %}{{ loop.index }}={{ i }};{% endfor %}", "1=a;2=b;"),
        ("{{ input.name }} {{ state.n }}", "Ann 2"),
        ("{{ name.upper() }} {{ items | join('+') }} {{ items | tojson }}", 'ANN a+b ["a", "b"]'),
        ("<{{ html }}>", "<<b>>"),
        ("{{ nobody | default('nobody') }}", "nobody"),
    ],
)
def test_a_template_renders_the_steps_input(template: str, text: str) -> None:
    values = {"name": "Ann", "items": ["a", "b"], "html": "<b>"}
    assert output("template", {"template": template}, values, state={"n": 2}) == {"text": text}


def test_a_template_of_an_input_that_is_no_object_finds_it_as_input() -> None:
    assert output("template", {"template": "{{ input | length }}"}, [1, 2]) == {"text": "2"}


@pytest.mark.parametrize(
    ("template", "reason"),
    [
        ("Dear {{ nmae }}", "`nmae` is undefined"),
        ("{{ name", "syntax error"),
        ("{% for i in range(99999) %}{% for j in range(99999) %}{{ j }}{% endfor %}{% endfor %}", "fuel"),
        ("{% include '/etc/passwd' %}", "non-existing template"),
        ("{{ name.__class__ }}", "undefined"),
    ],
)
def test_a_bad_template_is_a_business_failure_with_its_reason(template: str, reason: str) -> None:
    problem = error("template", {"template": template}, {"name": "Ann"})
    assert (problem.kind, problem.retryable) == ("TASK_FAILED", False)
    assert reason in problem.message
    assert "\n" not in problem.message


def test_a_template_cannot_change_what_it_is_shown() -> None:
    shown = {"list": [1], "object": {}}
    output("template", {"template": "{{ list.append(2) }}{{ object.update({'x': 1}) }}"}, shown)
    assert shown == {"list": [1], "object": {}}
