"""The state of a run after one of its events.

Owns the fold of a part of a history. Must not be used to decide: the current state is the coordinator's.
"""

from __future__ import annotations

from treadle.errors import CommandRefused
from treadle.kernel.evolve import replay
from treadle.kernel.state import RunState
from treadle.model.events import RunStarted
from treadle.model.ids import RunId
from treadle.runtime.command.commander import Commander
from treadle.runtime.command.finding import unknown


async def state_at(commander: Commander, run: RunId, at: int) -> RunState:
    """The state after event number `at`. Raises CommandRefused if there is no such event, or it is no longer kept."""
    if at < 1:
        raise CommandRefused("BAD_REQUEST", f"events are counted from 1, got {at}")
    history = await commander.store.history(run, 0, at)
    if not history:
        raise await unknown(commander.store, run)
    started, last = history[0], history[-1]
    if last.seq != len(history):
        raise CommandRefused("NOT_FOUND", f"of run {run!r} only the first and the last event are kept")
    if last.seq < at:
        raise CommandRefused("NOT_FOUND", f"run {run!r} has {last.seq} events, none is number {at}")
    assert isinstance(started, RunStarted)
    graph = await commander.library.graph(started.workflow, started.version)
    assert graph is not None, "a run's version stays deployed"
    return replay(graph, history)
