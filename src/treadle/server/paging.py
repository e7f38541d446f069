"""Pages of lists that are short enough to be read as a whole: keys, hooks, nodes and the like.

Owns the query of such a list and the cut. A cursor holds the place of the last row that was shown, not its number, so
that rows which come and go meanwhile make no other row appear twice or not at all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Annotated, TypeVar

from msgspec import Meta, Struct

from treadle.server.call import HttpCall

Row = TypeVar("Row")
Place = list[int | str]
"""What a list is sorted by. It names one row, and never changes while the row is there."""
Limit = Annotated[int, Meta(ge=1, le=1_000)]


class PageQuery(Struct):
    """A page of a list."""

    limit: Limit = 100
    cursor: str | None = None


def page_of(
    call: HttpCall, rows: Iterable[Row], place: Callable[[Row], Place], *, newest_first: bool = False
) -> tuple[list[Row], str | None]:
    """The rows of the page that the request asks for, by their places, and the cursor of the next page."""
    behind: Place | None = call.cursor()
    ordered = sorted(rows, key=place, reverse=newest_first)
    if behind is not None:
        ordered = [row for row in ordered if (place(row) < behind if newest_first else place(row) > behind)]
    shown = ordered[: call.query.limit]
    return shown, call.next_cursor(place(shown[-1])) if len(ordered) > len(shown) else None
