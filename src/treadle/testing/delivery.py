"""Effects → what the world does about them: work handed out, children started, parents told, signals carried.

Owns one handler per effect. Promises at-least-once: a row is acknowledged only after what it asks for has
been done, and doing it twice is harmless, because dispatches are fenced by attempt, children by their id and
commands count once. A scenario sends nothing: webhooks count as acknowledged, notices to people and `emit`s
go nowhere.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from treadle.actions.protocol import AttemptFacts
from treadle.expression.paths import MISSING
from treadle.kernel.identity import run_facts
from treadle.kernel.state import RunState, Token
from treadle.kernel.view import branch_of
from treadle.model import commands as c
from treadle.model import effects as f
from treadle.model.errors import Error, Rejection
from treadle.model.ids import RunId
from treadle.model.states import TokenState
from treadle.runtime import relatives
from treadle.runtime.answer import result_command
from treadle.store.port import OutboxRow
from treadle.testing.artifacts import RunArtifacts
from treadle.testing.mocks import Place

if TYPE_CHECKING:
    from treadle.testing.engine import Engine

WORKER = "virtual"
"""The name under which work of a queue is claimed here."""
QUEUE_LEASE_MS = 1 << 50
"""Virtual workers of a queue never go silent."""


def deliver(engine: Engine, row: OutboxRow) -> None:
    """Does what a row asks for, then acknowledges it; effects that only inform somebody are just
    acknowledged."""
    handler = _HANDLERS.get(type(row.effect))
    told = relatives.letter(row.run, row.effect)
    if handler is not None:
        handler(engine, row)
    elif told is not None:
        engine.handle(*told)
    if type(row.effect) not in _HAND_OUTS:
        engine.acknowledge(row)


def _run_task(engine: Engine, row: OutboxRow) -> None:
    effect: f.RunTask = row.effect  # type: ignore[assignment]
    state = engine.state(row.run)
    token = state.tokens.get(effect.token) if state else None
    if state is None or token is None or token.attempt != effect.attempt or not is_under_way(token):
        engine.acknowledge(row)  # withdrawn before anybody began
        return
    deployed = engine.around.catalog.find(state.graph.workflow_name, state.version)
    assert deployed is not None
    if effect.queue is not None and not engine.around.script.covers(Place(effect.node)):
        engine.acknowledge(row)  # offered, and here is nobody to claim it
        return
    if not engine.slots.take(row, effect):
        return
    worker = _claim(engine, row.run, effect)
    frames = state.records[effect.record].frames if effect.record is not None else token.frames
    stack = tuple(index for _group, index in frames)
    result, elapsed_ms = engine.around.workers.begin(deployed, effect, _facts(engine, state, token), stack)
    engine.acknowledge(row)
    if result is not None:
        command = result_command(effect.token, effect.attempt, result, worker)
        engine.answer_later(row.run, command, elapsed_ms)
    engine.around.fuse.passing("after_dispatch")


def is_under_way(token: Token) -> bool:
    """Somebody executes it, or is about to."""
    return token.state in (TokenState.DISPATCHED, TokenState.EXECUTING)


def _claim(engine: Engine, run: RunId, effect: f.RunTask) -> str | None:
    """Work of a queue and work under a limit begins with a word of its own; other work has begun already."""
    if effect.queue is not None:
        until = engine.around.clock.now + QUEUE_LEASE_MS
        engine.handle(run, c.StartAttempt(effect.token, effect.attempt, WORKER, until))
        return WORKER
    if effect.slot is not None:
        engine.handle(run, c.StartAttempt(effect.token, effect.attempt))
    return None


def _facts(engine: Engine, state: RunState, token: Token) -> AttemptFacts:
    branch = branch_of(state, token.frames)
    return AttemptFacts(
        run=state.run,
        token=token.id,
        attempt=token.attempt,
        node=token.node,
        workflow=state.graph.workflow_name,
        path=token.path,
        retries=token.retries,
        branch=None if branch is MISSING else branch,
        about=partial(run_facts, state),
        cel_bytes_max=state.graph.cel_bytes_max,
        artifacts=RunArtifacts(engine.around.blobs, _lineage(engine, state)),
    )


def _lineage(engine: Engine, state: RunState) -> list[RunState]:
    """The run, and the ancestors whose artifacts it may read."""
    lineage = [state]
    while (parent := engine.around.inherits.get(lineage[-1].run)) is not None:
        above = engine.state(parent)
        assert above is not None
        lineage.append(above)
    return lineage


def _call_webhook(engine: Engine, row: OutboxRow) -> None:
    effect: f.CallWebhook = row.effect  # type: ignore[assignment]
    engine.around.workers.dispatches[row.run, effect.token] += 1
    engine.acknowledge(row)
    engine.around.fuse.passing("after_dispatch")


def _start_child(engine: Engine, row: OutboxRow) -> None:
    effect: f.StartChild = row.effect  # type: ignore[assignment]
    if effect.inherit_artifacts:
        engine.around.inherits[effect.child] = row.run
    command = c.StartRun(
        run=effect.child,
        input=effect.input,
        version=_child_version(engine, effect),
        entity=effect.entity,
        parent=relatives.parent_link(row.run, effect),
        depth=effect.depth,
        depth_max=effect.depth_max,
    )
    rejection = engine.start(effect.workflow, effect.version, command)
    if rejection is not None:
        _refuse_child(engine, row.run, effect, rejection)


def _child_version(engine: Engine, effect: f.StartChild) -> int:
    deployed = engine.around.catalog.find(effect.workflow, effect.version)
    return deployed.version if deployed else 0


def _refuse_child(engine: Engine, parent: RunId, effect: f.StartChild, rejection: Rejection) -> None:
    error = Error(kind=rejection.kind, message=rejection.message)
    engine.handle(parent, c.EndChild(effect.token, effect.child, "failed", error=error))


_HANDLERS: dict[type[f.Effect], Callable[[Any, OutboxRow], None]] = {
    f.RunTask: _run_task,
    f.CallWebhook: _call_webhook,
    f.StartChild: _start_child,
}
_HAND_OUTS = (f.RunTask, f.CallWebhook)
"""These acknowledge themselves: work counts as handed out before a crash point that follows it."""
