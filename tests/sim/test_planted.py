"""The simulator finds bugs: each is planted for one test, and a few hundred seeds must stumble over it.

One per kind of safety net: the kernel's rules, its fences, the store's fence, the engine's own discipline.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.simulator.simulate import simulate
from treadle.kernel import cancel, join_verdict, on_answer, timers, writing
from treadle.runtime.coordinate.hot import Hots
from treadle.runtime.deliver.recovery import Recovery
from treadle.store.memory_parts import Leases

SEEDS = range(4_000, 4_400)
Plant = Callable[[pytest.MonkeyPatch], None]


def rules() -> Iterator[str]:
    for seed in SEEDS:
        failure = simulate(seed).failure
        if failure is not None:
            yield failure.rule


def quorum_off_by_one(patch: pytest.MonkeyPatch) -> None:
    honest = join_verdict.verdict

    def verdict(d: Any, group: Any, state: Any, site: Any) -> Any:
        found = honest(d, group, state, site)
        early = site.sync.strategy.kind == "m_of_n" and state.arrived + 1 >= site.sync.strategy.count
        return ("fire", "", "off by one") if found[0] == "wait" and early and state.arrived else found

    patch.setattr("treadle.kernel.join.verdict", verdict)


def join_asleep(patch: pytest.MonkeyPatch) -> None:
    """A branch that fails last never wakes the join."""
    patch.setattr("treadle.kernel.join._evaluate_site", lambda *_: None)


def timers_never_cleared(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(cancel, "clear_timers", lambda *_args, **_more: None)


def timer_not_told_to_the_store(patch: pytest.MonkeyPatch) -> None:
    honest = timers.start

    def start(d: Any, *args: Any, **more: Any) -> None:
        honest(d, *args, **more)
        d.effects.pop()

    patch.setattr(timers, "start", start)


def late_result_applied(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(on_answer, "_executing", lambda d, token_id, *_: d.state.tokens.get(token_id))


def overlay_leaks(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(writing, "scope_frame", lambda *_: None)


def zombies_commit(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Leases, "check", lambda *_: None)


def states_outlive_the_lease(patch: pytest.MonkeyPatch) -> None:
    """An engine that takes a shard again trusts what it remembers, and one whose commit failed goes on."""
    patch.setattr(Hots, "drop_unless", lambda *_: None)
    patch.setattr(Hots, "clear", lambda *_: None)


def lost_work_stays_lost(patch: pytest.MonkeyPatch) -> None:
    async def replace_nobody(*_: Any) -> None:
        """The work of the last owner is not looked for."""

    patch.setattr(Recovery, "_replace_workers", replace_nobody)


@pytest.mark.slow
@pytest.mark.interpreted
@pytest.mark.parametrize(
    "plant",
    [
        quorum_off_by_one,
        join_asleep,
        timers_never_cleared,
        timer_not_told_to_the_store,
        late_result_applied,
        overlay_leaks,
        zombies_commit,
        states_outlive_the_lease,
        lost_work_stays_lost,
    ],
)
def test_a_planted_bug_is_found(plant: Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    assert next(rules(), None) is not None, f"{len(SEEDS)} seeds and nobody noticed {plant.__name__}"
