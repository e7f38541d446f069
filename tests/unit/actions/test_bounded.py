"""Templates within bounds: a bomb fails its attempt and takes nothing with it."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from tests.unit.actions.calls import error, output
from treadle.actions import bounded
from treadle.language import load_text

BOMBS = {
    "doubling": "{% set n = namespace(x='a') %}{% for i in range(60) %}{% set n.x = n.x ~ n.x %}{% endfor %}{{ n.x }}",
    "a wide number": "{{ '%1000000000d'|format(1) }}",
    "an indent": "{{ 'x\\ny'|indent(1000000000000) }}",
    "a long text": "{{ 'a' * 5000000 }}",
    "the same value again and again": "{% for i in range(100000) %}{{ big }}{% endfor %}",
    "holes that add up": "{{ big }}" * 10,
}


@pytest.fixture(autouse=True)
def _tidy() -> Iterator[None]:
    yield
    bounded.CHILDREN.close()


@pytest.mark.parametrize("template", BOMBS.values(), ids=BOMBS.keys())
def test_a_bomb_fails_its_attempt_and_the_next_template_is_rendered(template: str) -> None:
    problem = error("template", {"template": template}, {"big": "x" * 1_000_000})
    assert (problem.kind, problem.retryable) == ("LIMIT_EXCEEDED", False)
    assert output("template", {"template": "{% if n %}{{ n }}{% endif %}"}, {"n": 1}) == {"text": "1"}


def test_time_is_bounded_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounded, "SECONDS", 0.01)
    slow = "{% for i in range(100000) %}{{ big|upper|length }}{% endfor %}"
    began = time.monotonic()
    assert error("template", {"template": slow}, {"big": "x" * 100_000}).kind == "LIMIT_EXCEEDED"
    assert time.monotonic() - began < 15


@pytest.mark.parametrize(
    ("template", "small"),
    [
        ("Dear {{ name }}, {{ order.items[0].price }} {{ a['b c'] | upper }}", True),
        ("no holes, and a { brace", True),
        ("{% for x in y %}{{ x }}{% endfor %}", False),
        ("{{ a ~ a }}", False),
        ("{{ a * 9 }}", False),
        ("{{ a.replace('x', 'yyyy') }}", False),
        ("{{ a | indent(9) }}", False),
        ("{{ f(1) }}", False),
        ("{# a comment #}", False),
    ],
)
def test_only_values_in_a_text_are_rendered_in_place(template: str, small: bool) -> None:
    assert bounded.is_small(template, {"a": 1}) is small


def test_both_ways_of_rendering_come_to_the_same() -> None:
    given = {"name": "Ann", "n": [1, 2.5, None, True], "deep": {"a b": "ü"}}
    plain = "{{ name | upper }} {{ n }} {{ deep['a b'] }}\n"
    there = bounded.CHILDREN.render(plain, "t", given)
    assert bounded.is_small(plain, given)
    assert bounded.render(plain, "t", given) == there
    for broken in ("{{ nobody }}", "{{ name"):
        with pytest.raises(bounded.BrokenTemplate) as here:
            bounded.render(broken, "t", given)
        with pytest.raises(bounded.BrokenTemplate) as far:
            bounded.CHILDREN.render(broken, "t", given)
        assert (str(here.value), here.value.details) == (str(far.value), far.value.details)


@pytest.mark.parametrize(
    ("action", "place"),
    [
        ("{kind: template, template: 'Dear {{ name'}", "template"),
        ("{kind: template, template: '{% for x %}'}", "template"),
        ("{kind: llm, prompt: '{{ a'}", "prompt"),
        ("{kind: llm, system: '{{ a', prompt: fine}", "system"),
        ("{kind: llm, messages: [{role: user, content: '{{ a'}]}", "content"),
    ],
)
def test_a_broken_template_is_a_problem_of_the_definition(action: str, place: str) -> None:
    (problem,) = load_text(f"workflow: w\nnodes:\n  n:\n    action: {action}\n", "w.yaml").errors
    assert (problem.code, problem.line) == ("BAD_VALUE", 4)
    assert problem.at.endswith(place)
    assert "the template cannot be read: syntax error" in problem.message
