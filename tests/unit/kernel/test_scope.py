"""Scopes: reads fall through, writes stay, containers are never changed in place (2.4)."""

from __future__ import annotations

from typing import Any

import pytest

from treadle.errors import EvaluationError
from treadle.expression.paths import MISSING
from treadle.kernel.scope import Scope, read, unpacked

Writes = list[tuple[tuple[str | int, ...], Any]]


def scope(writes: Writes, *, overlay: bool) -> Scope:
    made = Scope(overlay=overlay)
    for path, value in writes:
        made.write(path, value)
    return made


def chain(inner: Writes, outer: Writes) -> list[Scope]:
    return [scope(inner, overlay=True), scope(outer, overlay=False)]


READS: list[tuple[str, Writes, Writes, tuple[str | int, ...], Any]] = [
    ("a branch reads what the run wrote", [], [(("state", "x"), 1)], ("state", "x"), 1),
    ("a branch reads its own value first", [(("state", "x"), 2)], [(("state", "x"), 1)], ("state", "x"), 2),
    ("null hides what lies below", [(("state", "x"), None)], [(("state", "x"), 1)], ("state", "x"), None),
    ("false hides what lies below", [(("state", "x"), False)], [(("state", "x"), 1)], ("state", "x"), False),
    (
        "a deep write hides nothing beside it",
        [(("state", "a", "b"), 2)],
        [(("state", "a", "c"), 3)],
        ("state", "a", "c"),
        3,
    ),
    (
        "a whole object is seen with the branch's write in it",
        [(("state", "a", "b"), 2)],
        [(("state", "a"), {"b": 1, "c": 3})],
        ("state", "a"),
        {"b": 2, "c": 3},
    ),
    (
        "an object written whole hides its other keys",
        [(("state", "a"), {"b": 2})],
        [(("state", "a", "c"), 3)],
        ("state", "a", "c"),
        MISSING,
    ),
    (
        "a deep write over a scalar makes an object",
        [(("state", "a", "b"), 2)],
        [(("state", "a"), 7)],
        ("state", "a"),
        {"b": 2},
    ),
    ("an item of an array is read by its index", [], [(("state", "xs"), [1, 2])], ("state", "xs", 1), 2),
    ("what nobody wrote is missing", [(("output", "x"), 1)], [], ("state", "x"), MISSING),
]


@pytest.mark.parametrize(("why", "inner", "outer", "path", "seen"), READS, ids=[row[0] for row in READS])
def test_reading(why: str, inner: Writes, outer: Writes, path: tuple[str | int, ...], seen: Any) -> None:
    assert read(chain(inner, outer), path) == seen


@pytest.mark.parametrize("writes", [row[1] for row in READS], ids=[row[0] for row in READS])
def test_a_packed_overlay_comes_back_as_it_was(writes: Writes) -> None:
    packed = scope([*writes, (("output", "z"), {"deep": [1, 2.5, None]})], overlay=True)
    again = unpacked(packed.packed())
    assert again == packed and list(again.leaves()) == list(packed.leaves()), "interiors stay transparent"


def test_a_branch_that_writes_leaves_the_run_alone() -> None:
    layers = chain([], [(("state", "a"), {"b": 1})])
    layers[0].write(("state", "a", "b"), 2)
    assert read(layers[1:], ("state", "a")) == {"b": 1}


def test_a_write_copies_the_containers_along_its_path() -> None:
    given: dict[str, Any] = {"b": [{"c": 1}]}
    root = scope([(("state", "a"), given)], overlay=False)
    root.write(("state", "a", "b", 0, "c"), 2)
    assert given == {"b": [{"c": 1}]} and read([root], ("state", "a", "b", 0, "c")) == 2


def test_an_array_grows_at_its_end_and_nowhere_else() -> None:
    root = scope([(("state", "xs"), [1])], overlay=False)
    root.write(("state", "xs", 1), 2)
    assert read([root], ("state", "xs")) == [1, 2]
    with pytest.raises(EvaluationError, match=r"state\.xs\.9"):
        root.write(("state", "xs", 9), 3)


@pytest.mark.parametrize("path", [("state", "n", "x"), ("state", "xs", "key"), ("state", "o", 0)])
def test_a_path_that_does_not_fit_is_refused_and_changes_nothing(path: tuple[str | int, ...]) -> None:
    root = scope([(("state", "n"), 1), (("state", "xs"), [1]), (("state", "o"), {})], overlay=False)
    before = root.copy()
    with pytest.raises(EvaluationError, match="does not fit"):
        root.write(path, 1)
    assert root == before


def test_leaves_are_what_was_written_in_order_of_writing() -> None:
    overlay = scope([(("state", "b"), 1), (("state", "a", "x"), {"y": 2}), (("output", "o"), None)], overlay=True)
    assert list(overlay.leaves()) == [(("state", "b"), 1), (("state", "a", "x"), {"y": 2}), (("output", "o"), None)]


def test_a_copy_is_independent() -> None:
    first = scope([(("state", "a", "b"), 1)], overlay=True)
    twin = first.copy()
    twin.write(("state", "a", "b"), 2)
    assert first != twin and list(first.leaves()) == [(("state", "a", "b"), 1)]
