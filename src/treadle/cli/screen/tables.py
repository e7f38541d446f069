"""Tables for people, laid out in the width of the terminal.

Owns which columns are cut, wrapped or left out if there is not room for all. Promises that what the user types next
(the end of a run's id, a gate's number, a node's name) is cut last, and not in its significant part; that nothing is
cut on a pipe, which is wide enough. Must not know what the rows are about.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from textwrap import wrap
from typing import Literal, NamedTuple

from rich.cells import cell_len, set_cell_size
from rich.text import Text

GAP = 2
CUT_MIN = 8
"""Characters that a text cut at its end keeps at least."""
FRONT_MIN = 13
"""Characters that a text cut at its front keeps at least: `…` and the last twelve of a run's id, which name it."""
WRAP_MIN = 24
"""Characters of a line that a wrapped text keeps at least."""

How = Literal["cut", "front", "leave", "wrap"]
Gives = tuple[How, str]
"""How a column gives way: cut at its end (`cut`) or front (`front`), left out (`leave`), or wrapped (`wrap`)."""


class Column(NamedTuple):
    """A column that is shown."""

    name: str
    width: int
    how: How | None = None


def lay_out(
    columns: Sequence[str], rows: Sequence[Mapping[str, str]], width: int, gives: Sequence[Gives] = ()
) -> list[Column]:
    """The columns that are shown, and their widths. Columns give way in the order of `gives`; those not named there
    never do. Without `gives` the widest column is cut until all fit. An empty column that may be left out is."""
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
    for _how, name in gives:  # leaving a column out may have made more room than needed: give it back
        if name in hows and name in widths:
            widths[name] = min(widths[name] - min(_over(widths, width), 0), natural[name])
    while not gives and _over(widths, width) > 0:
        widest = max(widths, key=lambda name: widths[name])
        if widths[widest] <= CUT_MIN:
            break
        widths[widest], hows[widest] = widths[widest] - 1, "cut"
    return [Column(name, size, hows.get(name)) for name, size in widths.items()]


def title(name: str) -> str:
    """The heading of a column."""
    return name.replace("_", " ")


def lines(
    columns: Sequence[Column], rows: Sequence[Mapping[str, str]], styles: Mapping[str, str] | None = None
) -> list[Text]:
    """The lines of the table, with the headings first."""
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
    """The lines of a cell: several if it is wrapped, else one."""
    if cell_len(text) <= column.width:
        return [text]
    if column.how == "wrap":
        return wrap(text, column.width)
    if column.how == "front":
        while cell_len(text) > column.width - 1:
            text = text[1:]
        return [f"…{text}"]
    return [set_cell_size(text, column.width - 1).rstrip() + "…"]
