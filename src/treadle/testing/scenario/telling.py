"""The run and the visit that a step means, and sending a command there. Shared by the modules that carry steps out."""

from __future__ import annotations

from typing import Any

from treadle.model.commands import Command
from treadle.model.errors import Rejection
from treadle.model.ids import RunId
from treadle.model.states import TokenState
from treadle.testing.scenario.choosing import Chosen, Fits, VisitChoice, candidates, choose
from treadle.testing.scenario.form import ScenarioStep
from treadle.testing.scenario.stage import Stage


def tell(stage: Stage, step: ScenarioStep, command: Command) -> Rejection | None:
    """Sends a command to the run a step names, or to the run under test."""
    return stage.world.send(run_of(stage, step), command)


def run_of(stage: Stage, step: ScenarioStep) -> RunId:
    """The run a step names, else the run under test."""
    return stage.run_named(step.run, step.place).projection.run if step.run is not None else stage.main


def choose_visit(stage: Stage, step: Any, fits: Fits) -> Chosen | Rejection:
    """The visit that the address of a step means."""
    return choose(choice_of(stage, step), stage.observed(), fits)


def choose_known(stage: Stage, step: Any, fits: Fits) -> Chosen | Rejection:
    """The visit that a retry or a change is about (6.2, 6.4). Who names a node that was not visited names a visit that
    is not there."""
    if candidates(choice_of(stage, step), stage.observed()) == []:
        return Rejection("NOT_FOUND", f"{step.address} has not been visited")
    return choose_visit(stage, step, fits)


def choice_of(stage: Stage, step: Any, address: str | None = None) -> VisitChoice:
    """What a step asks for: its address, or another one."""
    within = stage.run_named(step.run, step.place) if step.run is not None else None
    return VisitChoice(address or step.address, step.place, step.visit, within)


def has_failed(chosen: Chosen) -> bool:
    """Whether the visit has failed or timed out."""
    return chosen.visit.state in (TokenState.FAILED, TokenState.TIMED_OUT)
