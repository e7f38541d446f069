"""What a new engine does first: takes the lease, folds the open runs, and makes up for what the lost one left
undone.

Everything goes through the agenda, so that an engine may crash again while it recovers.
"""

from __future__ import annotations

from treadle.kernel.state import RunState, Token
from treadle.model.commands import LoseWorker
from treadle.model.effects import RunTask
from treadle.model.ids import RunId, TokenId
from treadle.model.states import RUN_OPEN, Mode
from treadle.store.port import OutboxRow, RunQuery
from treadle.store.rows import SHARD
from treadle.testing.delivery import is_under_way
from treadle.testing.engine import Engine
from treadle.testing.instant import instantly

EVERYTHING = 1 << 30
"""A virtual store is small: recovery reads it in one go."""


def recover(lost: Engine) -> Engine:
    """A new engine on the store the lost one left behind."""
    around = lost.around
    around.workers.lose_everything()
    instantly(around.store.release(lost.fence))
    engine = Engine(around)
    runs = instantly(around.store.find_runs(RunQuery(statuses=RUN_OPEN, shard=SHARD, limit=EVERYTHING)))
    rows = instantly(around.store.outbox(SHARD, limit=EVERYTHING))
    for row in rows:
        engine.enqueue(row)
    _arm_timers(engine)
    for run in runs:
        _replace_workers(engine, run.run, rows)
    return engine


def _arm_timers(engine: Engine) -> None:
    """Overdue ones fire at once; those of a paused run are not given."""
    for timer in instantly(engine.around.store.timers(SHARD, limit=EVERYTHING)):
        engine.arm(timer.run, timer.timer, timer.due)


def _replace_workers(engine: Engine, run: RunId, rows: list[OutboxRow]) -> None:
    """Whoever executed something is gone; what was never handed out is still in the outbox."""
    state = engine.state(run)
    assert state is not None
    waiting = {row.effect.token for row in rows if row.run == run and isinstance(row.effect, RunTask)}
    for token in state.tokens.values():
        if token.id not in waiting and _was_executed(state, token):
            _lose(engine, run, token.id, token.attempt)


def _lose(engine: Engine, run: RunId, token: TokenId, attempt: int) -> None:
    engine.agenda.at(engine.around.clock.now, lambda: _tell(engine, run, LoseWorker(token, attempt)))


def _tell(engine: Engine, run: RunId, command: LoseWorker) -> None:
    engine.handle(run, command)


def _was_executed(state: RunState, token: Token) -> bool:
    node = state.graph.nodes[token.node]
    works = token.mode is Mode.COMPENSATION or (node.task is not None and node.suspends is None)
    return works and is_under_way(token)
