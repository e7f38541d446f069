"""Dead letters: messages to the outside that could not be delivered after every attempt."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from treadle.errors import CommandRefused
from treadle.server.call import HttpAnswer, HttpCall
from treadle.server.paging import PageQuery
from treadle.server.problems import not_found
from treadle.server.routes import OPERATOR, VIEWER, Route

Json = Any
LETTERS_MAX = 10_000
"""Letters that a walk sees, the oldest ones: more of them want a remedy, not a list."""


class DeadLetter(Struct, kw_only=True):
    """A message that could not be delivered."""

    id: int
    run: str
    what: Annotated[str | None, Meta(description="The kind of message.")]
    visit: int | None
    reason: Annotated[str | None, Meta(description="Why it was given up; null: it will be delivered again.")]
    effect: Annotated[Json, Meta(description="The message itself.")]


class DeadLetterList(Struct):
    """Dead letters, newest first."""

    items: list[DeadLetter]
    next: str | None


def _view(row: Any, *, revived: bool = False) -> DeadLetter:
    effect = msgspec.to_builtins(row.effect)
    return DeadLetter(
        id=row.id,
        run=row.run,
        what=effect.get("effect"),
        visit=effect.get("token"),
        reason=None if revived else row.parked,
        effect=effect,
    )


async def list_letters(call: HttpCall) -> HttpAnswer:
    before, limit = call.cursor(), call.query.limit
    letters = [row for row in await call.client.dead_letters(LETTERS_MAX) if before is None or row.id < before]
    letters.sort(key=lambda row: -row.id)
    shown = []
    for row in letters:
        if await _sees(call, row.run):
            shown.append(_view(row))
        if len(shown) > limit:
            break
    page = shown[:limit]
    return HttpAnswer(DeadLetterList(page, call.next_cursor(page[-1].id) if len(shown) > limit else None))


async def _sees(call: HttpCall, run: str) -> bool:
    """Whether the letter's run is of a workflow that the caller's key is for."""
    if call.who.workflows is None:
        return True
    try:
        return call.sees((await call.client.run(run).info()).workflow)
    except CommandRefused:
        return False


async def _find(call: HttpCall) -> Any:
    row = await call.client.dead_letter(call.number("id"))
    if not await _sees(call, row.run):
        raise not_found(f"dead letter {row.id}")
    return row


async def requeue(call: HttpCall) -> HttpAnswer:
    row = await _find(call)
    await call.service.require_engine()
    await call.client.requeue(row.id)
    return HttpAnswer(_view(row, revived=True))


async def remove(call: HttpCall) -> HttpAnswer:
    await call.client.drop_letter((await _find(call)).id)
    return HttpAnswer(status=204)


ROUTES = (
    Route(
        method="GET",
        path="/dead-letters",
        handler=list_letters,
        access=VIEWER,
        about="handler",
        noun="operating",
        summary="Messages that could not be delivered, newest first",
        query=PageQuery,
        answers={200: DeadLetterList},
    ),
    Route(
        method="POST",
        path="/dead-letters/{id}/requeue",
        handler=requeue,
        access=OPERATOR,
        about="handler",
        noun="operating",
        summary="Try to deliver a dead letter again",
        answers={200: DeadLetter},
        problems=("NOT_FOUND", "NO_ENGINE"),
    ),
    Route(
        method="DELETE",
        path="/dead-letters/{id}",
        handler=remove,
        access=OPERATOR,
        about="handler",
        noun="operating",
        summary="Give a dead letter up for good",
        answers={204: None},
        problems=("NOT_FOUND",),
    ),
)
