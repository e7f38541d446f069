"""Effects → what the world does about them. Each row is carried out at least once, then acknowledged.

Messages from one run to another keep their order: a child is not cancelled before it was started. Everything else may
overtake, be done twice, or be done by two engines at once; receivers must not mind.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from treadle.model import commands as c
from treadle.model import effects as x
from treadle.model.errors import Error
from treadle.model.ids import RunId
from treadle.runtime import relatives
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
        if _destination(row) is not None:
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
    told = relatives.letter(row.run, row.effect)
    run, command, workflow = (*told, "") if told is not None else _start_child(row)
    letter = engine.world.post.send(run, command, workflow=workflow, host=engine)
    yield from answered(letter)
    if isinstance(row.effect, x.StartChild) and letter.rejection is not None:
        yield from answered(_refuse_child(engine, row.run, row.effect, letter))


def _destination(row: OutboxRow) -> RunId | None:
    """The run that a row has a message for."""
    if isinstance(row.effect, x.StartChild):
        return row.effect.child
    told = relatives.letter(row.run, row.effect)
    return told[0] if told is not None else None


def _refuse_child(engine: Engine, parent: RunId, effect: x.StartChild, letter: Letter) -> Letter:
    """The child could not be started: to its parent it has failed."""
    assert letter.rejection is not None
    error = Error(letter.rejection.kind, letter.rejection.message)
    command = c.EndChild(effect.token, effect.child, "failed", error=error)
    return engine.world.post.send(parent, command, host=engine)


def _start_child(row: OutboxRow) -> tuple[RunId, c.Command, str]:
    effect: x.StartChild = row.effect  # type: ignore[assignment]
    command = c.StartRun(
        run=effect.child,
        input=effect.input,
        entity=effect.entity,
        parent=relatives.parent_link(row.run, effect),
        depth=effect.depth,
        depth_max=effect.depth_max,
    )
    return effect.child, command, effect.workflow
