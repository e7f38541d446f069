"""Starts as flow control (6.7) takes them: the input of their keys, and the effect that keeps their place.

Owns nothing. Must not know the books.
"""

from __future__ import annotations

from typing import Any

from treadle.graph.execution_graph import GraphFlow
from treadle.kernel.deciding import Refused
from treadle.kernel.fork import status_at
from treadle.kernel.points import Past
from treadle.kernel.start_place import StartPlace
from treadle.model import commands as c
from treadle.model import effects as f
from treadle.model.errors import Rejection
from treadle.model.events import Beginning, RunStarted
from treadle.model.ids import RunId
from treadle.model.states import RUN_ENDED
from treadle.runtime.coordinate.gathering import Item

Json = Any


def held_place(workflow: str, place: StartPlace) -> f.HoldPlace:
    """Keeps a place, as the run has it now."""
    why = place.why if place.started is None else ""
    return f.HoldPlace(workflow, place.version, place.keys, place.priority, why, place.due, place.since)


def misplaced(run: RunId, workflow: str) -> Rejection:
    """The rejection of a start whose id lies outside the home of its workflow."""
    text = f"workflow {workflow!r} limits its starts, so the id {run!r} does not fit it: start it without an id"
    return Rejection("STALE_VERSION", text)


def input_of(item: Item, command: c.ForkRun, flow: GraphFlow) -> Json:
    """The input of a fork: its keys are those of the run it comes from, unless it changes the input. Those of a batch
    are those of its first item, which is what a queued batch begins with."""
    began = item.past.history[0] if item.past is not None else None
    value = began.input if isinstance(began, Beginning) else {}
    is_whole = isinstance(began, RunStarted)
    if command.changes.input is not None:
        value, is_whole = command.changes.input, True
    return value["items"][0] if flow.batch is not None and is_whole else value


def is_live_fork(past: Past, command: c.ForkRun) -> bool:
    """Whether a fork is a start: the fork of a run that has ended by its point is none."""
    try:
        return status_at(past, command) not in RUN_ENDED
    except Refused:
        return False  # there is no such point: the fork is refused
