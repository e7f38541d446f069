"""A scenario as data: what was written, checked, and nothing decided yet.

Owns the shapes of docs/reference/scenarios.md. Promises that every `Scenario` is well-formed; whether its
addresses name nodes that exist is known only once its definitions are loaded. Must not know how it is run.
"""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct

from treadle.model.errors import Error
from treadle.model.references import EntityRef, Person
from treadle.testing.scenario.place import ValuePlace
from treadle.testing.world.outcomes import CrashPoint, Outcome

Json = Any


class Mock(Struct, frozen=True):
    """Successive executions take successive outcomes; the last one repeats."""

    address: str
    outcomes: tuple[Outcome, ...]
    place: ValuePlace


class Start(Struct, frozen=True):
    """How a run begins."""

    workflow: str | None = None
    input: Json = {}
    entity: EntityRef | None = None
    idempotency_key: str | None = None
    name: str | None = None
    place: ValuePlace | None = None


class Definition(Struct, frozen=True):
    """A workflow the scenario deploys: written inline, or in a file of its own."""

    place: ValuePlace
    file: str | None = None
    workflow: str | None = None
    """Which one of the file's."""


class ErrorExpected(Struct, frozen=True):
    kind: str | None = None
    message_contains: str | None = None


class WaitExpected(Struct, frozen=True):
    node: str
    reason: str
    awaiting: int | None = None


class EntityExpected(Struct, frozen=True):
    """Only the keys that were given are compared."""

    position: dict[str, Json]
    journey: list[dict[str, Json]] | None = None


class Expectation(Struct, frozen=True):
    """Only what is given is checked; None is "not given"."""

    place: ValuePlace
    status: str | None = None
    error: ErrorExpected | None = None
    visits: dict[str, int] | None = None
    attempts: dict[str, int] | None = None
    order: list[str] | None = None
    paths: dict[str, list[str]] | None = None
    state: Json = None
    output: Json = None
    node_output: dict[str, Json] | None = None
    waiting: list[WaitExpected] | None = None
    tokens: dict[str, int] | None = None
    events: list[str] | None = None
    no_events: list[str] | None = None
    event_counts: dict[str, int] | None = None
    warnings: list[str] | None = None
    elapsed_ms: int | None = None
    runs: dict[str, Expectation] | None = None
    entity: EntityExpected | None = None
    dispatches: dict[str, int] | None = None
    queued: list[str] | None = None
    spent: dict[str, float] | None = None


class ScenarioStep(Struct, frozen=True, kw_only=True):
    """One thing done to the run. `refused` is the error kind it must be refused with, `expect_refused` what the refusal
    must say."""

    place: ValuePlace
    refused: str | None = None
    expect_refused: tuple[str, ...] = ()
    visit: int | None = None
    run: str | None = None


class AdvanceStep(ScenarioStep, frozen=True):
    ms: int


class SettleStep(ScenarioStep, frozen=True):
    pass


class ReleaseStep(ScenarioStep, frozen=True):
    address: str
    outcome: Outcome


class SignalStep(ScenarioStep, frozen=True):
    name: str
    key: Json = None
    data: Json = None


class AnswerGateStep(ScenarioStep, frozen=True):
    """A person completes a gate, or every open one at a node."""

    address: str
    data: Json = None
    every: bool = False
    by: str | None = None
    force: bool = False
    person: Person | None = None
    comment: str | None = None


class HandGateStep(ScenarioStep, frozen=True):
    """Somebody claims a gate, releases it, passes it on or comments it."""

    address: str
    move: str
    """claim_gate | release_gate | delegate_gate | comment_gate"""
    by: str
    to: str = ""
    force: bool = False
    person: Person | None = None
    text: str = ""


class CallbackStep(ScenarioStep, frozen=True):
    address: str
    output: Json = None
    error: Error | None = None
    spent: Json = None
    times: int = 1
    attempt: int | None = None


class CancelRunStep(ScenarioStep, frozen=True):
    pass


class CancelGroupStep(ScenarioStep, frozen=True):
    group: str
    join: Literal["fire", "drop"] = "fire"


class CancelNodeStep(ScenarioStep, frozen=True):
    address: str


class RetryStep(ScenarioStep, frozen=True):
    address: str


class RetryRunStep(ScenarioStep, frozen=True):
    """Of everything in the run that failed unhandled."""


class PauseStep(ScenarioStep, frozen=True):
    pass


class ResumeStep(ScenarioStep, frozen=True):
    pass


class ExtendTimeoutStep(ScenarioStep, frozen=True):
    ms: int


class RaiseBudgetStep(ScenarioStep, frozen=True):
    """Adds to the limits of the run's budget."""

    amounts: dict[str, float]


class AbortStep(ScenarioStep, frozen=True):
    pass


class SkipCompensationStep(ScenarioStep, frozen=True):
    address: str


class RetryCompensationStep(ScenarioStep, frozen=True):
    address: str


class AddSiblingsStep(ScenarioStep, frozen=True):
    group: str
    items: list[Json] | None = None
    count: int | None = None


class CloseGroupStep(ScenarioStep, frozen=True):
    group: str


class CrashStep(ScenarioStep, frozen=True):
    """Now, or (`at`) at the n-th such point from here."""

    at: CrashPoint | None = None
    count: int = 1
    down_ms: int = 0


class StartRunStep(ScenarioStep, frozen=True):
    start: Start


class MigrateStep(ScenarioStep, frozen=True):
    """The run goes on under another version, or (`dry_run`) is only asked whether it could."""

    to: int
    nodes: dict[str, str] = {}
    dry_run: bool = False


class DeployStep(ScenarioStep, frozen=True):
    definition: Definition


class ExpectStep(ScenarioStep, frozen=True):
    expectation: Expectation


class DeployExpected(Struct, frozen=True):
    """The problem a definition must have."""

    code: str
    at: str | None = None


class Scenario(Struct, frozen=True):
    """One document of a scenario file."""

    name: str
    file: str
    line: int
    definitions: list[Definition]
    start: Start
    mocks: list[Mock]
    steps: list[ScenarioStep] | None = None
    """None: the run is driven to its end."""
    expect: Expectation | None = None
    deploy_error: DeployExpected | None = None
    deploy_warning: DeployExpected | None = None
    shuffle: int = 0
    runs: bool = True
    """False when only the deployment is of interest."""
