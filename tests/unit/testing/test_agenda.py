"""Order on the virtual clock, and the crash points along the way."""

from __future__ import annotations

from random import Random

import pytest

from treadle.testing.world.agenda import Agenda
from treadle.testing.world.clock import EPOCH_MS, FakeClock
from treadle.testing.world.fuse import Crashed, Fuse
from treadle.testing.world.instant import instantly


def drained(agenda: Agenda, happened: list[str]) -> list[str]:
    while agenda.next_instant() is not None:
        agenda.pop()()
    return happened


def test_things_happen_by_instant_then_in_the_order_scheduled_timers_last() -> None:
    agenda, happened = Agenda(), []
    agenda.at(5, lambda: happened.append("timer"), last=True)
    agenda.at(5, lambda: happened.append("first"))
    agenda.at(1, lambda: happened.append("early"))
    agenda.at(5, lambda: happened.append("second"))
    assert drained(agenda, happened) == ["early", "first", "second", "timer"]


def test_what_was_called_off_does_not_happen_and_does_not_hold_up_the_clock() -> None:
    agenda, happened = Agenda(), []
    agenda.at(1, lambda: happened.append("never")).cancelled = True
    agenda.at(9, lambda: happened.append("later"))
    assert agenda.next_instant() == 9
    assert drained(agenda, happened) == ["later"]


def test_a_seed_permutes_one_instant_and_never_two() -> None:
    def play(seed: int) -> list[str]:
        agenda, happened = Agenda(Random(seed)), []
        for name in "abcdef":
            agenda.at(1, lambda name=name: happened.append(name), last=name == "f")  # type: ignore[misc]
        agenda.at(2, lambda: happened.append("z"))
        return drained(agenda, happened)

    orders = {tuple(play(seed)) for seed in range(20)}
    assert len(orders) > 10
    assert all(order[-1] == "z" for order in orders)
    assert play(7) == play(7)


def test_time_does_not_go_back() -> None:
    clock = FakeClock()
    clock.advance(5)
    assert clock.now == EPOCH_MS + 5
    with pytest.raises(ValueError, match="cannot go back"):
        clock.advance_to(EPOCH_MS)


def test_a_fuse_blows_once_at_the_nth_passing_of_its_point() -> None:
    fuse = Fuse()
    fuse.passing("after_commit")
    fuse.arm("after_commit", 2, down_ms=3)
    fuse.passing("before_commit")
    fuse.passing("after_commit")
    with pytest.raises(Crashed) as crash:
        fuse.passing("after_commit")
    assert (crash.value.committed, crash.value.down_ms) == (True, 3)
    assert not fuse.armed
    fuse.passing("after_commit")


def test_a_coroutine_that_would_wait_is_a_bug() -> None:
    import asyncio

    async def waits() -> None:
        await asyncio.get_running_loop().create_future()

    async def answers() -> int:
        return 3

    assert instantly(answers()) == 3
    with pytest.raises(RuntimeError):
        instantly(waits())
