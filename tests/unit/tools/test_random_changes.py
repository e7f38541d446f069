"""Random changes: which there are, which there must not be, and that a seed decides which are drawn."""

from __future__ import annotations

import pytest

from tests.mutants.hunt import SOURCES, place_of
from tests.mutants.random_changes import changes_of, drawn, equivalent


def shown(text: str) -> set[str]:
    return {f"{change.before} → {change.after}" for change in changes_of(text)}


@pytest.mark.parametrize(
    ("text", "changes"),
    [
        ("a = b < c", {"< → <=", "< → >="}),
        ("a = b == c", {"== → !="}),
        ("a = b is not c", {"is not → is"}),
        ("a = b not in c", {"not in → in"}),
        ("a = b <= c < d", {"<= → <", "<= → >", "< → <=", "< → >="}),
        ("a = (b  # is\n is c)", {"is → is not"}),
        ("a = b and c and d", {"b and c and d → b or c or d"}),
        ("a = b + c", {"+ → -"}),
        ("a -= b", {"-= → +="}),
        ("a = 1", {"1 → 2", "1 → 0"}),
        ("a = f(0)", {"0 → 1"}),
        ("if a:\n    b = c", {"a → not (a)", "a → True", "a → False"}),
        ("while a:\n    b = c", {"a → not (a)", "a → False"}),
        ("a = b if c else d", {"c → not (c)", "c → True", "c → False"}),
        ("f(a)", {"f(a) → pass"}),
        ("async def f():\n    await g()", {"await g() → pass"}),
        ("def f():\n    return a", {"return a → return None"}),
        ("def f():\n    return True", {"return True → return False"}),
        ("def f():\n    return False", {"return False → return True"}),
    ],
)
def test_what_a_tired_person_could_type(text: str, changes: set[str]) -> None:
    assert shown(text) == changes


@pytest.mark.parametrize(
    "text",
    [
        '"""Two < three."""',
        'log.info("so", at=1)',
        'raise ValueError(f"{a + 1}")',
        "assert a == b",
        "a: f[1]",
        "def f(a: g[1]) -> h[2]:\n    b = a",
        "def __repr__(self):\n    return a + b",
        "LIMIT_MS = 5",
        "a = 5_000",
        'a = b + "text"',
        "def f():\n    return None",
        "if TYPE_CHECKING:\n    a = b",
        "class P(Protocol):\n    a = 1",
    ],
)
def test_what_only_people_read_and_what_does_not_matter_stays(text: str) -> None:
    assert shown(text) == set()


def test_a_change_is_made_where_it_was_found_also_behind_letters_of_several_bytes() -> None:
    text = 'é = "→"; a = b < c\n'
    assert [change.planted(text) for change in changes_of(text)] == [
        'é = "→"; a = b <= c\n',
        'é = "→"; a = b >= c\n',
    ]


@pytest.mark.slow
def test_a_seed_draws_the_same_changes_and_another_seed_draws_others() -> None:
    first, again, other = (drawn(SOURCES, 20, seed, ("kernel",)) for seed in (1, 1, 2))
    assert first == again != other and len(set(first)) == 20


@pytest.mark.slow
def test_a_changed_file_is_still_a_program() -> None:
    for change in drawn(SOURCES, 200, 3):
        text = place_of(SOURCES, change).read_text("utf-8")
        assert change.planted(text) != text
        compile(change.planted(text), change.name, "exec")


def test_equivalent_changes_say_why_and_still_exist() -> None:
    for (file, line, change), reason in equivalent().items():
        text = (SOURCES / "treadle" / file).read_text("utf-8")
        there = {(one.source, f"{one.before} → {one.after}") for one in changes_of(text)}
        assert (line, change) in there, f"equivalent.toml lists {change!r} of a line that {file} no longer has: {line}"
        assert reason
