"""Scripted outcomes: chooses the outcome that an execution takes.

Owns the choice of the most specific mock and the position in each list of outcomes. A taken outcome is remembered by
execution (run, visit, attempt): if the engine crashes and the same attempt is executed again, it takes the same outcome
and no list moves on. So the script belongs to the world, not to the engine, and survives every crash.
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
    """The executed thing: a node's task or its compensation, or one step of either."""

    node: str
    compensation: bool = False
    step: str | None = None


class Script:
    """All mocks of a world, by address."""

    def __init__(self, mocks: Mapping[str, Sequence[Outcome]] | None = None) -> None:
        self._outcomes = mocks or {}
        self._refs: set[str] = set()
        self._mocks: dict[MockPlace, list[Address]] = {}
        self._used: Counter[Address] = Counter()
        self._taken: dict[ExecutionId, list[Outcome | None]] = defaultdict(list)

    def learn(self, refs: Iterable[str]) -> None:
        """Adds node refs: addresses are read against all known refs."""
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
        """Whether a mock replaces this task or step, at least for one branch."""
        return place in self._mocks

    def reading(self, execution: ExecutionId) -> ScriptReader:
        """The outcomes of one execution, from its beginning."""
        return ScriptReader(self, self._taken[execution])

    def next_outcome(self, place: MockPlace, stack: tuple[int, ...]) -> Outcome | None:
        """A new outcome for a visit with these branch indexes; None if no mock fits it."""
        for address in self._mocks.get(place, ()):
            if fits_stack(address.indexes, stack):
                outcomes = self._outcomes[str(address)]
                position = min(self._used[address], len(outcomes) - 1)
                self._used[address] += 1
                return outcomes[position]
        return None


class ScriptReader:
    """Reads the outcomes of one execution in order: first those it took before a crash, then new ones."""

    def __init__(self, script: Script, taken: list[Outcome | None]) -> None:
        self._script = script
        self._taken = taken
        self._position = 0

    def take(self, place: MockPlace, stack: tuple[int, ...]) -> Outcome | None:
        """The next outcome; None if no mock fits, which is remembered as well."""
        if self._position == len(self._taken):
            self._taken.append(self._script.next_outcome(place, stack))
        self._position += 1
        return self._taken[self._position - 1]

    def amend(self, outcome: Outcome) -> None:
        """Replaces the outcome of a held execution: executed again, it takes this one at once."""
        self._taken[self._position - 1] = outcome
