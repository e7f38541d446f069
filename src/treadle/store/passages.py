"""Entries into places, counted over moves in order.

Owns what `entered`, `left`, `converted` and the time spent mean (`store.entities.Passage`). SQLite and the store in
memory count here; PostgreSQL does it in one query, which the contract suite compares with this. One pass: a hundred
thousand moves take a tenth of a second, where SQLite's window functions took seconds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from operator import itemgetter

from treadle.store.entities import NOWHERE, Inside, MoveRow, Passage

Chained = tuple[str, int, str, str, bool]
"""Entity, time, kind of place, place, whether it completes as success."""
Place = tuple[str, str]


class _Tally:
    __slots__ = ("converted", "entered", "spent")

    def __init__(self) -> None:
        self.entered = self.converted = 0
        self.spent: list[int] = []


def passages(moves: Iterable[MoveRow], workflow: str, since: int, inside: Inside = NOWHERE) -> list[Passage]:
    """The entries into each place since an instant, over moves in any order."""
    ours = sorted((move for move in moves if move.workflow == workflow), key=lambda move: (move.key, move.order))
    rows = ((move.key, move.at, move.kind, move.place, move.completed_as == "success") for move in ours)
    return counted(rows, since, inside)


def counted(rows: Iterable[Chained], since: int, inside: Inside = NOWHERE) -> list[Passage]:
    """The entries into each place since an instant, over moves by entity and in order. A move that leads to the same
    place is no entry. A place that `inside` names is the section that holds it."""
    held = {place: ("section", section) for place, section in inside.items()}
    tallies: dict[Place, _Tally] = {}
    for _, chain in groupby(rows, key=itemgetter(0)):
        _count(chain, since, tallies, held)
    return [
        Passage(
            *place,
            tally.entered,
            left=len(tally.spent),
            converted=tally.converted,
            spent_p50_ms=ranked(tally.spent, 50),
            spent_p95_ms=ranked(tally.spent, 95),
        )
        for place, tally in sorted(tallies.items())
    ]


def ranked(values: list[int], percent: int) -> int | None:
    """The smallest value that so many percent of the values do not exceed; None without values."""
    return sorted(values)[-(-percent * len(values) // 100) - 1] if values else None


def _count(chain: Iterator[Chained], since: int, tallies: dict[Place, _Tally], held: dict[Place, Place]) -> None:
    was: Place | None = None
    inside: tuple[_Tally, int] | None = None
    open_entries: list[_Tally] = []
    """Entries that no completion as success has followed yet."""
    for _, at, kind, place, succeeds in chain:
        here = held.get((kind, place), (kind, place))
        if here != was:
            was = here
            if inside is not None:
                inside[0].spent.append(at - inside[1])
                inside = None
            if at >= since:
                tally = tallies.get(here)
                if tally is None:
                    tally = tallies[here] = _Tally()
                tally.entered += 1
                inside = (tally, at)
                open_entries.append(tally)
        if succeeds:
            for tally in open_entries:
                tally.converted += 1
            open_entries.clear()
