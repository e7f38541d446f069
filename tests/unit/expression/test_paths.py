"""Paths: every spelling that 1.6 and 1.10 allow, every mistake with its position, and looking into any JSON."""

from __future__ import annotations

import copy
import pickle
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from treadle.errors import PathSyntax
from treadle.expression.paths import DEPTH_MAX, LENGTH_MAX, MISSING, Path, format_path, get_in, parse_path


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("$", ()),
        ("$.state.ideas[0].text", ("state", "ideas", 0, "text")),
        ("state.ideas[0].text", ("state", "ideas", 0, "text")),
        ("judge", ("judge",)),
        ("$._branch.index", ("_branch", "index")),
        ("$.nodes.step-1.output", ("nodes", "step-1", "output")),
        ("$.a$b", ("a$b",)),
        ('$["odd key"]', ("odd key",)),
        ('["odd key"].b', ("odd key", "b")),
        ("$.a['b']", ("a", "b")),
        ("$['it\\'s \"so\"']", ('it\'s "so"',)),
        ('$["a\\"b\\\\c"]', ('a"b\\c',)),
        ('$["\\u00e9"]', ("é",)),
        ('$[""]', ("",)),
        ("$[12][0]", (12, 0)),
        ("$.größe.数", ("größe", "数")),
    ],
)
def test_every_spelling_of_a_path_is_read(text: str, path: Path) -> None:
    assert parse_path(text) == path


@pytest.mark.parametrize(
    ("text", "position"),
    [
        ("", 0),
        (".a", 0),
        ("$a", 1),
        ("$.", 1),
        ("$..a", 1),
        ("$.a.", 3),
        ("a b", 1),
        ("$.a[", 3),
        ("$.a[-1]", 3),
        ("$.a[01]", 3),
        ("$.a[1.5]", 3),
        ("$.a[*]", 3),
        ("$.a['b]", 3),
        ('$["\\x"]', 2),
        ("$.a[9999999999]", 3),
    ],
)
def test_a_mistake_names_its_position(text: str, position: int) -> None:
    with pytest.raises(PathSyntax) as caught:
        parse_path(text)
    assert caught.value.position == position
    assert isinstance(caught.value, ValueError)


def test_a_path_has_a_greatest_length_and_depth() -> None:
    with pytest.raises(PathSyntax):
        parse_path("$." + "a" * LENGTH_MAX)
    assert len(parse_path("$" + "[0]" * DEPTH_MAX)) == DEPTH_MAX
    with pytest.raises(PathSyntax):
        parse_path("$" + "[0]" * (DEPTH_MAX + 1))


def test_a_hostile_path_is_refused_at_once() -> None:
    began = time.perf_counter()
    for text in ('$["' + "\\" * 1_000, "$['" + '"' * 1_000, "[" * 1_000, "a" * 10_000_000):
        with pytest.raises(PathSyntax):
            parse_path(text)
    assert time.perf_counter() - began < 1


@given(st.lists(st.text(max_size=20) | st.integers(0, 999_999_999), max_size=8).map(tuple))
def test_what_is_formatted_reads_back_the_same(path: Path) -> None:
    assert parse_path(format_path(path)) == path


@given(st.text(max_size=40))
def test_reading_any_text_gives_a_path_or_a_syntax_error(text: str) -> None:
    try:
        path = parse_path(text)
    except PathSyntax:
        return
    assert parse_path(format_path(path)) == path


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ((), {"a": {"b": [10, {"c": None}]}, "s": "text"}),
        (("a", "b", 0), 10),
        (("a", "b", 1, "c"), None),
        (("a", "b", 2), MISSING),
        (("a", "b", -1), MISSING),
        (("a", "b", "0"), MISSING),
        (("a", 0), MISSING),
        (("s", 0), MISSING),
        (("s", "upper"), MISSING),
        (("a", "b", 0, "x"), MISSING),
        (("none",), MISSING),
        (("none", "deeper"), MISSING),
    ],
)
def test_names_look_into_objects_and_indexes_into_arrays(path: Path, found: object) -> None:
    value = {"a": {"b": [10, {"c": None}]}, "s": "text"}
    result = get_in(value, path)
    assert result is found or result == found


def test_missing_survives_copies_and_is_not_none() -> None:
    assert copy.deepcopy(MISSING) is MISSING
    assert pickle.loads(pickle.dumps(MISSING)) is MISSING
    assert repr(MISSING) == "MISSING"
    assert bool(MISSING)
