"""decide(graph, state, command, now, catalog): decides one command about one run. `decide_fork` does the same for the
start of a fork.

A function of its arguments: no I/O, no clock, no randomness. One call handles one command completely: everything that
follows from it without outside help (routing, joins, pass-through nodes, the run's end) is decided here, in one go, and
committed together.

The state is changed in place while deciding: recording an event folds it in at once, by the functions of `evolve`. If
this raises, or the decision cannot be committed, the state must be thrown away and folded anew from history.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from treadle.graph.execution_graph import ExecutionGraph
from treadle.kernel import (
    begin,
    entity,
    finish,
    join,
    node_join,
    on_answer,
    on_budget,
    on_callback,
    on_change,
    on_child,
    on_claim,
    on_gate,
    on_migrate,
    on_operator,
    on_start,
    on_timer,
    reopen,
    triggers,
)
from treadle.kernel.cancel_groups import cancel_groups
from treadle.kernel.deciding import Catalog, Deciding, Refused, RunFails
from treadle.kernel.fork import admit_run, fork
from treadle.kernel.members import NOT_STARTED, RUNNING
from treadle.kernel.points import Past
from treadle.kernel.state import RunState
from treadle.model import commands as c
from treadle.model import effects as x
from treadle.model.decision import Decision
from treadle.model.ids import RUN_GATE, GroupId

_HANDLERS: dict[type[c.Command], Callable[[Deciding, Any], None]] = {
    c.StartRun: on_start.start_run,
    c.JoinBatch: on_start.join_batch,
    c.AdmitRun: admit_run,
    c.ForkRun: on_start.start_again,
    c.StartAttempt: on_claim.start_attempt,
    c.ExtendLease: on_claim.extend_lease,
    c.ReportProgress: on_answer.report_progress,
    c.FinishAttempt: on_answer.finish_attempt,
    c.FailAttempt: on_answer.fail_attempt,
    c.LoseWorker: on_answer.lose_worker,
    c.CompleteGate: on_gate.complete_gate,
    c.ClaimGate: on_gate.claim_gate,
    c.ReleaseGate: on_gate.release_gate,
    c.DelegateGate: on_gate.delegate_gate,
    c.CommentGate: on_gate.comment_gate,
    c.KeepArtifact: on_gate.keep_artifact,
    c.ReceiveCallback: on_callback.receive_callback,
    c.EndChild: on_child.end_child,
    c.FireTimer: on_timer.fire_timer,
    c.SendSignal: on_operator.send_signal,
    c.CancelRun: on_operator.cancel_run,
    c.AbortRun: on_operator.abort_run,
    c.CancelGroup: on_operator.cancel_group,
    c.CancelToken: on_operator.cancel_token,
    c.RetryToken: reopen.retry_token,
    c.RetryRun: reopen.retry_run,
    c.ReopenCall: on_child.reopen_call,
    c.RefuseCall: on_child.refuse_call,
    c.PauseRun: on_operator.pause_run,
    c.ResumeRun: on_operator.resume_run,
    c.ExtendTimeout: on_operator.extend_timeout,
    c.SkipCompensation: on_operator.skip_compensation,
    c.RetryCompensation: on_operator.retry_compensation,
    c.CompensateRun: on_operator.compensate_run,
    c.MigrateRun: on_migrate.migrate_run,
    c.AddSiblings: on_operator.add_siblings,
    c.CloseGroup: on_operator.close_group,
    c.MoveEntity: entity.move_entity,
    c.RaiseBudget: on_budget.raise_budget,
    c.ReportSpending: on_budget.report_spending,
    c.AllowAttempt: on_budget.allow_attempt,
    c.EditRun: on_change.edit_run,
    c.SkipToken: on_change.skip_token,
    c.JumpToken: on_change.jump_token,
    c.SetInput: on_change.set_input,
}

_TO_QUEUED_FORKS = (c.StartRun, c.AdmitRun, c.CancelRun, c.MigrateRun)
"""What may be asked of a fork that waits for its start (6.7): it has visits already, but none of them moves."""


def decide(graph: ExecutionGraph, state: RunState, command: c.Command, now: int, catalog: Catalog) -> Decision:
    """Decide one command. The events are folded into `state`."""
    if state.status is NOT_STARTED and not isinstance(command, c.StartRun):
        return Decision(rejection=Refused("NOT_FOUND", "there is no such run").rejection)
    if state.stands is not None and not isinstance(command, _TO_QUEUED_FORKS):
        text = f"run {state.run} waits for its start: cancel or migrate it, or wait until it has started"
        return Decision(rejection=Refused("INVALID_STATE", text).rejection)
    d = Deciding(graph, state, now, catalog, cancel_groups)
    had_gate = (state.overdue or state.budget is not None) and state.has_gate
    try:
        _HANDLERS[type(command)](d, command)
        _work_off(d)
    except Refused as refused:
        assert not d.events, "a refusal must come before anything was decided"
        return Decision(rejection=refused.rejection)
    except RunFails as failed:
        finish.fail_run(d, failed.error, own=failed.own, undo=failed.undo)
        _work_off(d)
    if had_gate and not state.has_gate:
        d.effect(x.CloseGate(RUN_GATE))
    return Decision(d.events, d.effects, d.rejection)


def decide_fork(
    graph: ExecutionGraph, state: RunState, command: c.ForkRun, past: Past, now: int, catalog: Catalog
) -> Decision:
    """Decide the start of a fork, given the past of the other run. If it is refused, the state must be thrown away."""
    d = Deciding(graph, state, now, catalog, cancel_groups)
    try:
        fork(d, command, past)
        _work_off(d)
    except Refused as refused:
        return Decision(rejection=refused.rejection)
    except RunFails as failed:
        finish.fail_run(d, failed.error, own=failed.own, undo=failed.undo)
        _work_off(d)
    # The inherited decisions end before `run.forked`.
    return Decision(d.events, d.effects, d.rejection, [end for end in past.ends if end < state.forked])


def _work_off(d: Deciding) -> None:
    """Begin pending tokens and evaluate joins until nothing is left to decide; then see whether the run has ended."""
    state, ready = d.state, d.ready
    while True:
        if d.empty:
            _look_at(d, d.empty.pop(0))
        elif ready:
            token = state.tokens.get(ready.popleft())
            if token is not None:
                begin.begin(d, token)
        elif state.status is not RUNNING:
            return
        elif d.dirty:
            _look_at(d, d.next_dirty())
        elif _further(d):
            continue
        elif state.working > state.passive or not finish.settle_run(d):
            return  # a token is at work, so the run cannot end now: the commonest case


def _look_at(d: Deciding, identity: GroupId) -> None:
    group = d.state.groups.get(identity)
    if group is not None and d.running:
        join.evaluate(d, group)


def _further(d: Deciding) -> bool:
    """Evaluate what moves rarely: node joins, mutexes, `when` triggers. Asked when there is nothing else to do. Returns
    whether something moved."""
    if d.state.node_joins and node_join.evaluate_all(d):
        return True
    if d.state.mutexes and begin.admit_next(d):
        return True
    return d.graph.has_when and triggers.check_when(d)
