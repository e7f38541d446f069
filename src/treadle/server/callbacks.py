"""Callbacks: where webhook workers answer (5.4).

Owns the form of an answer. Promises that every token this store has not made gets the same answer in about the same
time, whatever is wrong with it; that the token is judged before the body is read; and that an answer with a body that
cannot be used, one that is too large included, is recorded as refused, too. The kernel decides what an answer means.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from treadle.errors import CommandRefused
from treadle.model.errors import Error
from treadle.runtime.service.callbacks import Callback, Callbacks
from treadle.server.bodies import bad, read_body, read_query
from treadle.server.body_bytes import body_of
from treadle.server.call import HttpAnswer, HttpCall
from treadle.server.problems import HttpProblem, not_found
from treadle.server.routes import OPEN, Route


class CallbackError(Struct, kw_only=True, forbid_unknown_fields=True):
    """Why a worker has failed."""

    message: str = "the worker has failed"
    kind: Annotated[str, Meta(min_length=1, max_length=200)] = "TASK_FAILED"
    retryable: Annotated[bool, Meta(description="Whether the node's `retry` applies.")] = False
    details: Any = None


class CallbackAnswer(Struct, kw_only=True):
    """The answer of a worker."""

    status: Literal["completed", "failed"]
    output: Annotated[Any, Meta(description="Any JSON; only of one that completed.")] = None
    error: Annotated[CallbackError | str | None, Meta(description="Only of one that failed.")] = None
    cost: Annotated[float, Meta(ge=0)] | None = None
    usage: Annotated[dict[str, Any] | None, Meta(description="What was used up: tokens, seconds, bytes.")] = None


class CallbackTaken(Struct):
    """What became of the answer."""

    applied: Annotated[bool, Meta(description="False: the worker has answered the same before.")]


async def receive(call: HttpCall) -> HttpAnswer:
    callbacks: Callbacks = call.service.parts.setdefault("callbacks", call.client.callbacks)
    to = await callbacks.read(call.path["token"])
    if to is None:
        raise _unknown()
    await call.service.require_engine()
    try:
        output, error, spent = await _read(call)
    except HttpProblem as problem:
        await _recorded(callbacks, to, problem)
        raise
    try:
        return HttpAnswer(CallbackTaken(await callbacks.answer(to, output, error, spent)))
    except CommandRefused as refused:
        raise _unknown() if refused.kind == "NOT_FOUND" else refused from None


async def _recorded(callbacks: Callbacks, to: Callback, problem: HttpProblem) -> None:
    """Writes down that an answer could not be read. Raises NOT_FOUND if its run is gone."""
    try:
        await callbacks.refuse(to, problem.detail)
    except CommandRefused as refused:
        if refused.kind == "NOT_FOUND":
            raise _unknown() from None


def _unknown() -> HttpProblem:
    """The answer to every token that is good for nothing; the door gives the same to one that is no text at all."""
    return not_found("token with such a name")


async def _read(call: HttpCall) -> tuple[Any, Error | None, Any]:
    if call.request.scope["query_string"]:
        read_query(call.request.query_params.multi_items(), None)
    raw = await body_of(call.request, call.route, call.service.settings)
    given: CallbackAnswer = read_body(raw, CallbackAnswer)
    told = {"cost": given.cost, "usage": given.usage}
    spent = {name: value for name, value in told.items() if value is not None} or None
    if given.status == "completed":
        if given.error is not None:
            raise bad("an answer that completed has no error", place="$.error")
        return given.output, None, spent
    if given.output is not None:
        raise bad("an answer that failed has no output", place="$.output")
    failed = CallbackError(message=given.error) if isinstance(given.error, str) else given.error or CallbackError()
    return None, Error(failed.kind, failed.message, retryable=failed.retryable, details=failed.details), spent


ROUTES = (
    Route(
        method="POST",
        path="/callbacks/{token}",
        handler=receive,
        access=OPEN,
        about="none",
        noun="other systems",
        summary="Answer a webhook",
        description=(
            "For workers: the address is in the message they got (`callback_url`). The token in it is bound to run,"
            " visit and attempt. An output against the task's schema is refused, and fails the visit."
        ),
        root=True,
        body=CallbackAnswer,
        reads_body_itself=True,
        media_types=("application/json", "*/*"),
        answers={200: CallbackTaken},
        problems=("NOT_FOUND", "DUPLICATE", "INVALID_STATE", "LATE_RESULT", "SCHEMA", "TOO_LARGE", "NO_ENGINE"),
        audited=False,
    ),
)
