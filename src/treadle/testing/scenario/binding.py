"""Checks that what a scenario names exists: nodes, steps of tasks, runs. Needs its definitions, so it comes
after loading.

A mistyped name must be an error of the file: a mock that replaces nothing and an expectation about nobody
would both pass in silence.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from treadle.language.problem import nearest
from treadle.model.definition import Task, Workflow
from treadle.testing.scenario.change_steps import ForkStep
from treadle.testing.scenario.form import Expectation, ExpectStep, Mock, Scenario, ScenarioStep, Start, StartRunStep
from treadle.testing.scenario.place import ValuePlace
from treadle.testing.world.address import parse_address, ref_of

_BY_ADDRESS = ("visits", "attempts", "node_output", "dispatches", "paths")


def check_names(scenario: Scenario, workflows: Sequence[Workflow]) -> None:
    """Raises `ScenarioError` at the first name that means nothing."""
    refs = {ref for workflow in workflows for ref in workflow.nodes}
    runs = {workflow.workflow for workflow in workflows} | set(_run_names(scenario))
    _check_start(scenario.start, workflows)
    for mock in scenario.mocks:
        _check_mock(mock, refs, workflows)
    for expectation in _expectations(scenario):
        _check_expectation(expectation, refs, runs)
    for step in scenario.steps or ():
        address = getattr(step, "address", None)
        if isinstance(step, StartRunStep) and not _may_be_unknown(step):
            _check_start(step.start, workflows)
        if address is not None and not _may_be_unknown(step):
            _check_address(address, step.place, refs)


def _may_be_unknown(step: ScenarioStep) -> bool:
    """Whether a step is about a name that nobody has, on purpose."""
    return step.refused == "NOT_FOUND" or "NOT_FOUND" in step.expect_refused


def _check_start(start: Start, workflows: Sequence[Workflow]) -> None:
    names = {workflow.workflow for workflow in workflows}
    if start.workflow is not None and start.workflow not in names:
        assert start.place is not None, "it was written somewhere"
        _refuse(start.place, f"no definition is called `{start.workflow}`", start.workflow, names, key=False)


def _run_names(scenario: Scenario) -> Iterator[str]:
    for step in scenario.steps or ():
        if isinstance(step, StartRunStep) and step.start.name:
            yield step.start.name
        elif isinstance(step, ForkStep) and step.name:
            yield step.name


def _expectations(scenario: Scenario) -> Iterator[Expectation]:
    if scenario.expect is not None:
        yield scenario.expect
    for step in scenario.steps or ():
        if isinstance(step, ExpectStep):
            yield step.expectation


def _check_expectation(expectation: Expectation, refs: Collection[str], runs: Collection[str]) -> None:
    for key in _BY_ADDRESS:
        for address in getattr(expectation, key) or ():
            _check_address(address, expectation.place.under(key).under(address), refs, key=True)
    for index, address in enumerate(expectation.order or ()):
        _check_address(address, expectation.place.under("order").under(index), refs)
    for index, wait in enumerate(expectation.waiting or ()):
        _check_address(wait.node, expectation.place.under("waiting").under(index).under("node"), refs)
    for name, inner in (expectation.runs or {}).items():
        if name not in runs:
            _refuse(
                expectation.place.under("runs").under(name),
                f"no run is called `{name}`",
                name,
                runs,
                key=True,
            )
        _check_expectation(inner, refs, runs)


def _check_address(text: str, place: ValuePlace, refs: Collection[str], *, key: bool = False) -> None:
    if parse_address(text, refs) is None:
        _refuse(place, f"`{text}` names no node", ref_of(text), refs, key=key)


def _check_mock(mock: Mock, refs: Collection[str], workflows: Sequence[Workflow]) -> None:
    _check_address(mock.address, mock.place, refs, key=True)
    address = parse_address(mock.address, refs)
    assert address is not None
    tasks = list(_tasks(address.node, address.compensation, workflows))
    if address.compensation and not tasks:
        mock.place.refuse(f"`{address.node}` has no `compensate` to mock", key=True)
    steps = {step.ref for task in tasks for step in task.steps}
    if address.step is not None and address.step not in steps:
        _refuse(mock.place, f"`{address.node}` has no step `{address.step}`", address.step, steps, key=True)


def _tasks(ref: str, compensation: bool, workflows: Sequence[Workflow]) -> Iterator[Task]:
    for workflow in workflows:
        node = workflow.nodes.get(ref)
        if node is None:
            continue
        task = node.task if not compensation else node.compensate.task if node.compensate else None
        if task is not None:
            yield task


def _refuse(place: ValuePlace, complaint: str, name: str, known: Collection[str], *, key: bool) -> None:
    near = nearest(name, known)
    hint = f"did you mean `{near}`?" if near else f"there are: {', '.join(sorted(known)) or 'none'}"
    place.refuse(f"{complaint}; {hint}", key=key)
