"""Scenario text is YAML 1.2 as the language reads it, with a little more freedom."""

from __future__ import annotations

import pytest

from treadle.errors import ScenarioError
from treadle.testing.scenario.documents import read_documents


def values(text: str) -> list[object]:
    return [document.value for document in read_documents(text, "f")]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("on: yes", {"on": "yes"}),
        ("a: off\nno: y", {"a": "off", "no": "y"}),
        ("a: true\nb: False\nc: TRUE", {"a": True, "b": False, "c": True}),
        ("a: ~\nb: null\nc:", {"a": None, "b": None, "c": None}),
        ("a: 0o17\nb: 0x1F\nc: 017\nd: -3", {"a": 15, "b": 31, "c": 17, "d": -3}),
        ("a: 1.5\nb: 1e3\nc: .5\nd: 1_000", {"a": 1.5, "b": 1000.0, "c": 0.5, "d": "1_000"}),
        ("a: 2020-01-01", {"a": "2020-01-01"}),
        ("a: '12'\nb: \"true\"", {"a": "12", "b": "true"}),
        ("a: !!str 12", {"a": "12"}),
        ("0: a\ntrue: b", {"0": "a", "true": "b"}),
        ('{"a":1, "b":[]}', {"a": 1, "b": []}),
        ("a: &x {b: 1, c: 2}\nd: {<<: *x, c: 3}", {"a": {"b": 1, "c": 2}, "d": {"b": 1, "c": 3}}),
        ("a: 12:30:45", {"a": "12:30:45"}),
    ],
)
def test_scalars_follow_the_core_schema(text: str, value: object) -> None:
    assert values(text) == [value]


def test_documents_are_apart_by_three_dashes_and_empty_ones_do_not_count() -> None:
    assert values("---\na: 1\n---\n---\n# nothing\n---\nb: 2\n...\n") == [{"a": 1}, {"b": 2}]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("a: 1\na: 2", "f:2:1: the key `a` stands twice"),
        ("a: [1,", "f:1:7: not valid YAML"),
        ("a: .nan", "f:1:4: .nan is not a JSON number"),
        ("a: !thing x", "f:1:4: tags such as !thing"),
        ("? [a]\n: b", "f:1:3: a key must be a plain word"),
        ("a: {<<: 3}", "f:1:9: `<<` merges maps only"),
        ("a: &x [*x]", "f:1:8: the alias *x stands for nothing written before it"),
    ],
)
def test_what_is_not_a_document_is_refused_with_its_place(text: str, complaint: str) -> None:
    with pytest.raises(ScenarioError) as refused:
        values(text)
    assert complaint in str(refused.value)


def test_an_alias_bomb_is_refused() -> None:
    bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
        f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 10)}]\n" for level in range(1, 8)
    )
    with pytest.raises(ScenarioError, match="aliases are expanded"):
        values(bomb)


def test_every_path_has_a_line() -> None:
    [document] = read_documents("# first\na:\n  - b: 1\n    c: 2\n", "f")
    assert document.spot(("a", 0, "c")) == (4, 8)
    assert document.spot(("a", 0, "c"), key=True) == (4, 5)
    assert document.spot(("a", 7, "nowhere")) == (3, 3)
    assert document.line == 2
