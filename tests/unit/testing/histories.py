"""Histories written by hand, for the tests of everything that reads one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from treadle.model import events as e
from treadle.model.events import Event
from treadle.model.ids import RunId, TokenId
from treadle.testing.scenario.observed import Observed, ObservedRun
from treadle.testing.world.projection import Projection

REFS = frozenset({"ask", "judge", "decide"})


def numbered(events: Iterable[Any]) -> list[Event]:
    """Events made with seq 0, numbered in order."""
    found = []
    for number, event in enumerate(events, 1):
        event.seq = number
        found.append(event)
    return found


def started(at: int = 0, **fields: Any) -> Event:
    return e.RunStarted(0, at, RunId("run-1"), "panel", 1, "hash", {}, **fields)


def created(token: int, node: str, path: str = "root", frames: Any = (), **fields: Any) -> Event:
    return e.TokenCreated(0, 0, TokenId(token), node, path, frames, **fields)


def dispatched(token: int, attempt: int = 1, **fields: Any) -> Event:
    return e.TokenDispatched(0, 0, TokenId(token), attempt, {}, **fields)


def begun(token: int, attempt: int = 1, **fields: Any) -> list[Event]:
    """Handed out and taken up in one commit, as local work is."""
    return [dispatched(token, attempt, **fields), e.TokenStarted(0, 0, TokenId(token), attempt)]


def completed(token: int, output: Any = None, at: int = 0, **fields: Any) -> Event:
    return e.TokenCompleted(0, at, TokenId(token), output, **fields)


def read(*events: Any) -> Projection:
    projection = Projection()
    projection.apply(numbered(events))
    return projection


def observed(projection: Projection, now: int = 0, **fields: Any) -> Observed:
    """A world with one run; `state`, `output`, `dispatches`, `awaiting` as given."""
    context = {"state": fields.pop("state", {}), "output": fields.pop("output", {})}
    awaiting = fields.pop("awaiting", None)
    dispatches = fields.pop("dispatches", 0)
    run = ObservedRun("panel", REFS, projection, lambda: context, lambda _v: dispatches, lambda _v: awaiting)
    return Observed(run, {"panel": [run]}, now, list)
