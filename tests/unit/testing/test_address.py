"""Addresses mean what docs/reference/scenarios.md says they mean."""

from __future__ import annotations

import pytest

from treadle.testing.world.address import Address, parse_address, ref_of

REFS = {"judge", "step_1", "a/b", "odd[0]"}


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("judge", Address("judge")),
        ("judge[2]", Address("judge", (2,))),
        ("judge[0.2]", Address("judge", (0, 2))),
        ("compensate(judge)", Address("judge", compensation=True)),
        ("compensate(judge[1])", Address("judge", (1,), compensation=True)),
        ("judge/score", Address("judge", step="score")),
        ("judge[1]/score", Address("judge", (1,), step="score")),
        ("compensate(judge)/undo", Address("judge", compensation=True, step="undo")),
        ("step_1", Address("step_1")),
        ("a/b", Address("a/b")),
        ("a/b/c", Address("a/b", step="c")),
        ("odd[0]", Address("odd[0]")),
        ("odd[0][3]", Address("odd[0]", (3,))),
        ("jugde", None),
        ("judge[x]", None),
        ("compensate(compensate(judge))", None),
    ],
)
def test_an_address_is_read_against_the_nodes_that_exist(text: str, address: Address | None) -> None:
    assert parse_address(text, REFS) == address
    if address is not None:
        assert str(address) == text


@pytest.mark.parametrize(
    ("indexes", "stack", "fits"),
    [
        ((), (), True),
        ((), (1, 2), True),
        ((2,), (1, 2), True),
        ((1,), (1, 2), False),
        ((1, 2), (1, 2), True),
        ((1, 2), (0, 1, 2), False),
        ((0,), (), False),
    ],
)
def test_one_index_is_the_innermost_branch_and_several_are_the_whole_stack(
    indexes: tuple[int, ...], stack: tuple[int, ...], fits: bool
) -> None:
    assert Address("judge", indexes).fits("judge", stack, False) is fits


def test_a_compensation_is_not_the_visit_it_undoes() -> None:
    assert not Address("judge").fits("judge", (), True)
    assert Address("judge", compensation=True).fits("judge", (), True)


def test_a_hint_compares_the_ref_alone() -> None:
    assert ref_of("compensate(jugde[1.2])") == "jugde"
    assert ref_of("jugde/step") == "jugde"
