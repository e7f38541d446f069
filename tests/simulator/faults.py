"""Whether something goes wrong here and now. Owns the one switch that ends all faults, and the count of each."""

from __future__ import annotations

from collections import Counter

from tests.simulator.draw import Draw
from tests.simulator.plan import Plan


class Faults:
    """Asked at every opportunity."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._draw = Draw(plan.seed, "faults")
        self.calm = False
        """Set when the safety phase is over: from then on nothing goes wrong any more."""
        self.seen: Counter[str] = Counter()

    def happens(self, fault: str, scale: float = 1.0) -> bool:
        """Whether this fault strikes now; `scale` makes it rarer or more frequent than the plan's rate."""
        if self.calm or not self._draw.chance(self._plan.rate_of(fault, scale)):
            return False
        self.seen[fault] += 1
        return True
