"""The parts that all checks of a migration share: the list of obstacles, and the visits, arrivals and groups that count
(6.5)."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from treadle.kernel import standing
from treadle.kernel.group_state import Arrival, Group
from treadle.kernel.state import RunState, Token
from treadle.model.ids import GroupId
from treadle.model.states import Mode

VISITS_NAMED = 3
"""Visits that an entry names; of more it says how many."""


class Obstacle(Struct):
    """One thing in the way of a migration."""

    place: str
    """The thing: `node judge`, `join at decide`, `state`."""
    message: str
    visits: list[int] = []
    """The visits it is about."""

    def told(self) -> str:
        """The message, with the visits it is about."""
        if not self.visits:
            return self.message
        named = ", ".join(map(str, self.visits[:VISITS_NAMED]))
        more = f" and {len(self.visits) - VISITS_NAMED} more" if len(self.visits) > VISITS_NAMED else ""
        return f"{self.message} (visit{'s' if len(self.visits) > 1 else ''} {named}{more})"


class Obstacles:
    """A list of obstacles, one for each place and message."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, str], Obstacle] = {}

    def __iter__(self) -> Iterator[Obstacle]:
        return iter(self._found.values())

    def add(self, place: str, message: str, visit: int = 0) -> None:
        """Add an obstacle, or another visit that it is about."""
        entry = self._found.setdefault((place, message), Obstacle(place, message, []))
        if visit and visit not in entry.visits:
            entry.visits.append(visit)


def visits(state: RunState) -> Iterator[Token]:
    """The visits that count: live ones, failed ones that may be retried, and those that come back with them."""
    for token in state.tokens.values():
        if token.mode is Mode.FORWARD:
            yield token
    for kept in state.fallen.values():
        if kept.token.mode is Mode.FORWARD:
            yield kept.token


def arrivals(state: RunState) -> Iterator[Arrival]:
    """The arrivals that wait at joins, or would wait there again after a retry."""
    yield from state.arrivals.values()
    for kept in state.fallen.values():
        yield from kept.arrivals
    yield from state.fallen_arrivals.values()


def groups(state: RunState) -> Iterator[Group]:
    """The groups that something still refers to."""
    for group in state.groups.values():
        if is_needed(state, group):
            yield group


def is_needed(state: RunState, group: Group) -> bool:
    """Whether something is in the group, may come back to it, or a join of it is undecided."""
    return bool(
        group.units
        or group.retained
        or standing.unspawned(group)
        or group.id in state.empty
        or _is_around(state, group.id)
        or any(site.status == "open" for site in group.sites)
    )


def _is_around(state: RunState, identity: GroupId) -> bool:
    return any(identity == outer for empty in state.empty for outer, _ in state.groups[empty].frames)
