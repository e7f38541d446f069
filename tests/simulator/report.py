"""A failing seed on paper: how to play it again, what was broken, the definition, the history of the run concerned."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import msgspec

from tests.simulator.simulate import Failure, Outcome
from treadle.language.document import document_of
from treadle.model.definition import Workflow
from treadle.testing.scenario.log import render
from treadle.testing.world.clock import EPOCH_MS
from treadle.testing.world.projection import Projection


def git_hash() -> str:
    """Of the source this runs from; a seed means something only together with it."""
    command = ["git", "-C", str(Path(__file__).parent), "describe", "--always", "--exclude=*", "--dirty", "--abbrev=12"]
    try:
        found = subprocess.run(command, capture_output=True, text=True, timeout=10, check=False)
    except OSError:
        return "unknown"
    return found.stdout.strip() or "unknown"


def describe(outcome: Outcome) -> str:
    """Everything about a failing seed."""
    failure = outcome.failure
    assert failure is not None
    return "\n".join(_lines(outcome, failure))


def _lines(outcome: Outcome, failure: Failure) -> Iterator[str]:
    yield f"seed {outcome.seed} at {git_hash()}"
    yield f"again: {command(outcome)}"
    yield outcome.plan.describe()
    yield ""
    for workflow in failure.workflows:
        yield from _definition(workflow)
    yield ""
    yield from _history(failure)
    yield ""
    yield f"{failure.rule}: {failure.run}: {failure.text}"
    if failure.trace:
        yield failure.trace


def command(outcome: Outcome) -> str:
    """How to play it again."""
    without = f" --without {','.join(sorted(outcome.without))}" if outcome.without else ""
    store = f" --store {outcome.store}" if outcome.store != "memory" else ""
    return f"./dev sim {outcome.seed}{without}{store}"


def _definition(workflow: Workflow) -> Iterator[str]:
    document = document_of(workflow)
    nodes, transitions = document.pop("nodes"), document.pop("transitions", [])
    yield _json(document)
    for ref, node in nodes.items():
        yield f"  {ref}: {_json(node)}"
    for transition in transitions:
        yield f"  - {_json(transition)}"


def _json(value: object) -> str:
    text = msgspec.json.encode(value).decode()
    return text.replace('{"steps":[{"ref":"do","action":{"kind":"mock"}}]}', "TASK")


def _history(failure: Failure) -> Iterator[str]:
    if not failure.history:
        return
    projection = Projection()
    projection.apply(failure.history)
    yield from render(projection, EPOCH_MS)
