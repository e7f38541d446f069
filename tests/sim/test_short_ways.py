"""The kernel's short ways for plain graphs make the histories its full rules make.

Played with the simulator's seeds: random graphs, faults, people. Each seed runs twice, once without a single mark of
`graph.plain` and with every counter of a group kept the long way, and whatever is decided must be the same.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from tests.simulator import world
from tests.simulator.simulate import simulate
from treadle.graph import compile as compiling
from treadle.graph.execution_graph import ExecutionGraph
from treadle.kernel import units, writing
from treadle.kernel.group_state import Group, SiteState
from treadle.kernel.short_ways import counting, moves
from treadle.kernel.state import RunState, Token
from treadle.model.codec import pack_events

SEEDS = range(7_000, 7_100)
NO_ENTITY = frozenset({"entity"})
"""A run with an entity notes its journey, which only the full rules do."""
WAYS = [
    (moves, "hand_out"),
    (moves, "hop"),
    (moves, "meet"),
    (moves, "begin_all"),
    (counting, "add_token"),
    (counting, "turn"),
    (counting, "consume"),
    (counting, "rests"),
    (writing, "plucked"),
]
"""Every short way of `kernel.short_ways`, where its callers find it."""


def decisions(seed: int, patch: pytest.MonkeyPatch) -> list[tuple[bytes, str, str]]:
    """Everything decided while a seed is played, in order."""
    found: list[tuple[bytes, str, str]] = []
    honest = world.decide  # type: ignore[attr-defined]

    def decide(*args: Any) -> Any:
        decision = honest(*args)
        found.append((pack_events(decision.events), repr(decision.effects), repr(decision.rejection)))
        return decision

    with patch.context() as spying:
        spying.setattr(world, "decide", decide)
        simulate(seed, NO_ENTITY)
    return found


def take_the_long_way(patch: pytest.MonkeyPatch) -> None:
    def marked_nothing(graph: ExecutionGraph) -> None:
        for site in graph.sites:
            site.patient = False
            site.notices = True
        for node in graph.nodes.values():
            node.plucks = None

    def consumed_one_by_one(state: RunState, _group: Group, site: SiteState) -> list[Any]:
        waiting = [state.arrivals.pop(identity) for held in list(site.waiting.values()) for identity in held]
        for arrival in waiting:
            units.remove_arrival(state, arrival)
        return waiting

    patch.setattr(compiling, "mark_plain", marked_nothing)

    def counted_in_all_groups(state: RunState, token: Token) -> None:
        units.add_token(state, token)

    patch.setattr(counting, "add_token", counted_in_all_groups)
    patch.setattr(counting, "turn", lambda *_: False)
    patch.setattr(counting, "consume", consumed_one_by_one)


def note_the_ways(taken: Counter[str], patch: pytest.MonkeyPatch) -> None:
    """Notes which short ways are taken: else the comparison says nothing."""

    def counted(module: Any, name: str) -> None:
        honest = getattr(module, name)

        def way(*args: Any) -> Any:
            result = honest(*args)
            taken[name] += result is not False
            return result

        patch.setattr(module, name, way)

    for module, name in WAYS:
        counted(module, name)


@pytest.mark.interpreted
def test_short_and_long_ways_decide_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    taken: Counter[str] = Counter()
    with monkeypatch.context() as patch:
        note_the_ways(taken, patch)
        short = {seed: decisions(seed, patch) for seed in SEEDS}
    assert min(taken[name] for _, name in WAYS) >= 20, taken
    take_the_long_way(monkeypatch)
    for seed in SEEDS:
        assert decisions(seed, monkeypatch) == short[seed], f"seed {seed} went another way"
