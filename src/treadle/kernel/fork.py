"""Forking a run: a new run with the past of another one up to a point, and a future of its own (6.3).

Theory of operation. `fork` gets the history of the other run. It copies the events up to the point, with a
`run.started` of its own, folds them, and goes on from there:

    1. `run.forked` says where the past comes from. Its fold makes work that was under way pending again
    2. what the fork changes is written: data, outputs of visits that have returned, perhaps another version
    3. clocks are set with the time they had left, gates are opened again
    4. if the run is running, pending visits begin, and joins and triggers look at the changed data

A fork is a start, so flow control may let it wait (6.7): then it is `queued` after step 2, and the rest follows with
its `run.started`.

Promises: the other run is not touched; a visit that had returned is never executed again; a refusal makes no run.
"""

from __future__ import annotations

from typing import Any

import msgspec

from treadle.errors import EvaluationError
from treadle.graph.execution_graph import ExecutionGraph
from treadle.kernel import begin, entity, objections, on_migrate, on_start, reopen, saga, suspend
from treadle.kernel.admission import priority_of
from treadle.kernel.deciding import Deciding, Refused, RunFails
from treadle.kernel.evolve import evolve
from treadle.kernel.fork_outputs import Replaced, replaced
from treadle.kernel.lifecycle import RUN
from treadle.kernel.migration_outputs import outputs_of
from treadle.kernel.points import Past, point_of
from treadle.kernel.state import Token
from treadle.kernel.targets import targets
from treadle.kernel.writing import write_problem
from treadle.model import commands as c
from treadle.model import effects as x
from treadle.model import events as e
from treadle.model.errors import Error
from treadle.model.ids import RUN_GATE
from treadle.model.states import GateState, RunStatus

Json = Any

_LIVE = (RunStatus.RUNNING, RunStatus.PAUSED, RunStatus.COMPENSATING)


def fork(d: Deciding, command: c.ForkRun, past: Past) -> None:
    """Make the fork."""
    point = point_of(past, command)
    priority = _priority(d.graph, command)
    _inherit(d, command, past, point)
    new = on_migrate.wanted_version(d, command.changes.version) if command.changes.version is not None else d.graph
    if d.state.status is RunStatus.COMPENSATING and not command.inherit_compensation:
        text = f"run {command.origin} was being compensated at this point"
        raise Refused("INVALID_STATE", f"{text}: fork an earlier one, or inherit its compensation")
    changed = replaced(d, past, point, command.changes.outputs)
    _record(d, command, past, point, changed, priority)
    _change(d, command, changed)
    if new is not d.graph:
        _migrate(d, command, past, point, new)
    if d.state.status in _LIVE:
        if command.queued is not None:
            _queue(d, command, command.queued)
            return
        if command.refused is not None:
            raise _beyond_limit(d, command.refused)
    _go_on(d)


def _beyond_limit(d: Deciding, error: Error) -> RunFails | Refused:
    """What becomes of a fork that its workflow's limit lets fail. It undoes nothing: the past it would undo is that of
    the other run. One that is being compensated at its point cannot fail once more."""
    if d.state.status is RunStatus.COMPENSATING:
        return Refused(error.kind, error.message)
    return RunFails(error, undo=False)


def admit_run(d: Deciding, command: c.AdmitRun) -> None:
    """Let a queued run start. A fork goes on from its point."""
    queued = d.state.queued
    if d.state.stands is None or queued is None:
        on_start.admit_run(d, command)
        return
    d.run_started(
        queued.run,
        workflow=queued.workflow,
        version=d.state.version,
        hash=d.graph.hash,
        input=d.state.input,
        entity=queued.entity,
        parent=None,
        depth=queued.depth,
        depth_max=queued.depth_max,
        idempotency_key=queued.idempotency_key,
        trigger=queued.trigger,
        seed=queued.seed,
        tags=queued.tags,
        trace=queued.trace,
        priority=queued.priority,
    )
    if command.refused is not None:
        raise RunFails(command.refused, undo=False)
    _go_on(d)


def status_at(past: Past, command: c.ForkRun) -> RunStatus:
    """The status that a fork would have. Raises Refused if there is no such point."""
    status = RunStatus.CREATED
    for event in past.history[: point_of(past, command)]:
        status = RUN.get((status, str(type(event).__struct_config__.tag)), status)
    return status


def _queue(d: Deciding, command: c.ForkRun, why: str) -> None:
    state = d.state
    d.run_queued(
        command.run,
        workflow=d.graph.workflow_name,
        version=state.version,
        hash=d.graph.hash,
        input=state.input,
        entity=command.entity,
        parent=None,
        depth=0,
        depth_max=state.depth_max,
        idempotency_key=command.idempotency_key,
        trigger=None,
        seed=state.seed,
        tags=command.tags,
        trace=command.trace,
        priority=state.priority,
        why=why,
        due=None,
    )


def _inherit(d: Deciding, command: c.ForkRun, past: Past, point: int) -> None:
    """Copy the past and fold it. The run's start is its own: it has no parent, and its own key, tags and entity."""
    started = past.history[0]
    assert isinstance(started, e.Beginning)
    # A run that was queued begins twice: with `run.queued`, then with `run.started`.
    copied = [_owned(d, command, event, point) for event in (started, *past.history[1:point])]
    for event in copied:
        evolve(d.state, event)
    d.events.extend(copied)
    d.graph = d.state.graph


def _owned(d: Deciding, command: c.ForkRun, event: e.Event, point: int) -> e.Event:
    if not isinstance(event, e.Beginning):
        return event
    return msgspec.structs.replace(
        event,
        run=command.run,
        entity=command.entity,
        parent=None,
        depth=0,
        depth_max=d.graph.definition.limits.max_nesting_depth,
        idempotency_key=command.idempotency_key,
        tags=command.tags,
        trace=command.trace,
        at=event.at if point else d.now,
    )


def _priority(graph: ExecutionGraph, command: c.ForkRun) -> int | None:
    """The priority that another input gives the fork, as it would a start; None: it keeps the inherited one."""
    value = command.changes.input
    if value is None or graph.priority is None:
        return None
    objection = objections.to_whole_input(graph, value)
    if objection is not None:
        raise Refused(objection.kind, objection.message)
    return priority_of(graph, value["items"][0] if graph.definition.batch is not None else value)


def _record(d: Deciding, command: c.ForkRun, past: Past, point: int, changed: Replaced, priority: int | None) -> None:
    changes = command.changes
    if changes.input is not None:
        objection = objections.to_whole_input(d.graph, changes.input)
        if objection is not None:
            raise Refused(objection.kind, objection.message)
    asked = msgspec.to_builtins(changes)
    is_now = command.at is None and command.visit is None and command.node is None
    d.run_forked(
        command.origin,
        point,
        command.by,
        changes=asked or None,
        inherit_compensation=command.inherit_compensation,
        shift_ms=0 if is_now or d.state.paused_at is not None else _since(d, past, point),
        outputs=changed.outputs,
        arrivals=changed.arrivals,
        priority=priority,
    )


def _since(d: Deciding, past: Past, point: int) -> int:
    """The time that has passed since the point."""
    return max(d.now - past.history[max(point, 1) - 1].at, 0)


def _change(d: Deciding, command: c.ForkRun, changed: Replaced) -> None:
    for scope, token, writes in changed.writes:
        d.context_updated(writes, scope, token)
    if command.changes.state:
        writes = targets(command.changes.state)
        problem = write_problem(d, (), None, writes)
        if problem is not None:
            raise Refused("SCHEMA" if problem.startswith("state_schema") else "BAD_REQUEST", problem)
        d.context_edited(writes, None, command.by, "fork")


def _migrate(d: Deciding, command: c.ForkRun, past: Past, point: int, new: ExecutionGraph) -> None:
    """Let the fork go on under another version, unless anything is in the way (6.5)."""
    on_migrate.check(d, new, {})
    outputs = outputs_of(past.history[:point], d.state, new, {})
    on_migrate.change_version(d, c.MigrateRun(new.version, by=command.by, outputs=outputs), new)


def _go_on(d: Deciding) -> None:
    if d.state.status is RunStatus.QUEUED:
        return  # it waits for its start, as the other run did at this point
    if d.state.entity is not None:
        entity.enter_fork(d)
    if d.state.status is RunStatus.RUNNING and not d.state.last_token:  # its point is before the run's first tokens
        on_start.begin_run(d)
        return
    for timer in d.state.timers.values():
        d.effect(x.SetTimer(timer.id, timer.due))
    for token in list(d.state.tokens.values()):
        if token.gate is GateState.OPEN and token.id not in d.state.deferred:
            suspend.open_again(d, token, _input(d, token))
    if d.state.is_out_of_time:
        d.effect(x.OpenGate(RUN_GATE, "", "the run has not ended by its deadline"))
    if d.state.status in (RunStatus.RUNNING, RunStatus.COMPENSATING):
        reopen.wake_all(d)
        saga.advance(d)  # a child that was being undone is the other run's


def _input(d: Deciding, token: Token) -> Json:
    """The input of a visit whose gate is opened again, mapped anew; as it was if that is not possible any more."""
    try:
        return begin.visit_input(d, token, d.node(token))
    except EvaluationError:
        return token.input
