"""Points of a history: where its decisions end, and which of them a person means (6.1, 6.3). Pure.

A decision is all events of one commit of one run. In the middle of a decision the state is on its way between two
others, so a point is always the end of one.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

from msgspec import Struct

from treadle.kernel.deciding import Refused
from treadle.model import events as e
from treadle.model.commands import ForkRun
from treadle.model.ids import TokenId
from treadle.model.states import Mode, Waiting


class Past(Struct):
    """A run's history, and the sequence numbers at which its decisions end."""

    history: Sequence[e.Event]
    ends: Sequence[int]


def end_of(ends: Sequence[int], seq: int) -> int:
    """The end of the decision that an event lies in. `ends` must reach that far."""
    return ends[bisect_left(ends, seq)]


def point_of(past: Past, command: ForkRun) -> int:
    """The point a fork begins at; 0: before the run's first tokens. Refused if there is no such point."""
    if sum(part is not None for part in (command.at, command.visit, command.node)) > 1:
        raise Refused("BAD_REQUEST", "a fork begins at one point: a sequence number, a visit or a node")
    history, ends, run = past.history, past.ends, command.origin
    if not history:
        raise Refused("NOT_FOUND", f"there is no run {run!r}")
    last = history[-1].seq
    if last != len(history):
        raise Refused("NOT_FOUND", f"of run {run!r} only the first and the last event are kept")
    if command.at is not None:
        if not 1 <= command.at <= last:
            raise Refused("NOT_FOUND", f"run {run!r} has {last} events, none is number {command.at}")
        return end_of(ends, command.at)
    if command.visit is not None:
        return _before_work(past, _created(past, command.visit, run))
    if command.node is not None:
        return _before_work(past, _first_at(past, command.node, run))
    return last


def _created(past: Past, visit: TokenId, run: str) -> e.TokenCreated:
    for event in past.history:
        if isinstance(event, e.TokenCreated) and event.token == visit:
            return event
    raise Refused("NOT_FOUND", f"run {run!r} has no visit {visit}")


def _first_at(past: Past, node: str, run: str) -> e.TokenCreated:
    for event in past.history:
        if isinstance(event, e.TokenCreated) and event.node == node and event.mode is Mode.FORWARD:
            return event
    raise Refused("NOT_FOUND", f"run {run!r} has not visited a node {node!r}")


def _before_work(past: Past, created: e.TokenCreated) -> int:
    """The end of the decision that made a visit, so that its work is done again. A visit that has passed straight
    through in that decision is made again: then it is the end of the decision before."""
    place = bisect_left(past.ends, created.seq)
    end = past.ends[place]
    if not any(_is_over(event, created.token) for event in past.history[created.seq : end]):
        return end
    return past.ends[place - 1] if place else 0


def _is_over(event: e.Event, token: TokenId) -> bool:
    """Whether a visit has returned or ended by this event."""
    if isinstance(event, e.TokenWaiting):
        return event.token == token and event.reason is Waiting.SIBLINGS
    return (
        isinstance(event, e.TokenCompleted | e.TokenFailed | e.TokenTimedOut | e.TokenCancelled)
        and event.token == token
    )
