"""The clock of nodes that share a store: the store's time, whatever is done to the machine's own."""

from __future__ import annotations

import pytest

from treadle.runtime.surroundings import clock as clocks
from treadle.runtime.surroundings.clock import SharedClock


class Times:
    """What the machine says."""

    wall, mono = 1_000_000, 500

    def time_ns(self) -> int:
        return self.wall * 1_000_000

    def monotonic_ns(self) -> int:
        return self.mono * 1_000_000


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Times:
    times = Times()
    monkeypatch.setattr(clocks, "time", times)
    return times


def test_before_anybody_has_said_anything_it_is_the_machines(machine: Times) -> None:
    assert SharedClock().now() == machine.wall


def test_it_follows_the_store(machine: Times) -> None:
    clock = SharedClock()
    clock.hear(7_000)
    machine.mono += 40
    assert clock.now() == 7_040


def test_setting_the_machines_clock_changes_nothing(machine: Times) -> None:
    clock = SharedClock()
    clock.hear(7_000)
    machine.wall += 3_600_000
    machine.mono += 5
    assert clock.now() == 7_005


def test_an_answer_that_was_long_under_way_does_not_set_it_back(machine: Times) -> None:
    clock = SharedClock()
    clock.hear(7_000)
    machine.mono += 5_000
    clock.hear(7_100, took_ms=4_950)
    assert clock.now() == 12_000, "the store's clock was at 7,100 some time in the last five seconds: nothing new"
    clock.hear(11_000, took_ms=100)
    assert clock.now() == 11_100
    clock.hear(20_000, took_ms=100)
    assert clock.now() == 20_000
