"""Every order of arrivals, failures and endings at a small join, against a second, obvious implementation of 2.5.

Owns `expected`: what the specification says of one join, written down branch by branch without any of the kernel's
counters. For all shapes of up to four branches, every order must fire, fail or die as it says, at the very step it
says, with the contributions it says; and where the strategy waits for everybody, every order must leave the same state
behind.
"""

from __future__ import annotations

from functools import cache
from itertools import permutations, product
from math import ceil
from typing import Any, NamedTuple

import pytest

from tests.driving import TASK, Driven, graph_of
from treadle.graph.execution_graph import ExecutionGraph
from treadle.model import events as e

Json = Any
Order = tuple[tuple[int, str], ...]
"""(branch, outcome) in order of happening."""

OUTCOMES = ("arrives", "fails", "ends")
STRATEGIES: dict[str, Json] = {
    "all": "all",
    "any": "any",
    "two": {"m_of_n": 2},
    "three": {"m_of_n": 3},
    "half": {"percent": 50},
    "most": {"percent": 67},
    "cel": {"cel": "arrived + failed >= 2"},
}
POLICIES = ("include_errors", "exclude", "fail")
RESTS = ("abandon", "cancel", "pass_through", "block")
MERGES = ("append", "concat", "merge_object", "keyed_by_branch", "last_wins", "vote")


class Shape(NamedTuple):
    """One join."""

    strategy: str
    policy: str = "include_errors"
    rest: str = "abandon"
    merge: str = "append"
    streaming: bool = False


class Verdict(NamedTuple):
    """What became of the join: which step decided it, and how."""

    step: int
    what: str
    """fired, dead, or the kind it failed with."""
    value: Json = None


@cache
def graph(shape: Shape, branches: int) -> ExecutionGraph:
    sync = {
        "sibling_group": "t",
        "strategy": STRATEGIES[shape.strategy],
        "on_branch_failure": shape.policy,
        "on_early_complete": shape.rest,
        "merge": {
            "source": "_branch.output.v",
            "target": "state.merged",
            "strategy": shape.merge,
            "streaming": shape.streaming,
        },
    }
    return graph_of(
        {
            "nodes": {"a": {}, "b": {**TASK, "output_mapping": {"state.v": "$.v"}}, "away": {}, "z": {}},
            "transitions": [
                {"id": "t", "from": "a", "to": "b", "spawn_count": branches},
                {"from": "b", "to": "away", "condition": "nodes.b.output.away == true"},
                {"from": "b", "to": "z", "priority": 2, "synchronization": sync},
            ],
        }
    )


def contribution(merge: str, branch: int) -> Json:
    """Such that every merge can tell the branches apart, and two agree for `vote`."""
    return {"concat": [branch, "x"], "merge_object": {"who": branch, str(branch): 1}, "vote": branch // 2}.get(
        merge, branch * 10
    )


def expected(shape: Shape, branches: int, order: Order) -> Verdict:
    """The specification, step by step."""
    arrived: set[int] = set()
    failed: set[int] = set()
    for step, (branch, outcome) in enumerate(order):
        (arrived if outcome == "arrives" else failed if outcome == "fails" else set()).add(branch)
        what = _verdict(shape, branches, len(arrived), len(failed), branches - step - 1)
        if what is not None:
            value = _merged(shape, arrived, failed) if what == "fired" else None
            return Verdict(step, what, value)
    raise AssertionError("a join with no live branch is decided")


def _verdict(shape: Shape, total: int, arrived: int, failed: int, live: int) -> str | None:
    if failed and shape.policy == "fail":
        return "BRANCH_FAILED"
    if shape.strategy == "all":
        return None if live else _all_in(shape, arrived, failed)
    if shape.strategy == "cel":
        return _computed(arrived, failed, live)
    need = {"any": 1, "two": 2, "three": 3, "half": ceil(total / 2), "most": ceil(67 * total / 100)}[shape.strategy]
    if arrived >= need:
        return "fired"
    if arrived + live >= need or (
        live and shape.strategy in ("half", "most")
    ):  # A10: a percentage is judged at the end
        return None
    if arrived or failed:
        return "QUORUM_UNREACHABLE"
    return None if live else "dead"


def _all_in(shape: Shape, arrived: int, failed: int) -> str:
    if arrived or (failed and shape.policy == "include_errors"):
        return "fired"
    return "NO_SUCCESSFUL_BRANCH" if failed else "dead"


def _computed(arrived: int, failed: int, live: int) -> str | None:
    if arrived + failed >= 2:
        return "fired"
    if live:
        return None
    return "QUORUM_UNREACHABLE" if arrived or failed else "dead"


def _merged(shape: Shape, arrived: set[int], failed: set[int]) -> Json:
    errors = failed if shape.policy == "include_errors" and shape.strategy in ("all", "cel") else set()
    parts = [(b, contribution(shape.merge, b) if b in arrived else "error") for b in sorted(arrived | errors)]
    values = [value for _, value in parts]
    match shape.merge:
        case "concat":
            return [item for value in values for item in (value if isinstance(value, list) else [value])]
        case "merge_object":
            return {key: item for value in values for key, item in _members(value)}
        case "keyed_by_branch":
            return {str(branch): value for branch, value in parts}
        case "last_wins":
            return values[-1]
        case "vote":
            counts = {str(value): values.count(value) for value in values}
            best = max(values, key=lambda value: (counts[str(value)], -values.index(value)))
            return {
                "value": best,
                "counts": [(v, counts[str(v)]) for v in dict.fromkeys(map(str, values))],
                "total": len(values),
            }
    return values


def _members(value: Json) -> list[tuple[str, Json]]:
    return list(value.items()) if isinstance(value, dict) else [("_error", "error")]


def played(shape: Shape, branches: int, order: Order) -> tuple[Driven, Verdict]:
    """The same order, decided by the kernel; what was withdrawn meanwhile answers nothing any more."""
    driven = Driven(graph(shape, branches)).start()
    verdict: Verdict | None = None
    for step, (branch, outcome) in enumerate(order):
        before = len(driven.history)
        if driven.tokens("b", branch):
            _let(driven, shape, branch, outcome)
        decided = [
            event
            for event in driven.history[before:]
            if event.type.startswith("join.") and event.type != "join.arrived"
        ]
        assert len(decided) + (verdict is not None) <= 1, f"the join was decided twice\n{driven.log()}"
        if decided:
            verdict = Verdict(step, *_read(driven, decided[0]))
    assert verdict is not None, f"the join was never decided\n{driven.log()}"
    return driven, verdict


def _let(driven: Driven, shape: Shape, branch: int, outcome: str) -> None:
    if outcome == "fails":
        driven.fail("b", branch)
    else:
        value = contribution(shape.merge, branch)
        driven.finish("b", branch, output={"v": value, "away": outcome == "ends"})


def _read(driven: Driven, event: e.Event) -> tuple[str, Json]:
    match event:
        case e.JoinFired():
            return "fired", _plain(dict(event.writes)[("state", "merged")])
        case e.JoinFailed():
            return event.error.kind, None
    return "dead", None


def _plain(value: Json) -> Json:
    """Error objects as the word `error`, votes as pairs: what the oracle speaks."""
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, dict) and value.keys() == {"_error"}:
        return "error"
    if isinstance(value, dict) and "counts" in value:
        pairs = [(str(_plain(entry["value"])), entry["count"]) for entry in value["counts"]]
        return {**value, "value": _plain(value["value"]), "counts": pairs}
    if isinstance(value, dict):
        return {key: "error" if key == "_error" else _plain(item) for key, item in value.items()}
    return value


def orders(branches: int, outcomes: tuple[str, ...]) -> list[Order]:
    return [tuple((branch, outcomes[branch]) for branch in way) for way in permutations(range(branches))]


def check(shape: Shape, branches: int, outcomes: tuple[str, ...]) -> None:
    """Every order of these outcomes."""
    left: dict[str, Json] = {}
    for order in orders(branches, outcomes):
        driven, verdict = played(shape, branches, order)
        wanted = expected(shape, branches, order)
        assert verdict == wanted, f"{shape} {order}\nexpected {wanted}\nwas      {verdict}\n{driven.log()}"
        assert driven.ended, f"{shape} {order}: the run does not end\n{driven.log()}"
        _continued_once(driven, shape, verdict, order)
        left[str(_rest_of(driven))] = order
    if shape.strategy == "all" and shape.policy != "fail":
        assert len(left) == 1, f"{shape} {outcomes}: orders end differently\n" + "\n".join(
            f"{o}: {s}" for s, o in left.items()
        )


def _continued_once(driven: Driven, shape: Shape, verdict: Verdict, order: Order) -> None:
    """One continuation per firing; further ones only where stragglers pass through."""
    late = [outcome for _, outcome in order[verdict.step + 1 :]]
    if "fails" in late:  # a straggler that passes through is nobody's branch any more: its failure is the run's
        late = late[: late.index("fails")]
    wanted = 0 if verdict.what != "fired" else 1 + (late.count("arrives") if shape.rest == "pass_through" else 0)
    visits = sum(1 for event in driven.history if isinstance(event, e.TokenCreated) and event.node == "z")
    assert visits == wanted, f"{shape} {order}: {visits} visits of z instead of {wanted}\n{driven.log()}"


def _rest_of(driven: Driven) -> tuple[Json, ...]:
    state = driven.state
    return state.status, state.error and state.error.kind, state.context(), state.output


SMALL = [(n, strategy) for n in (2, 3) for strategy in STRATEGIES if (n, strategy) != (2, "three")]
"""Three of two is refused at deploy."""


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize(("branches", "strategy"), SMALL)
def test_every_order_of_a_small_join_decides_as_the_specification_says(
    branches: int, strategy: str, policy: str
) -> None:
    for outcomes in product(OUTCOMES, repeat=branches):
        check(Shape(strategy, policy), branches, outcomes)


@pytest.mark.parametrize("rest", RESTS)
@pytest.mark.parametrize("strategy", ["any", "two", "half", "cel"])
def test_every_order_deals_with_the_rest_of_an_early_join_as_configured(strategy: str, rest: str) -> None:
    for outcomes in product(OUTCOMES, repeat=3):
        check(Shape(strategy, rest=rest), 3, outcomes)


@pytest.mark.parametrize("streaming", [False, True])
@pytest.mark.parametrize("merge", MERGES)
@pytest.mark.parametrize("strategy", ["all", "two"])
def test_every_order_merges_in_branch_order(strategy: str, merge: str, streaming: bool) -> None:
    for outcomes in (("arrives",) * 3, ("arrives", "ends", "arrives"), ("fails", "arrives", "arrives")):
        check(Shape(strategy, merge=merge, streaming=streaming), 3, outcomes)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_every_order_of_four_branches_decides_as_the_specification_says(strategy: str) -> None:
    for number, outcomes in enumerate(product(OUTCOMES, repeat=4)):
        check(Shape(strategy, POLICIES[number % 3]), 4, outcomes)
