"""Lines of waiters, one per signal name: the visits that wait for it, and the signals of that name that are not taken
yet.

Owns the index that A9 needs. Promises that finding the waiter of a signal, or the signal of a waiter, does not look at
those with another key: ten thousand visits that wait for one name, each with its own key, cost what one costs. Must not
decide which waiter takes which signal (`signals`). Composite keys (a list, an object) share one place, and `signals`
compares them.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import merge
from typing import Any

from msgspec import Struct

from treadle.model.ids import TokenId

Json = Any
Index = tuple[bool, Any] | None
"""The place of a key: by value, with booleans apart from numbers; None for a composite."""


class SignalLine(Struct):
    """See the module's docstring. Numbers are the order in which waiters have come."""

    last: int = 0
    open: dict[tuple[TokenId, str | None], int] = {}
    """Waiters whose key is not known beforehand: `signal` actions without one (None), and armed triggers."""
    keyed: dict[Index, dict[TokenId, int]] = {}
    """`signal` actions with a key."""
    places: dict[TokenId, list[Any]] = {}
    """The places of each waiter: transitions (or None) in `open`, indexes of keys in a tuple of one."""
    kept: dict[int, None] = {}
    """Signals that are not taken yet, oldest first."""
    kept_by_key: dict[Index, dict[int, None]] = {}


Lines = dict[str, SignalLine]
_Waiter = tuple[int, TokenId, str | None]


def index_of(key: Json) -> Index:
    if isinstance(key, list | dict):
        return None
    return isinstance(key, bool), key


def join_line(lines: Lines, name: str, token: TokenId, transition: str | None) -> None:
    """Enter a waiter without a key, or a trigger, which computes its key when a signal comes."""
    line = _line(lines, name)
    line.last += 1
    line.open[token, transition] = line.last
    line.places.setdefault(token, []).append(transition)


def join_line_by_key(lines: Lines, name: str, token: TokenId, key: Json) -> None:
    line, index = _line(lines, name), index_of(key)
    line.last += 1
    line.keyed.setdefault(index, {})[token] = line.last
    line.places.setdefault(token, []).append((index,))


def leave_line(lines: Lines, name: str, token: TokenId) -> None:
    """Take a visit out of the line of this name."""
    line = lines.get(name)
    if line is None:
        return
    for place in line.places.pop(token, ()):
        if isinstance(place, tuple):
            _drop(line.keyed, place[0], token)
        else:
            del line.open[token, place]
    _forget_idle(lines, name, line)


def keep_signal(lines: Lines, name: str, key: Json, signal: int) -> None:
    line = _line(lines, name)
    line.kept[signal] = None
    line.kept_by_key.setdefault(index_of(key), {})[signal] = None


def drop_signal(lines: Lines, name: str, key: Json, signal: int) -> None:
    line = lines[name]
    del line.kept[signal]
    _drop(line.kept_by_key, index_of(key), signal)
    _forget_idle(lines, name, line)


def has_waiters(lines: Lines, name: str) -> bool:
    line = lines.get(name)
    return line is not None and bool(line.places)


def waiters(lines: Lines, name: str, key: Json) -> Iterator[tuple[TokenId, str | None]]:
    """All waiters that may take a signal with this key, longest waiting first. Stop reading once one has taken it."""
    line = lines.get(name)
    if line is None:
        return
    keyed = line.keyed.get(index_of(key), {})
    by_key: Iterator[_Waiter] = ((number, token, None) for token, number in keyed.items())
    open_ones: Iterator[_Waiter] = ((number, token, transition) for (token, transition), number in line.open.items())
    for waiter in merge(by_key, open_ones, key=_number):
        yield waiter[1], waiter[2]


def kept_signals(lines: Lines, name: str) -> list[int]:
    """Signals of this name that are not taken yet, oldest first."""
    line = lines.get(name)
    return list(line.kept) if line is not None else []


def kept_signals_by_key(lines: Lines, name: str, key: Json) -> list[int]:
    line = lines.get(name)
    return list(line.kept_by_key.get(index_of(key), ())) if line is not None else []


def _number(waiter: _Waiter) -> int:
    return waiter[0]


def _line(lines: Lines, name: str) -> SignalLine:
    line = lines.get(name)
    if line is None:
        line = lines[name] = SignalLine()
    return line


def _drop(index: dict[Index, dict[Any, Any]], place: Index, member: Any) -> None:
    del index[place][member]
    if not index[place]:
        del index[place]


def _forget_idle(lines: Lines, name: str, line: SignalLine) -> None:
    if not line.places and not line.kept:
        del lines[name]
