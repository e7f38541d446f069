"""Scripted outcomes: which one an execution takes.

Owns the choice of the most specific mock and the counting of lists, per key. An outcome that was taken is
remembered by execution (run, visit, attempt): when an engine has died and the same attempt is executed again,
it comes to the same, and no list moves on. So the script belongs to the world, not to the engine, and
survives every crash.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from treadle.model.ids import RunId, TokenId
from treadle.testing.world.address import Address, fits_stack, parse_address
from treadle.testing.world.outcomes import Outcome


class ExecutionId(NamedTuple):
    """One attempt of one visit."""

    run: RunId
    token: TokenId
    attempt: int


class MockPlace(NamedTuple):
    """What is executed: a node's task or its compensation, or one step of either."""

    node: str
    compensation: bool = False
    step: str | None = None


class Script:
    """All mocks of a world, by the addresses they were given under."""

    def __init__(self, mocks: Mapping[str, Sequence[Outcome]] | None = None) -> None:
        self._outcomes = mocks or {}
        self._refs: set[str] = set()
        self._mocks: dict[MockPlace, list[Address]] = {}
        self._used: Counter[Address] = Counter()
        self._taken: dict[ExecutionId, list[Outcome | None]] = defaultdict(list)

    def learn(self, refs: Iterable[str]) -> None:
        """There are nodes with these refs: addresses are read against all that is known."""
        self._refs.update(refs)
        self._mocks = {}
        for text in self._outcomes:
            address = parse_address(text, self._refs)
            if address is not None:
                place = MockPlace(address.node, address.compensation, address.step)
                self._mocks.setdefault(place, []).append(address)
        for addresses in self._mocks.values():
            addresses.sort(key=lambda address: -len(address.indexes))

    def covers(self, place: MockPlace) -> bool:
        """Whether some mock replaces this task or step, for one branch at least."""
        return place in self._mocks

    def reading(self, execution: ExecutionId) -> ScriptReader:
        """The outcomes of one execution, from its beginning."""
        return ScriptReader(self, self._taken[execution])

    def next_outcome(self, place: MockPlace, stack: tuple[int, ...]) -> Outcome | None:
        """A fresh outcome for a visit with these branch indexes; None when no mock fits it."""
        for address in self._mocks.get(place, ()):
            if fits_stack(address.indexes, stack):
                outcomes = self._outcomes[str(address)]
                position = min(self._used[address], len(outcomes) - 1)
                self._used[address] += 1
                return outcomes[position]
        return None


class ScriptReader:
    """One execution reads its outcomes in order: first those it took before a crash, then fresh ones."""

    def __init__(self, script: Script, taken: list[Outcome | None]) -> None:
        self._script = script
        self._taken = taken
        self._position = 0

    def take(self, place: MockPlace, stack: tuple[int, ...]) -> Outcome | None:
        """The next outcome; None, which is remembered as well, where no mock fits."""
        if self._position == len(self._taken):
            self._taken.append(self._script.next_outcome(place, stack))
        self._position += 1
        return self._taken[self._position - 1]

    def amend(self, outcome: Outcome) -> None:
        """A held execution was told what it comes to: executed again, it comes to that at once."""
        self._taken[self._position - 1] = outcome
