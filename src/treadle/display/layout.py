"""The layout of a drawing: places of nodes and edges, in layers from top to bottom.

    back edges set aside (depth first) → ranks (longest path) → stations on long and labelled edges
    → order within a rank (barycentres, both ways) → places (as near to the neighbours as others allow)

Nodes stand on even ranks; the odd rank below is for the labels of the edges that leave them, so that no label covers
anything. A back edge is not laid out: it is drawn around the side. Deterministic.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field

SWEEPS = 8
"""Orders hardly change after four."""


@dataclass(slots=True)
class Box:
    """A node, or a station of an edge: it has a size, and `lay_out` gives it a place. `x`, `y` is its middle."""

    width: float
    height: float
    rank: int = 0
    x: float = 0.0
    y: float = 0.0
    above: list[Box] = field(default_factory=list)
    below: list[Box] = field(default_factory=list)


@dataclass(slots=True)
class EdgeLine:
    """An edge: from box to box over stations, or, if it goes back, straight."""

    source: Box
    target: Box
    label: tuple[float, float] = (0.0, 0.0)
    """The size of its label; (0, 0): none."""
    back: bool = False
    stations: list[Box] = field(default_factory=list)

    @property
    def signpost(self) -> Box | None:
        """The station that carries the label."""
        return self.stations[0] if self.stations else None


GAP_X, GAP_Y = 26.0, 22.0


def lay_out(boxes: Sequence[Box], lines: Sequence[EdgeLine]) -> tuple[float, float]:
    """Gives every box its place, with the origin at the top left. Returns the size of the drawing."""
    if not boxes:
        return 0.0, 0.0
    _set_back_edges_aside(boxes, lines)
    _rank(boxes, lines)
    ranks = _stations(boxes, lines)
    _order(ranks)
    _place(ranks)
    return _fit(ranks)


def _set_back_edges_aside(boxes: Sequence[Box], lines: Sequence[EdgeLine]) -> None:
    out: dict[int, list[EdgeLine]] = {id(box): [] for box in boxes}
    for line in lines:
        out[id(line.source)].append(line)
    done: set[int] = set()
    open_: set[int] = set()
    for root in boxes:
        todo: list[tuple[Box, int]] = [(root, 0)] if id(root) not in done else []
        while todo:
            box, position = todo.pop()
            done.add(id(box))
            open_.add(id(box))
            leaving = out[id(box)]
            if position == len(leaving):
                open_.discard(id(box))
                continue
            todo.append((box, position + 1))
            line = leaving[position]
            if id(line.target) in open_:
                line.back = True
            elif id(line.target) not in done:
                todo.append((line.target, 0))


def _rank(boxes: Sequence[Box], lines: Sequence[EdgeLine]) -> None:
    """Longest path from above: two ranks a step."""
    waiting = {id(box): 0 for box in boxes}
    out: dict[int, list[EdgeLine]] = {id(box): [] for box in boxes}
    for line in lines:
        if not line.back:
            waiting[id(line.target)] += 1
            out[id(line.source)].append(line)
    ready = [box for box in boxes if waiting[id(box)] == 0]
    for box in ready:
        for line in out[id(box)]:
            line.target.rank = max(line.target.rank, box.rank + 2)
            waiting[id(line.target)] -= 1
            if waiting[id(line.target)] == 0:
                ready.append(line.target)


def _stations(boxes: Sequence[Box], lines: Sequence[EdgeLine]) -> list[list[Box]]:
    """Every forward edge gets a station on each rank it crosses; the first one is as large as its label."""
    ranks: list[list[Box]] = [[] for _ in range(max(box.rank for box in boxes) + 1)]
    for box in boxes:
        ranks[box.rank].append(box)
    for line in lines:
        if line.back:
            continue
        previous = line.source
        for rank in range(line.source.rank + 1, line.target.rank):
            width, height = line.label if not line.stations else (0.0, 0.0)
            station = Box(width, height, rank)
            line.stations.append(station)
            ranks[rank].append(station)
            _link(previous, station)
            previous = station
        _link(previous, line.target)
    return ranks


def _link(upper: Box, lower: Box) -> None:
    upper.below.append(lower)
    lower.above.append(upper)


def _order(ranks: list[list[Box]]) -> None:
    """Sorts each rank by the mean position of its neighbours, downwards and upwards in turn; the best order stays."""
    best, fewest = [list(rank) for rank in ranks], _crossings(ranks)
    for sweep in range(SWEEPS):
        down = sweep % 2 == 0
        for rank in ranks if down else reversed(ranks):
            positions = {id(box): index for other in ranks for index, box in enumerate(other)}

            def middle(box: Box, positions: dict[int, int] = positions, down: bool = down) -> float:
                near = box.above if down else box.below
                return sum(positions[id(each)] for each in near) / len(near) if near else positions[id(box)]

            rank.sort(key=middle)
        if (now := _crossings(ranks)) < fewest:
            best, fewest = [list(rank) for rank in ranks], now
    ranks[:] = best


def _crossings(ranks: list[list[Box]]) -> int:
    total = 0
    for upper, lower in itertools.pairwise(ranks):
        position = {id(box): index for index, box in enumerate(lower)}
        ends = [position[id(below)] for box in upper for below in sorted(box.below, key=lambda b: position[id(b)])]
        total += sum(later < earlier for index, earlier in enumerate(ends) for later in ends[index + 1 :])
    return total


def _place(ranks: list[list[Box]]) -> None:
    for rank in ranks:
        offsets = _offsets(rank)
        for box, offset in zip(rank, offsets, strict=True):
            box.x = offset - offsets[-1] / 2
    for sweep in range(SWEEPS):
        down = sweep % 2 == 0
        for rank in ranks if down else reversed(ranks):
            wanted = []
            for box in rank:
                near = (box.above if down else box.below) or [box]
                wanted.append(sum(each.x for each in near) / len(near))
            for box, x in zip(rank, _apart(wanted, _offsets(rank)), strict=True):
                box.x = x
    y = 0.0
    for index, rank in enumerate(ranks):
        height = max((box.height for box in rank), default=0.0)
        for box in rank:
            box.y = y + height / 2
        y += height + (GAP_Y if index % 2 == 0 or height else GAP_Y / 2)


def _offsets(rank: list[Box]) -> list[float]:
    """The least distance of each box's middle from the first one's."""
    found = [0.0]
    for left, right in itertools.pairwise(rank):
        found.append(found[-1] + left.width / 2 + GAP_X + right.width / 2)
    return found


def _apart(wanted: list[float], offsets: list[float]) -> list[float]:
    """The places nearest to those wanted that keep the order and the distances (isotonic regression)."""
    blocks: list[tuple[float, int]] = []
    for want, offset in zip(wanted, offsets, strict=True):
        value, count = want - offset, 1
        while blocks and blocks[-1][0] > value:
            other, weight = blocks.pop()
            value, count = (value * count + other * weight) / (count + weight), count + weight
        blocks.append((value, count))
    flat = [value for value, count in blocks for _ in range(count)]
    return [value + offset for value, offset in zip(flat, offsets, strict=True)]


def _fit(ranks: list[list[Box]]) -> tuple[float, float]:
    """Moves everything to the origin."""
    every = [box for rank in ranks for box in rank]
    left = min(box.x - box.width / 2 for box in every)
    for box in every:
        box.x -= left
    return max(box.x + box.width / 2 for box in every), max(box.y + box.height / 2 for box in every)
