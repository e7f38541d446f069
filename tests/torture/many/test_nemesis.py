"""When the faults are over everybody is up: else the torture blames the product for what it has done itself."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import pytest

from tests.torture.journal import Journal
from tests.torture.many.crew import Victim
from tests.torture.many.nemesis import Nemesis


class NoDatabase:
    """Nothing to do anything to."""

    def heal(self) -> None:
        """Nothing lasts."""


class Hands:
    """A crew without processes."""

    def __init__(self) -> None:
        self.hands = NoDatabase()
        self.victims = [Victim("worker-1", "worker", "")]
        self.state = "up"

    def set_skew(self, _seconds: int) -> None:
        """Nobody has a clock."""

    def start(self, _victim: Victim) -> None:
        assert self.state == "dead", "a life begins where one has ended"
        self.state = "up"

    def kill(self, _victim: Victim) -> None:
        self.state = "dead"

    def signal(self, _victim: Victim, number: signal.Signals) -> None:
        self.state = {signal.SIGSTOP: "stopped", signal.SIGCONT: "up", signal.SIGTERM: "dead"}[number]

    def wait_gone(self, _victim: Victim) -> None:
        assert self.state == "dead"


@pytest.mark.parametrize("fault", ["_kill", "_stop", "_term"])
def test_whoever_is_hurt_at_the_end_is_up_again(fault: str, tmp_path: Path) -> None:
    ways = set()
    for seed in range(50):
        hands: Any = Hands()
        nemesis = Nemesis(hands, Journal(tmp_path / "faults"), seed)
        (victim,) = hands.victims
        getattr(nemesis, fault)(victim)
        assert hands.state != "up" and victim.hurt
        nemesis._calm_down()
        assert hands.state == "up" and not victim.hurt, f"seed {seed}"
        ways.add(nemesis.done["kill"])
    assert ways == ({0, 1} if fault == "_stop" else {1} if fault == "_kill" else {0}), "some die in their sleep"
