"""The same answer to many gates, with a result for each."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta, Struct

from treadle.errors import CommandRefused
from treadle.server.call import HttpAnswer, HttpCall
from treadle.server.gates import person_of
from treadle.server.problems import ProblemDocument, not_found, problem_of
from treadle.server.routes import APPROVER, Route

GATES_MAX = 1_000
"""Gates answered by one request: a page of a list."""


class GateNamed(Struct, forbid_unknown_fields=True):
    """One of many gates."""

    run: str
    visit: Annotated[int, Meta(ge=0)]


class ManyAnswers(Struct, kw_only=True):
    """The same answer to many gates."""

    gates: Annotated[list[GateNamed], Meta(min_length=1, max_length=GATES_MAX)]
    data: Any = None


class AnswerResult(Struct, omit_defaults=True):
    """What became of one of many answers."""

    run: str
    visit: int
    ok: bool
    problem: ProblemDocument | None = None


class AnswerResults(Struct):
    """What became of each answer, in the order of the request."""

    results: list[AnswerResult]


async def answer_many(call: HttpCall) -> HttpAnswer:
    given: ManyAnswers = call.body
    await call.service.require_engine()
    hidden = await _hidden(call, {gate.run for gate in given.gates})
    named = [(gate.run, gate.visit) for gate in given.gates if gate.run not in hidden]
    outcomes = {
        (outcome.run, outcome.visit): outcome
        for outcome in await call.client.complete_gates(named, given.data, person=person_of(call.who))
    }
    results = []
    for gate in given.gates:
        outcome = outcomes.get((gate.run, gate.visit))
        refused = outcome.problem if outcome is not None else not_found(f"run {gate.run!r}")
        results.append(AnswerResult(gate.run, gate.visit, refused is None, _told(call, refused)))
    return HttpAnswer(AnswerResults(results))


async def _hidden(call: HttpCall, runs: set[str]) -> set[str]:
    """Runs of workflows that the caller's key is not for."""
    if call.who.workflows is None:
        return set()
    found = set()
    for run in runs:
        try:
            row = await call.client.run(run).info()
        except CommandRefused:
            continue
        if not call.sees(row.workflow):
            found.add(run)
    return found


def _told(call: HttpCall, refused: BaseException | None) -> ProblemDocument | None:
    problem = problem_of(refused) if refused is not None else None
    return problem.document(call.request_id) if problem is not None else None


ROUTES = (
    Route(
        method="POST",
        path="/gates/answer",
        handler=answer_many,
        access=APPROVER,
        about="handler",
        noun="people",
        summary="Give many gates the same answer",
        description="A gate that refuses the answer does not affect the others: each has a result of its own.",
        body=ManyAnswers,
        answers={200: AnswerResults},
        problems=("NO_ENGINE",),
    ),
)
