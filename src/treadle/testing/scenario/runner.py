"""Plays scenarios: text or file in, one `ScenarioResult` per document out.

Owns what comes before and after a performance: reading, definitions, `deploy_error`, seeds, verdicts.
Promises never to raise for anything that is written in a file: a mistake in it is a result, too.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Literal

from msgspec import Struct

from treadle.errors import ScenarioError
from treadle.language import Loaded
from treadle.model.definition import Workflow
from treadle.testing.scenario.binding import check_names
from treadle.testing.scenario.definitions import load_definition
from treadle.testing.scenario.documents import Document, read_documents, read_file
from treadle.testing.scenario.form import DeployExpected, DeployStep, Scenario
from treadle.testing.scenario.parse import parse_scenario
from treadle.testing.scenario.performance import Performance
from treadle.testing.scenario.report import ScenarioFailure
from treadle.testing.world.store_names import NoPostgres, StoreName

Verdict = Literal["passed", "failed", "invalid"]


class ScenarioResult(Struct, frozen=True):
    """How one scenario went."""

    file: str
    scenario: str
    line: int
    verdict: Verdict
    """Invalid: the scenario, or a definition in it, cannot be used as written."""
    reason: str | None = None
    """What was expected and what happened instead; several lines if several things differ."""
    history: str | None = None
    """What happened, event by event."""
    warnings: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        return self.verdict == "passed"

    def __str__(self) -> str:
        head = f"{self.file}:{self.line} {self.scenario}: {self.verdict}"
        return "\n\n".join(part for part in (head, self.reason, self.history) if part)


def run_file(path: str | Path, store: StoreName = "memory") -> list[ScenarioResult]:
    """Plays every scenario of a file."""
    return _run_all(lambda: read_file(path), str(path), store)


def run_text(text: str, name: str = "<text>", store: StoreName = "memory") -> list[ScenarioResult]:
    """Plays every scenario of a text; `name` is what results call it, and where `file:` definitions are
    looked for."""
    return _run_all(lambda: read_documents(text, name), name, store)


def _run_all(read: Callable[[], list[Document]], name: str, store: StoreName) -> list[ScenarioResult]:
    try:
        documents = read()
    except ScenarioError as problem:
        return [unreadable(name, problem)]
    return [run_document(document, store) for document in documents]


def unreadable(name: str, problem: ScenarioError) -> ScenarioResult:
    """The result of a file in which no scenario could be found."""
    return ScenarioResult(name, "", 1, "invalid", str(problem))


def run_document(document: Document, store: StoreName = "memory") -> ScenarioResult:
    """Plays the one scenario of a document."""
    where = (document.file, document.title, document.line)
    try:
        return run_scenario(parse_scenario(document), store)
    except ScenarioError as problem:
        return ScenarioResult(*where, "invalid", str(problem))
    except NoPostgres:
        raise  # it is none of the scenario's business, and the same for all of them
    except Exception:  # a bug of ours must not keep the other scenarios from being played
        return ScenarioResult(*where, "failed", f"the runner broke\n{traceback.format_exc()}")


def run_scenario(scenario: Scenario, store: StoreName = "memory") -> ScenarioResult:
    """Plays one scenario, under every order of events it asks for."""
    where = (scenario.file, scenario.name, scenario.line)
    try:
        return ScenarioResult(*where, "passed", warnings=tuple(_play(scenario, store)))
    except ScenarioFailure as failure:
        return ScenarioResult(*where, "failed", failure.reason, failure.history)
    except ScenarioError as problem:
        return ScenarioResult(*where, "invalid", str(problem))


def _play(scenario: Scenario, store: StoreName) -> list[str]:
    refused = scenario.deploy_error is not None
    loaded = [load_definition(definition, check_functions=refused) for definition in scenario.definitions]
    if scenario.deploy_error is not None:
        _expect_problem("error", scenario.deploy_error, loaded)
        return []
    workflows = [_valid(one) for one in loaded]
    if scenario.deploy_warning is not None:
        _expect_problem("warning", scenario.deploy_warning, loaded)
    if not scenario.runs:
        return []
    check_names(scenario, [*workflows, *_later_workflows(scenario)])
    orders: list[int | None] = [None, *range(scenario.shuffle)]
    return [warning for seed in orders for warning in Performance(scenario, workflows, seed, store).play()]


def _valid(loaded: Loaded) -> Workflow:
    if loaded.workflow is None:
        raise ScenarioError("\n".join(str(problem) for problem in loaded.errors))
    return loaded.workflow


def _later_workflows(scenario: Scenario) -> Iterator[Workflow]:
    """What a step deploys mid-run may bring nodes that mocks and expectations name."""
    for step in scenario.steps or ():
        if isinstance(step, DeployStep):
            loaded = load_definition(step.definition)
            if loaded.workflow is not None:
                yield loaded.workflow


def _expect_problem(severity: Literal["error", "warning"], expected: DeployExpected, loaded: Sequence[Loaded]) -> None:
    problems = [problem for one in loaded for problem in (one.errors if severity == "error" else one.warnings)]
    for problem in problems:
        if problem.code == expected.code and (expected.at is None or expected.at in problem.at):
            return
    wanted = expected.code + (f" at {expected.at}" if expected.at else "")
    found = "\n".join(f"  {problem}" for problem in problems) or f"  no {severity} at all"
    raise ScenarioFailure(f"deploy_{severity}: expected {wanted}, was\n{found}")
