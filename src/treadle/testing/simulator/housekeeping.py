"""What an engine does by itself, again and again: leases, recovery, due timers, rows left in the outbox.

Polling is the truth: whatever the fast paths after a commit have lost is found here. Which timers are due is asked of
the store, by the store's clock; an engine's own clock never decides that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from treadle.kernel.state import RunState, Token
from treadle.model.commands import FireTimer, LoseWorker
from treadle.model.effects import RunTask
from treadle.model.ids import RunId, TimerId
from treadle.model.states import Mode, RunStatus, TokenState
from treadle.testing.simulator.post import PATIENCE_FACTOR_MAX, Letter
from treadle.testing.simulator.schedule import Process

if TYPE_CHECKING:
    from treadle.testing.simulator.engine import Engine

TICK_MS = 90
"""Between two rounds: three renewals per lease."""


def keep_house(engine: Engine) -> Process:
    """For as long as the engine lives."""
    while True:
        taken = _renew(engine)
        yield 1
        unsure, engine.unsure = engine.unsure & engine.fences.keys(), set()
        if taken or unsure:
            _recover(engine, sorted({*taken, *unsure}))
        _fire_due_timers(engine)
        for row in engine.world.depot.outbox(list(engine.fences)):
            engine.deliver(row)
        yield TICK_MS


def _renew(engine: Engine) -> list[int]:
    """Renews what it holds and takes what nobody does; the shards that are newly its own."""
    taken = []
    for shard in range(engine.world.plan.shards):
        fence = engine.world.depot.lease(shard, engine.name)
        if fence is None:
            engine.fences.pop(shard, None)
        elif engine.fences.get(shard) != fence:
            engine.fences[shard] = fence
            engine.drop_states(shard)
            taken.append(shard)
    return taken


def _recover(engine: Engine, shards: list[int]) -> None:
    """Work that was handed out by somebody who may be gone, and that no row will hand out again."""
    depot = engine.world.depot
    waiting = {
        (row.run, row.effect.token, row.effect.attempt)
        for row in depot.outbox(shards)
        if isinstance(row.effect, RunTask)
    }
    for row in depot.unfinished(shards):
        state = engine.load(row.run)
        assert state is not None
        for token in list(state.tokens.values()):
            key = (row.run, token.id, token.attempt)
            mine = key in engine.executing and token.state is TokenState.EXECUTING  # else it was offered anew meanwhile
            if key not in waiting and not mine and _is_executed_locally(state, token):
                lost = LoseWorker(token.id, token.attempt, token.recoveries)
                engine.world.post.send(row.run, lost, host=engine)


def _is_executed_locally(state: RunState, token: Token) -> bool:
    """Whether some engine's own process is (or was) at work for this visit."""
    if token.state not in (TokenState.DISPATCHED, TokenState.EXECUTING):
        return False
    if token.mode is Mode.COMPENSATION:
        return True
    node = state.graph.nodes[token.node]
    return node.task is not None and node.suspends is None and node.definition.queue is None


def _fire_due_timers(engine: Engine) -> None:
    depot = engine.world.depot
    for row in depot.timers(list(engine.fences), until=depot.now):
        state = engine.states.get(row.run)
        if state is None or state.status is not RunStatus.PAUSED:
            _fire(engine, row.run, row.timer)


def _fire(engine: Engine, run: RunId, timer: TimerId) -> None:
    """Tell the run, unless it is being told; in a while it may be told again."""
    key = (run, timer)
    if key not in engine.firing:
        engine.firing.add(key)
        letter = engine.world.post.send(run, FireTimer(timer), host=engine, tries=1)
        engine.world.schedule.spawn(_let_fire_again(engine, key, letter), engine, TICK_MS)


def _let_fire_again(engine: Engine, key: tuple[RunId, TimerId], letter: Letter) -> Process:
    for _ in range(PATIENCE_FACTOR_MAX):  # an engine that is behind must not bury itself; one that died told nobody
        if not letter.queued:
            break
        yield TICK_MS
    engine.firing.discard(key)


def watch(engine: Engine, run: RunId, timer: TimerId, due: int) -> Process:
    """The fast path of a timer: the engine that set it fires it at its instant."""
    depot = engine.world.depot
    if due > depot.now:
        yield due - depot.now
    due_now = depot.timers([depot.shard_of(run)], until=depot.now)
    if engine.owns(run) and any((row.run, row.timer) == (run, timer) for row in due_now):
        _fire(engine, run, timer)
