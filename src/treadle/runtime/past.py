"""The state of a run at a moment of its past.

Owns the fold of a part of a history. Must not be used to decide: the current state is the coordinator's.
"""

from __future__ import annotations

from treadle.errors import CommandRefused
from treadle.kernel.evolve import replay
from treadle.kernel.state import RunState
from treadle.model.ids import RunId
from treadle.runtime.command.commander import Commander
from treadle.runtime.command.finding import unknown
from treadle.runtime.view.moments import Moment, seq_of
from treadle.store.port import RunQuery


async def state_at(commander: Commander, run: RunId, at: Moment) -> RunState:
    """The state at the end of the decision that `at` lies in. Raises CommandRefused if there is no such
    event, or it is no longer kept."""
    rows = await commander.store.find_runs(RunQuery(run=run))
    if not rows:
        raise await unknown(commander.store, run)
    history = await commander.store.history(run, 0, await seq_of(commander.store, rows[0], at))
    last = history[-1]
    if last.seq != len(history):
        raise CommandRefused("NOT_FOUND", f"of run {run!r} only the first and the last event are kept")
    graph = await commander.library.graph_of(history)
    assert graph is not None, "a run's version stays deployed"
    return replay(graph, history)
