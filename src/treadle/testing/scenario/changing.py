"""Carries out the steps by which a scenario changes its runs (6.4) and forks them (6.3). Part of `acting`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from treadle.model import commands as c
from treadle.model.errors import Rejection
from treadle.model.ids import RunId, TokenId
from treadle.model.states import TokenState, Waiting
from treadle.testing.scenario import change_steps as change
from treadle.testing.scenario.choosing import candidates
from treadle.testing.scenario.form import ScenarioStep
from treadle.testing.scenario.stage import Stage
from treadle.testing.scenario.telling import choice_of, choose_known, has_failed, run_of, tell

Json = Any


def _edit(stage: Stage, step: change.EditStep) -> Rejection | None:
    command = c.EditRun(step.writes, by=step.by, reason=step.reason)
    if step.address is None:
        return tell(stage, step, command)
    chosen = choose_known(stage, step, lambda chosen: chosen.visit.live)
    if isinstance(chosen, Rejection):
        return chosen
    return stage.world.send(chosen.run, replace(command, branch=chosen.visit.token))


def _change_visit(stage: Stage, step: change.ChangeVisitStep) -> Rejection | None:
    chosen = choose_known(stage, step, lambda chosen: chosen.visit.live or has_failed(chosen))
    if isinstance(chosen, Rejection):
        return chosen
    return stage.world.send(chosen.run, step.command(chosen.visit.token))


def _mark(stage: Stage, step: change.MarkStep) -> None:
    stage.marks[step.name] = stage.world.state(run_of(stage, step)).seq


def _fork(stage: Stage, step: change.ForkStep) -> Rejection | None:
    origin = run_of(stage, step)
    at, visit = step.at, None
    if step.mark is not None:
        if step.mark not in stage.marks:
            step.place.refuse(f"no step has marked {step.mark!r}; there are: {', '.join(stage.marks) or 'no marks'}")
        at = stage.marks[step.mark]
    if step.address is not None:
        chosen = _visit_of(stage, step, step.address)
        if isinstance(chosen, Rejection):
            return chosen
        visit = chosen
    outputs: dict[str, Json] = {}
    for address, output in step.outputs.items():
        chosen = _visit_of(stage, step, address, returned=True)
        if isinstance(chosen, Rejection):
            return chosen
        outputs[str(chosen)] = output
    command = c.ForkRun(
        run=RunId(""),
        origin=origin,
        at=at,
        visit=visit,
        node=step.node,
        changes=replace(step.changes, outputs=outputs),
        inherit_compensation=step.inherit_compensation,
        entity=step.entity,
        idempotency_key=step.key,
        tags=step.tags,
        by=step.by,
    )
    run = stage.world.fork(command, step.name)
    if isinstance(run, Rejection):
        return run
    stage.forks.add(run)
    if step.name is not None:
        stage.names[step.name] = run
    return None


def _visit_of(stage: Stage, step: change.ForkStep, address: str, *, returned: bool = False) -> TokenId | Rejection:
    """The visit of the forked run that an address means. Of an output: the newest that has returned. Of a point: the
    one that is live, else the oldest."""
    found = candidates(choice_of(stage, step, address), stage.observed())
    if isinstance(found, Rejection):
        return found
    visits = [chosen.visit for chosen in found if chosen.run == run_of(stage, step)]
    if not visits:
        return Rejection("NOT_FOUND", f"{address} has not been visited")
    if step.visit is not None and step.visit <= len(visits):
        return visits[step.visit - 1].token
    if not returned:
        live = [visit for visit in visits if visit.live]
        return (live if len(live) == 1 else visits)[0].token
    back = [visit for visit in visits if visit.state is TokenState.COMPLETED or visit.waiting is Waiting.SIBLINGS]
    return (back or visits)[-1].token


CHANGES: dict[type[ScenarioStep], Callable[[Stage, Any], Rejection | None]] = {
    change.EditStep: _edit,
    change.ChangeVisitStep: _change_visit,
    change.MarkStep: _mark,
    change.ForkStep: _fork,
}
