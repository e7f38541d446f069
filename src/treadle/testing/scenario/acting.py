"""Steps → commands: what each verb of a scenario does to the world.

Owns one function per verb; each returns the refusal it got, or None. A step that cannot be meant (an address
that names several live visits, a release of nothing) is an error of the scenario and raises `ScenarioError`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from treadle.model import commands as c
from treadle.model.errors import Rejection
from treadle.model.ids import RecordId
from treadle.model.states import Waiting
from treadle.runtime.migrating import LIVE
from treadle.testing.scenario import form as s
from treadle.testing.scenario.changing import CHANGES
from treadle.testing.scenario.choosing import Chosen, Fits, candidates
from treadle.testing.scenario.definitions import load_definition
from treadle.testing.scenario.stage import Stage
from treadle.testing.scenario.telling import choice_of, choose_known, choose_visit, has_failed, tell
from treadle.testing.world.outcomes import Outcome
from treadle.testing.world.projection import RecordedVisit

S = TypeVar("S", bound=s.ScenarioStep)
Act = Callable[[Stage, Any], Rejection | None]


def act(stage: Stage, step: s.ScenarioStep) -> Rejection | None:
    """Does what a step says; the world is not yet settled afterwards."""
    return _ACTS[type(step)](stage, step)


def _advance(stage: Stage, step: s.AdvanceStep) -> None:
    stage.world.advance(step.ms)


def _settle(stage: Stage, _step: s.SettleStep) -> None:
    stage.world.settle()


def _release(stage: Stage, step: s.ReleaseStep) -> Rejection | None:
    workers = stage.world.workers
    chosen = choose_visit(stage, step, lambda chosen: workers.holds(chosen.run, chosen.visit.token))
    if isinstance(chosen, Rejection):
        return chosen
    run, visit = chosen
    if workers.holds(run, visit.token):
        return stage.world.release(run, visit.token, step.outcome)
    if visit.live:
        step.place.refuse(f"nothing is held at {visit}: give it a mock with `hold: true`")
    return stage.world.answer(run, _late(chosen, step.outcome))


def _late(chosen: Chosen, outcome: Outcome) -> c.Command:
    """A result for a visit that has ended."""
    visit = chosen.visit
    if outcome.error is not None:
        return c.FailAttempt(visit.token, visit.attempt, outcome.error, spent=outcome.spent)
    return c.FinishAttempt(visit.token, visit.attempt, outcome.output, spent=outcome.spent)


def _signal(stage: Stage, step: s.SignalStep) -> Rejection | None:
    return tell(stage, step, c.SendSignal(step.name, step.key, step.data, stage.next_id()))


def _answer(stage: Stage, step: s.AnswerGateStep) -> Rejection | None:
    if step.every:
        return _answer_every(stage, step)
    chosen = choose_visit(stage, step, _waits_for(Waiting.HUMAN))
    if isinstance(chosen, Rejection):
        return chosen
    command = c.CompleteGate(
        chosen.visit.token, step.data, step.by, step.force, person=step.person, comment=step.comment
    )
    return stage.world.send(chosen.run, command)


def _hand_gate(stage: Stage, step: s.HandGateStep) -> Rejection | None:
    chosen = choose_visit(stage, step, _waits_for(Waiting.HUMAN))
    if isinstance(chosen, Rejection):
        return chosen
    token = chosen.visit.token
    commands: dict[str, c.Command] = {
        "claim_gate": c.ClaimGate(token, step.by, step.person),
        "release_gate": c.ReleaseGate(token, step.by, step.force, step.person),
        "delegate_gate": c.DelegateGate(token, step.to, step.by, step.force, step.person),
        "comment_gate": c.CommentGate(token, step.text, step.by, id=stage.next_id()),
    }
    return stage.world.send(chosen.run, commands[step.move])


def _answer_every(stage: Stage, step: s.AnswerGateStep) -> Rejection | None:
    found = candidates(choice_of(stage, step), stage.observed())
    if isinstance(found, Rejection):
        return found
    open_gates = list(filter(_waits_for(Waiting.HUMAN), found))
    if not open_gates:
        return Rejection("INVALID_STATE", f"no gate is open at {step.address}")
    for run, visit in open_gates:
        rejection = stage.world.send(run, c.CompleteGate(visit.token, step.data))
        if rejection is not None:
            return rejection
    return None


def _callback(stage: Stage, step: s.CallbackStep) -> Rejection | None:
    chosen = choose_visit(stage, step, _waits_for(Waiting.EXTERNAL))
    if isinstance(chosen, Rejection):
        return chosen
    attempt = step.attempt if step.attempt is not None else chosen.visit.attempt
    command = c.ReceiveCallback(chosen.visit.token, attempt, step.output, step.error, spent=step.spent)
    answers = []
    for _time in range(step.times):
        answers.append(stage.world.send(chosen.run, command))
        stage.world.settle()
    return next((answer for answer in answers if answer is not None), None)


def _cancel_node(stage: Stage, step: s.CancelNodeStep) -> Rejection | None:
    chosen = choose_visit(stage, step, lambda chosen: chosen.visit.live)
    if isinstance(chosen, Rejection):
        return chosen
    return stage.world.send(chosen.run, c.CancelToken(chosen.visit.token))


def _retry(stage: Stage, step: s.RetryStep) -> Rejection | None:
    chosen = choose_known(stage, step, has_failed)
    if isinstance(chosen, Rejection):
        return chosen
    return stage.world.send(chosen.run, c.RetryToken(chosen.visit.token))


def _retry_run(stage: Stage, step: s.RetryRunStep) -> Rejection | None:
    return tell(stage, step, c.RetryRun())


def _cancel_run(stage: Stage, step: s.CancelRunStep) -> Rejection | None:
    return tell(stage, step, c.CancelRun())


def _cancel_group(stage: Stage, step: s.CancelGroupStep) -> Rejection | None:
    return tell(stage, step, c.CancelGroup(step.group, step.join))


def _pause(stage: Stage, step: s.PauseStep) -> Rejection | None:
    return tell(stage, step, c.PauseRun())


def _resume(stage: Stage, step: s.ResumeStep) -> Rejection | None:
    return tell(stage, step, c.ResumeRun())


def _extend(stage: Stage, step: s.ExtendTimeoutStep) -> Rejection | None:
    return tell(stage, step, c.ExtendTimeout(step.ms))


def _raise_budget(stage: Stage, step: s.RaiseBudgetStep) -> Rejection | None:
    amounts: dict[str, Any] = dict(step.amounts)
    return tell(stage, step, c.RaiseBudget(**amounts, id=stage.next_id()))


def _abort(stage: Stage, step: s.AbortStep) -> Rejection | None:
    return tell(stage, step, c.AbortRun())


def _skip_compensation(stage: Stage, step: s.SkipCompensationStep) -> Rejection | None:
    return _compensate(stage, step, step.address, c.SkipCompensation)


def _retry_compensation(stage: Stage, step: s.RetryCompensationStep) -> Rejection | None:
    return _compensate(stage, step, step.address, c.RetryCompensation)


def _compensate(
    stage: Stage, step: s.ScenarioStep, address: str, command: Callable[[RecordId], c.Command]
) -> Rejection | None:
    """The record of the visit an address means: the one whose undoing has failed, if there is such a one."""
    inner = address.removeprefix("compensate(").removesuffix(")") if address.startswith("compensate(") else address
    found = candidates(choice_of(stage, step, inner), stage.observed())
    if isinstance(found, Rejection):
        return found
    records = [
        (run, record)
        for run, visit in found
        for record in stage.world.projection(run).records.values()
        if record.visit is visit
    ]
    if not records:
        return Rejection("INVALID_STATE", f"{address} has left nothing to compensate")
    run, record = next((pair for pair in records if _is_stuck(pair[1])), records[-1])
    return stage.world.send(run, command(record.id))


def _is_stuck(record: RecordedVisit) -> bool:
    return record.status == "failed"


def _add_siblings(stage: Stage, step: s.AddSiblingsStep) -> Rejection | None:
    return tell(stage, step, c.AddSiblings(step.group, step.items, step.count, stage.next_id()))


def _close_group(stage: Stage, step: s.CloseGroupStep) -> Rejection | None:
    return tell(stage, step, c.CloseGroup(step.group))


def _crash(stage: Stage, step: s.CrashStep) -> None:
    if step.at is None:
        stage.world.crash(step.down_ms)
    else:
        stage.world.crash_at(step.at, step.count, step.down_ms)


def _start(stage: Stage, step: s.StartRunStep) -> Rejection | None:
    start = step.start
    workflow = start.workflow or stage.world.state(stage.main).graph.workflow_name
    run = stage.world.start(
        workflow, start.input, entity=start.entity, idempotency_key=start.idempotency_key, name=start.name
    )
    if isinstance(run, Rejection):
        return run
    if start.name is not None:
        stage.names[start.name] = run
    return None


def _migrate(stage: Stage, step: s.MigrateStep) -> Rejection | None:
    return tell(stage, step, c.MigrateRun(step.to, step.nodes, step.dry_run))


def _deploy(stage: Stage, step: s.DeployStep) -> Rejection | None:
    loaded = load_definition(step.definition, check_functions=step.refused is not None)
    if loaded.workflow is None:
        codes = [problem.code for problem in loaded.errors]
        kind = step.refused if step.refused in codes else codes[0]
        return Rejection(str(kind), "; ".join(str(problem) for problem in loaded.errors))
    deployed = stage.world.deploy(loaded.workflow)
    if loaded.workflow.on_deploy == "migrate_if_safe":
        _migrate_live(stage, loaded.workflow.workflow, deployed.version)
    return None


def _migrate_live(stage: Stage, workflow: str, version: int) -> None:
    """Tries the new version for all live runs of older ones, as deploying does; a run that refuses stays as it is."""
    for run in stage.world.runs:
        state = stage.world.state(run)
        if state.graph.workflow_name == workflow and state.version < version and state.status.value in LIVE:
            stage.world.send(run, c.MigrateRun(version, by="deploy"))


def _waits_for(reason: Waiting) -> Fits:
    return lambda chosen: chosen.visit.waiting is reason


_ACTS: dict[type[s.ScenarioStep], Act] = {
    s.AdvanceStep: _advance,
    s.SettleStep: _settle,
    s.ReleaseStep: _release,
    s.SignalStep: _signal,
    s.AnswerGateStep: _answer,
    s.HandGateStep: _hand_gate,
    s.CallbackStep: _callback,
    s.CancelRunStep: _cancel_run,
    s.CancelGroupStep: _cancel_group,
    s.CancelNodeStep: _cancel_node,
    s.RetryStep: _retry,
    s.RetryRunStep: _retry_run,
    s.PauseStep: _pause,
    s.ResumeStep: _resume,
    s.ExtendTimeoutStep: _extend,
    s.RaiseBudgetStep: _raise_budget,
    s.AbortStep: _abort,
    s.SkipCompensationStep: _skip_compensation,
    s.RetryCompensationStep: _retry_compensation,
    s.AddSiblingsStep: _add_siblings,
    s.CloseGroupStep: _close_group,
    s.CrashStep: _crash,
    s.StartRunStep: _start,
    s.DeployStep: _deploy,
    s.MigrateStep: _migrate,
    **CHANGES,
}
