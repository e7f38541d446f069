"""Effects → what the world does about them. Each row is carried out at least once, then acknowledged.

Messages from one run to another keep their order: a child is not cancelled before it was started. Everything else may
overtake, be done twice, or be done by two engines at once; receivers must not mind.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from treadle.model import commands as c
from treadle.model import effects as x
from treadle.model.errors import Error
from treadle.model.ids import RunId
from treadle.model.references import ParentLink
from treadle.store.port import OutboxRow
from treadle.testing.simulator.post import Letter, answered
from treadle.testing.simulator.schedule import Process

if TYPE_CHECKING:
    from treadle.testing.simulator.engine import Engine

TURN_MS = 15
"""How often a message looks whether its predecessor has arrived."""


def deliver(engine: Engine, row: OutboxRow) -> Process:
    """Carry a row out, then acknowledge it."""
    for _ in range(2 if engine.world.faults.happens("duplicate_effect") else 1):
        if type(row.effect) in _MESSAGES:
            yield from _send(engine, row)
        else:
            _tell(engine, row)
    yield 0
    engine.done_with(row)


def _tell(engine: Engine, row: OutboxRow) -> None:
    """Effects that hand something to workers or people; those that only inform are done by existing."""
    world, effect = engine.world, row.effect
    if isinstance(effect, x.RunTask):
        world.crew.begin(engine, row.run, effect)
    elif isinstance(effect, x.StopTask):
        world.crew.stop(row.run, effect)
    elif isinstance(effect, x.CallWebhook):
        world.people.call_back(row.run, effect)
    elif isinstance(effect, x.OpenGate):
        world.people.attend(row.run, effect)


def _send(engine: Engine, row: OutboxRow) -> Process:
    destination = _destination(row)
    while any(
        other.id < row.id and other.run == row.run and _destination(other) == destination
        for other in engine.world.depot.outbox([engine.world.depot.shard_of(row.run)])
    ):
        yield TURN_MS
    run, command, workflow = _MESSAGES[type(row.effect)](engine, row)
    letter = engine.world.post.send(run, command, workflow=workflow, host=engine)
    yield from answered(letter)
    if isinstance(row.effect, x.StartChild) and letter.rejection is not None:
        yield from answered(_refuse_child(engine, row.run, row.effect, letter))


def _destination(row: OutboxRow) -> RunId | None:
    effect = row.effect
    if isinstance(effect, x.StartChild | x.CancelChild | x.CompensateChild):
        return effect.child
    if isinstance(effect, x.NotifyParent):
        return effect.parent
    return effect.run if isinstance(effect, x.DeliverSignal) else None


def _refuse_child(engine: Engine, parent: RunId, effect: x.StartChild, letter: Letter) -> Letter:
    """The child could not be started: to its parent it has failed."""
    assert letter.rejection is not None
    error = Error(letter.rejection.kind, letter.rejection.message)
    command = c.EndChild(effect.token, effect.child, "failed", error=error)
    return engine.world.post.send(parent, command, host=engine)


def _start_child(engine: Engine, row: OutboxRow) -> tuple[RunId, c.Command, str]:
    effect: x.StartChild = row.effect  # type: ignore[assignment]
    del engine
    command = c.StartRun(
        run=effect.child,
        input=effect.input,
        entity=effect.entity,
        parent=ParentLink(row.run, effect.token),
        depth=effect.depth,
        depth_max=effect.depth_max,
    )
    return effect.child, command, effect.workflow


def _cancel_child(_engine: Engine, row: OutboxRow) -> tuple[RunId, c.Command, str]:
    effect: x.CancelChild = row.effect  # type: ignore[assignment]
    return effect.child, c.CancelRun(by="parent"), ""


def _compensate_child(_engine: Engine, row: OutboxRow) -> tuple[RunId, c.Command, str]:
    effect: x.CompensateChild = row.effect  # type: ignore[assignment]
    return effect.child, c.CompensateRun(effect.token), ""


def _notify_parent(_engine: Engine, row: OutboxRow) -> tuple[RunId, c.Command, str]:
    effect: x.NotifyParent = row.effect  # type: ignore[assignment]
    command = c.EndChild(effect.token, row.run, effect.status, effect.output, effect.error, effect.compensable)
    return effect.parent, command, ""


def _deliver_signal(_engine: Engine, row: OutboxRow) -> tuple[RunId, c.Command, str]:
    effect: x.DeliverSignal = row.effect  # type: ignore[assignment]
    return effect.run, c.SendSignal(effect.name, effect.key, effect.data, effect.id), ""


_MESSAGES: dict[type[x.Effect], Callable[[Any, OutboxRow], tuple[RunId, c.Command, str]]] = {
    x.StartChild: _start_child,
    x.CancelChild: _cancel_child,
    x.CompensateChild: _compensate_child,
    x.NotifyParent: _notify_parent,
    x.DeliverSignal: _deliver_signal,
}
