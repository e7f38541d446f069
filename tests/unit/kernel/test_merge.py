"""Merge strategies over contributions that are already in branch order (1.7)."""

from __future__ import annotations

from typing import Any

import pytest

from treadle.kernel.merge import STRATEGIES, MergeType

ERROR = {"_error": {"kind": "TASK_FAILED"}}

FITTING: list[tuple[str, list[Any], Any]] = [
    ("append", [], []),
    ("append", [1, None, [2, 3], ""], [1, None, [2, 3], ""]),
    ("append", [ERROR, 1], [ERROR, 1]),
    ("concat", [], []),
    ("concat", [[1], [], [[2], 3]], [1, [2], 3]),
    ("concat", [[1], None, ERROR], [1, ERROR]),
    ("merge_object", [], {}),
    ("merge_object", [{"a": 1, "b": 1}, None, {"b": {"c": 2}}], {"a": 1, "b": {"c": 2}}),
    ("keyed_by_branch", [], {}),
    ("keyed_by_branch", [0, False, None], {"0": 0, "1": False, "2": None}),
    ("last_wins", [], None),
    ("last_wins", [1, 2, None], None),
    ("last_wins", [1, ""], ""),
]


@pytest.mark.parametrize(("strategy", "values", "merged"), FITTING)
def test_a_strategy_merges_what_fits_it(strategy: str, values: list[Any], merged: Any) -> None:
    assert STRATEGIES[strategy](list(enumerate(values))) == merged


@pytest.mark.parametrize(
    ("strategy", "value", "named"),
    [("concat", {"a": 1}, "concat takes arrays"), ("concat", 0, "branch 1"), ("merge_object", [1], "takes objects")],
)
def test_a_contribution_that_does_not_fit_is_named_with_its_branch(strategy: str, value: Any, named: str) -> None:
    fitting: Any = [] if strategy == "concat" else {}
    with pytest.raises(MergeType, match=named):
        STRATEGIES[strategy]([(0, fitting), (1, value)])


@pytest.mark.parametrize(
    ("values", "winner", "counts"),
    [
        ([], None, []),
        (["b", "a", "a"], "a", [("b", 1), ("a", 2)]),
        (["b", "a"], "b", [("b", 1), ("a", 1)]),
        ([{"x": 1, "y": 2}, {"y": 2, "x": 1}], {"x": 1, "y": 2}, [({"x": 1, "y": 2}, 2)]),
        ([1, True, 1], 1, [(1, 2), (True, 1)]),
        ([None, None], None, [(None, 2)]),
    ],
)
def test_a_vote_is_won_by_the_most_frequent_value_and_ties_by_the_lowest_branch(
    values: list[Any], winner: Any, counts: list[tuple[Any, int]]
) -> None:
    result = STRATEGIES["vote"](list(enumerate(values)))
    assert result["value"] == winner and type(result["value"]) is type(winner)
    assert [(entry["value"], entry["count"]) for entry in result["counts"]] == counts
    assert result["total"] == len(values)


def test_branches_keep_their_own_number_when_others_are_missing() -> None:
    assert STRATEGIES["keyed_by_branch"]([(2, "c"), (10, "k")]) == {"2": "c", "10": "k"}
