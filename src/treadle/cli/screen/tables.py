"""Tables for people: rows laid out in as many columns of characters as a terminal has.

Owns what gives way where there is not room for all. Promises that what one must type to go on (the end of a run's id,
a gate's number, a node's name) is the last to be cut, and is cut where it does not matter; that nothing gives way on a
pipe, which has room for everything. Must not know what the rows are about.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from textwrap import wrap
from typing import Literal, NamedTuple

from rich.cells import cell_len, set_cell_size
from rich.text import Text

GAP = 2
CUT_MIN = 8
"""Characters that are left of what is cut at its end."""
FRONT_MIN = 13
"""Characters that are left of what is cut at its front: `…` and the last twelve of a run's id, which name it."""
WRAP_MIN = 24
"""Characters of a line of a text that goes on below."""

How = Literal["cut", "front", "leave", "wrap"]
Gives = tuple[How, str]
"""How a column gives way: it is cut at its end, or at its front, is left out, or goes on in lines of its own."""


class Column(NamedTuple):
    """One that is shown."""

    name: str
    width: int
    how: How | None = None


def lay_out(
    columns: Sequence[str], rows: Sequence[Mapping[str, str]], width: int, gives: Sequence[Gives] = ()
) -> list[Column]:
    """Which columns are shown, and how wide. They give way in the order of `gives`; what is not named there never does.
    Without any, the widest is cut again and again. An empty column that may be left out is."""
    empty = {name for how, name in gives if how == "leave" and not any(row[name] for row in rows)}
    natural = {name: _natural(name, rows) for name in columns if name not in empty}
    widths = dict(natural)
    hows: dict[str, How] = {}
    for how, name in gives:
        over = _over(widths, width)
        if name not in widths or over <= 0:
            continue
        if how == "leave":
            del widths[name]
            continue
        least = {"cut": CUT_MIN, "front": FRONT_MIN, "wrap": WRAP_MIN}[how]
        least = min(max(least, len(title(name))), widths[name])
        if widths[name] > least:
            widths[name], hows[name] = max(widths[name] - over, least), how
    for _how, name in gives:  # what was left out may have made more room than was wanted
        if name in hows and name in widths:
            widths[name] = min(widths[name] - min(_over(widths, width), 0), natural[name])
    while not gives and _over(widths, width) > 0:
        widest = max(widths, key=lambda name: widths[name])
        if widths[widest] <= CUT_MIN:
            break
        widths[widest], hows[widest] = widths[widest] - 1, "cut"
    return [Column(name, size, hows.get(name)) for name, size in widths.items()]


def title(name: str) -> str:
    """What stands above a column."""
    return name.replace("_", " ")


def lines(
    columns: Sequence[Column], rows: Sequence[Mapping[str, str]], styles: Mapping[str, str] | None = None
) -> list[Text]:
    """The table, its head included."""
    drawn = [Text("".join(_padded(title(one.name), one.width) for one in columns).rstrip(), style="dim")]
    for row in rows:
        cells = {one.name: _pieces(row[one.name], one) for one in columns}
        for number in range(max((len(pieces) for pieces in cells.values()), default=0)):
            line = Text()
            for one in columns:
                piece = cells[one.name][number] if number < len(cells[one.name]) else ""
                line.append(_padded(piece, one.width), style=(styles or {}).get(piece, ""))
            line.rstrip()
            drawn.append(line)
    return drawn


def _natural(name: str, rows: Sequence[Mapping[str, str]]) -> int:
    return max(len(title(name)), *(cell_len(row[name]) for row in rows)) if rows else len(title(name))


def _over(widths: Mapping[str, int], width: int) -> int:
    return sum(widths.values()) + GAP * (len(widths) - 1) - width


def _padded(text: str, width: int) -> str:
    return text + " " * (width - cell_len(text) + GAP)


def _pieces(text: str, column: Column) -> list[str]:
    """The lines of a cell: one, but where it goes on below."""
    if cell_len(text) <= column.width:
        return [text]
    if column.how == "wrap":
        return wrap(text, column.width)
    if column.how == "front":
        while cell_len(text) > column.width - 1:
            text = text[1:]
        return [f"…{text}"]
    return [set_cell_size(text, column.width - 1).rstrip() + "…"]
