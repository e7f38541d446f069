"""Seeded choices. Owns all randomness of the simulator: whatever is drawn here follows from the seed alone.

Streams are independent: the definition, the faults and the timing of a seed each have their own, so that a
change in how many faults are drawn leaves the definition as it was.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import TypeVar

T = TypeVar("T")


class Draw:
    """One stream of choices."""

    __slots__ = ("_random",)

    def __init__(self, seed: int, stream: str) -> None:
        self._random = Random(f"{seed}/{stream}")

    def chance(self, probability: float) -> bool:
        """True in that share of cases; nothing is drawn for a probability of 0."""
        return probability > 0 and self._random.random() < probability

    def between(self, low: int, high: int) -> int:
        """A whole number, both ends included."""
        return low + int(self._random.random() * (high - low + 1))

    def share(self) -> float:
        """A number in [0, 1)."""
        return self._random.random()

    def pick(self, options: Sequence[T]) -> T:
        """One of them, all alike."""
        return options[int(self._random.random() * len(options))]

    def weighted(self, options: Sequence[tuple[T, float]]) -> T:
        """One of them, in proportion to its weight."""
        point = self._random.random() * sum(weight for _, weight in options)
        for option, weight in options:
            point -= weight
            if point < 0:
                return option
        return options[-1][0]

    def some(self, options: Sequence[T], probability: float) -> list[T]:
        """Those that a coin for each of them says, in their order."""
        return [option for option in options if self._random.random() < probability]
