"""Starting a run: it exists, and a token stands at every start node. A run that has to wait for its start exists before
that as `queued` (6.7); `admission` has decided that it waits, and decides when it starts."""

from __future__ import annotations

from typing import Any

from treadle.kernel import deliver, entity, objections, timers
from treadle.kernel.admission import priority_of
from treadle.kernel.deciding import Deciding, Refused, RunFails
from treadle.kernel.route import Origin
from treadle.model import commands as c
from treadle.model import effects as x
from treadle.model.errors import Error
from treadle.model.ids import TokenId
from treadle.model.states import RunStatus

Json = Any


def start_run(d: Deciding, command: c.StartRun) -> None:
    """Start the run, or queue it. The same command again changes nothing; an input against the schema starts
    nothing."""
    if d.state.status is not RunStatus.CREATED:
        return
    value = _checked(d, command)
    definition = d.graph.definition
    if command.queued is not None:
        _queue(d, command, value, command.queued)
        return
    d.run_started(
        command.run,
        workflow=d.graph.workflow_name,
        version=command.version,
        hash=d.graph.hash,
        input={"items": [value]} if definition.batch is not None else value,
        entity=command.entity,
        parent=command.parent,
        depth=command.depth,
        depth_max=command.depth_max if command.depth_max is not None else definition.limits.max_nesting_depth,
        idempotency_key=command.idempotency_key,
        trigger=command.trigger,
        seed=command.seed,
        tags=command.tags,
        trace=command.trace,
        priority=priority_of(d.graph, value) if d.graph.priority is not None else 0,
    )
    _begin(d, command.refused)


def join_batch(d: Deciding, command: c.JoinBatch) -> None:
    """Add the input of a further start to a queued batch. The same start again changes nothing."""
    start, state = command.start, d.state
    key = start.idempotency_key
    if start.run in state.item_runs or start.run == state.run:
        return
    if key is not None and (key in state.item_keys or key == state.idempotency_key):
        return
    if state.status is not RunStatus.QUEUED:
        raise Refused("INVALID_STATE", f"run {state.run} is {state.status}: it takes no further items")
    _queue(d, start, _checked(d, start), "batch")
    d.effect(x.NoteItem(start.run, d.graph.workflow_name, key))


def admit_run(d: Deciding, command: c.AdmitRun) -> None:
    """Start a queued run. One that is not queued any more stays as it is."""
    queued = d.state.queued
    if d.state.status is not RunStatus.QUEUED or queued is None:
        return
    d.run_started(
        queued.run,
        workflow=queued.workflow,
        version=d.state.version,
        hash=d.graph.hash,
        input={"items": list(d.state.items)} if d.graph.definition.batch is not None else queued.input,
        entity=queued.entity,
        parent=queued.parent,
        depth=queued.depth,
        depth_max=queued.depth_max,
        idempotency_key=queued.idempotency_key,
        trigger=queued.trigger,
        seed=queued.seed,
        tags=queued.tags,
        trace=queued.trace,
        priority=queued.priority,
    )
    _begin(d, command.refused)


def _checked(d: Deciding, command: c.StartRun) -> Json:
    value = command.input if command.input is not None else {}
    objection = objections.to_input(d.graph, value)
    if objection is not None:
        raise Refused(objection.kind, objection.message)
    return value


def _queue(d: Deciding, command: c.StartRun, value: Json, why: str) -> None:
    joined = d.state.status is RunStatus.QUEUED
    limits = d.graph.definition.limits
    d.run_queued(
        d.state.run if joined else command.run,
        workflow=d.graph.workflow_name,
        version=d.state.version if joined else command.version,
        hash=d.graph.hash,
        input=value,
        entity=command.entity,
        parent=command.parent,
        depth=command.depth,
        depth_max=command.depth_max if command.depth_max is not None else limits.max_nesting_depth,
        idempotency_key=command.idempotency_key,
        trigger=command.trigger,
        seed=command.seed,
        tags=command.tags,
        trace=command.trace,
        priority=priority_of(d.graph, value) if d.graph.priority is not None else 0,
        why=why,
        due=command.due,
        alias=command.run if joined else None,
    )


def start_again(_d: Deciding, _command: c.ForkRun) -> None:
    """The start of a fork that exists already changes nothing. `fork` makes a new one."""


def _begin(d: Deciding, refused: Error | None) -> None:
    entity.enter(d)
    if refused is not None:
        raise RunFails(refused)
    begin_run(d)


def begin_run(d: Deciding) -> None:
    """Let the run's clock start, and make a token at every start node."""
    definition = d.graph.definition
    if definition.timeout_ms is not None:
        timers.start(d, d.now + definition.timeout_ms, "run")
    origin = Origin(TokenId(0), d.graph.start[0], "root", (), None)
    if len(d.graph.start) > definition.limits.max_tokens_per_run:
        limit = definition.limits.max_tokens_per_run
        text = f"max_tokens_per_run is {limit} and there are {len(d.graph.start)} start nodes"
        raise RunFails(Error("LIMIT_EXCEEDED", text))
    for node in d.graph.start:
        deliver.create(d, node, None, origin, frames=(), path="root", loops=None)
