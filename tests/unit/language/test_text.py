"""Reading text: YAML 1.2 and JSON with positions, and documents that are refused whatever they would mean."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from treadle.language.limits import BOUNDS, Bounds
from treadle.language.source import Refusal, Spot
from treadle.language.text import read_text


def value_of(text: str | bytes, bounds: Bounds = BOUNDS) -> Any:
    (source,) = read_text(text, "doc", bounds)
    return source.value


def refusal_of(text: str | bytes, bounds: Bounds = BOUNDS) -> Refusal:
    with pytest.raises(Refusal) as caught:
        read_text(text, "doc", bounds)
    return caught.value


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("true", True),
        ("False", False),
        ("yes", "yes"),
        ("on", "on"),
        ("no", "no"),
        ("off", "off"),
        ("~", None),
        ("null", None),
        ("", None),
        ("12", 12),
        ("-7", -7),
        ("0x1f", 31),
        ("0o17", 15),
        ("012", 12),
        ("1_000", "1_000"),
        ("1.5e3", 1500.0),
        (".5", 0.5),
        ("2024-01-31", "2024-01-31"),
        ("2024-01-31T12:00:00Z", "2024-01-31T12:00:00Z"),
        ("12:30:45", "12:30:45"),
        ('"12"', "12"),
        ("'it''s'", "it's"),
        ("!!str 12", "12"),
        ('!!int "12"', 12),
    ],
)
def test_a_scalar_means_what_the_yaml_1_2_core_schema_says(written: str, value: Any) -> None:
    found = value_of(f"key: {written}\n")["key"]
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize("key", ["on", "yes", "no", "off", "y"])
def test_words_that_were_booleans_once_are_keys_like_any_other(key: str) -> None:
    assert value_of(f"{key}: x\n") == {key: "x"}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a": [1, 2.5, {"b": null}], "c": true}', {"a": [1, 2.5, {"b": None}], "c": True}),
        ('{\n\t"a":\t1\n}', {"a": 1}),
        ('{"emoji": "\\ud83d\\ude00"}', {"emoji": "😀"}),
        ("{a: 1, b: [x, y]}", {"a": 1, "b": ["x", "y"]}),
        ("[]", []),
        ("{}", {}),
        ('\ufeff{"a": 1}', {"a": 1}),
        ("\ufeffa: 1", {"a": 1}),
    ],
)
def test_json_and_flow_style_are_told_apart_by_reading_them(text: str, value: Any) -> None:
    assert value_of(text) == value


def test_documents_are_kept_apart_and_empty_texts_hold_none() -> None:
    assert [source.value for source in read_text("a: 1\n---\nb: 2\n", "doc")] == [{"a": 1}, {"b": 2}]
    assert read_text("", "doc") == []
    assert read_text("# nothing\n", "doc") == []


YAML = "nodes:\n  ask: {retry: {max_attempts: 3}}\ntags:\n  - one\n  - two\n"
JSON = '{\n "nodes": {\n  "ask": {"retry": {"max_attempts": 3}}},\n "tags": ["one",\n  "two"]\n}'


@pytest.mark.parametrize(
    ("text", "path", "key", "spot"),
    [
        (YAML, ("nodes", "ask"), True, Spot(2, 3)),
        (YAML, ("nodes", "ask"), False, Spot(2, 8)),
        (YAML, ("nodes", "ask", "retry", "max_attempts"), False, Spot(2, 31)),
        (YAML, ("tags", 1), False, Spot(5, 5)),
        (YAML, ("tags", 7), False, Spot(4, 3)),
        (YAML, (), False, Spot(1, 1)),
        (JSON, ("nodes", "ask"), True, Spot(3, 3)),
        (JSON, ("nodes", "ask", "retry", "max_attempts"), False, Spot(3, 37)),
        (JSON, ("tags", 1), False, Spot(5, 3)),
        (JSON, ("missing",), False, Spot(1, 1)),
    ],
)
def test_everything_has_a_line_and_a_column(text: str, path: Any, key: bool, spot: Spot) -> None:
    (source,) = read_text(text, "doc")
    assert source.spot(path, key=key) == spot


def test_a_part_of_a_document_keeps_its_lines() -> None:
    (source,) = read_text("definitions:\n  - workflow: a\n  - workflow: b\n", "doc")
    part = source.part("definitions", 1)
    assert part.value == {"workflow": "b"}
    assert part.root == ("definitions", 1)
    assert part.spot(("workflow",)) == Spot(3, 15)


def test_an_alias_stands_for_what_its_anchor_named() -> None:
    text = "a: &retry {max_attempts: 3}\nb: *retry\n"
    (source,) = read_text(text, "doc")
    assert source.value["b"] == {"max_attempts": 3}
    assert source.spot(("b", "max_attempts")) == Spot(2, 4)


BOMB = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{name}: &{name} [{','.join(['*' + before] * 9)}]\n" for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)


@pytest.mark.parametrize(
    ("text", "says", "line"),
    [
        pytest.param(BOMB, "values", 5, id="alias bomb"),
        pytest.param("[" * 1_000_000, "nested", 1, id="brackets"),
        pytest.param("{" * 1_000_000, "not a list", 1, id="braces"),
        pytest.param('{"a":' * 100_000, "nested", 1, id="objects"),
        pytest.param("- " * 500_000, "nested", 1, id="dashes"),
        pytest.param("a: " + "[{a: " * 500, "nested", 1, id="mixed flow"),
        pytest.param("a: " + "x" * (2 << 20), "bytes", 1, id="long text"),
        pytest.param("---\n" * 250_000, "documents", 1001, id="many documents"),
        pytest.param("[" + "1," * 100_000 + "1]", "values", 1, id="many values"),
        pytest.param("!" * 1_000_000, "tags", 1, id="exclamation marks"),
        pytest.param("a: !!python/object/apply:os.system [ls]", "tags", 1, id="python tag"),
        pytest.param("a: !mine x", "tags", 1, id="own tag"),
        pytest.param("a: 1\nb: 2\na: 3\n", "twice", 3, id="duplicate key"),
        pytest.param('{"a": 1,\n "a": 2}', "twice", 2, id="duplicate JSON key"),
        pytest.param('{"a": NaN}', "NaN", 1, id="JSON NaN"),
        pytest.param('{"a": -Infinity}', "Infinity", 1, id="JSON infinity"),
        pytest.param("a: .nan", "NaN", 1, id="YAML NaN"),
        pytest.param("a: -.inf", "NaN", 1, id="YAML infinity"),
        pytest.param("a: 1e999", "NaN", 1, id="overflow"),
        pytest.param("a: 99999999999999999999", "64 bits", 1, id="big integer"),
        pytest.param("a: " + "9" * 100_000, "digits", 1, id="many digits"),
        pytest.param("[" + "9" * 900_000 + "]", "digits", 1, id="many JSON digits"),
        pytest.param("1: a", "not text", 1, id="number as key"),
        pytest.param("true: a", "not text", 1, id="boolean as key"),
        pytest.param("? [a]\n: b", "not a list", 1, id="list as key"),
        pytest.param("a: *nothing", "stands for nothing", 1, id="dangling alias"),
        pytest.param("a: &a [*a]", "stands for nothing", 1, id="recursive alias"),
        pytest.param('a: "\x01"', "U+0001", 1, id="control character"),
        pytest.param('a: "\\0"', "U+0000", 1, id="escaped control character"),
        pytest.param('["\\u0000"]', "U+0000", 1, id="escaped control character in JSON"),
        pytest.param('["\\ud800"]', "U+D800", 1, id="lone surrogate"),
        pytest.param(b"a: 1\nb: \xff", "UTF-8", 2, id="invalid UTF-8"),
        pytest.param("a:\n\tb: 1", "not valid YAML", 2, id="tab indentation"),
        pytest.param('{"a": 1,, "b": 2}', "not valid JSON", 1, id="broken JSON"),
        pytest.param("a: [1, 2", "not valid YAML", 1, id="open bracket"),
        pytest.param("a: 'x", "not valid YAML", 1, id="open quote"),
    ],
)
def test_a_hostile_document_is_refused_with_its_place(text: str | bytes, says: str, line: int) -> None:
    refusal = refusal_of(text)
    assert says in refusal.message
    assert refusal.spot is not None
    assert refusal.spot.line == line
    assert len(refusal.message) < 400


def test_a_caller_may_set_narrower_bounds() -> None:
    assert "more than 10 values" in refusal_of("[" + "1," * 20 + "1]", Bounds(values=10)).message
    assert "nested" in refusal_of("a: {b: {c: {}}}", Bounds(depth=3)).message
    assert "bytes" in refusal_of("a: 1", Bounds(text_bytes=3)).message


@given(st.binary(max_size=200) | st.text(max_size=200))
def test_no_text_whatever_does_anything_but_be_read_or_refused(text: str | bytes) -> None:
    try:
        read_text(text, "doc")
    except Refusal as refusal:
        assert refusal.message


JSON_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(blacklist_categories=["Cs", "Cc"])),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(st.characters(blacklist_categories=["Cs", "Cc"])), inner, max_size=4)
    ),
    max_leaves=20,
)


@given(st.dictionaries(st.text("abc", min_size=1), JSON_VALUES, max_size=4))
def test_json_text_is_read_as_the_standard_library_reads_it(value: Any) -> None:
    import json

    assert value_of(json.dumps(value)) == value
    assert value_of(json.dumps(value, indent=2, ensure_ascii=False)) == value
