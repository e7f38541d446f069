"""Requests that were kept because no engine ran, and what became of them.

Owns the answers to `Client.requests` and `Client.request`. A sender that finds no engine goes away; an engine may
refuse its request later, when nobody waits for the answer any more. Must not change anything.
"""

from __future__ import annotations

from typing import Literal, cast

from msgspec import Struct

from treadle.errors import CommandRefused
from treadle.model.commands import StartRun
from treadle.model.ids import RunId
from treadle.store.port import KeptRequest, Store
from treadle.store.service import ServiceStore

ENDING_MIN = 6
"""Least number of characters that name a request, as of runs."""
SEARCHED_MAX = 1_000
"""Newest requests that are searched for the end of an id."""


class RequestRow(Struct, frozen=True):
    """A kept request, as `treadle requests` lists it."""

    id: str
    run: RunId
    command: str
    """What it asks for: `complete_gate`."""
    asked: int
    """In milliseconds."""
    status: Literal["waiting", "done", "refused"]
    by: str | None = None
    workflow: str | None = None
    """The workflow of a run to be started."""
    kind: str | None = None
    """Of a refusal, as `CommandRefused` has it."""
    reason: str | None = None


async def requests(store: Store, run: RunId | None, limit: int) -> list[RequestRow]:
    """See `Client.requests`."""
    return [_row(kept) for kept in await cast(ServiceStore, store).kept(run, limit=limit)]


async def one_request(store: Store, id: str) -> RequestRow:
    """See `Client.request`."""
    ending = id.removeprefix("…")  # as a table shortens it
    found = await cast(ServiceStore, store).kept(request=ending)
    if not found and len(ending) >= ENDING_MIN:
        newest = await cast(ServiceStore, store).kept(limit=SEARCHED_MAX)
        found = [kept for kept in newest if kept[0].id.endswith(ending)]
    if len(found) > 1:
        raise CommandRefused("NOT_FOUND", f"several requests end in {id!r}: {', '.join(kept[0].id for kept in found)}")
    if not found:
        raise CommandRefused("NOT_FOUND", f"there is no request {id!r}: `treadle requests` lists those that were kept")
    return _row(found[0])


async def refused_start(store: Store, run: RunId) -> RequestRow | None:
    """The kept start of a run that an engine has refused."""
    rows = [_row(kept) for kept in await cast(ServiceStore, store).kept(run) if isinstance(kept[0].command, StartRun)]
    return next((row for row in rows if row.status == "refused"), None)


def _row(kept: KeptRequest) -> RequestRow:
    request, answer = kept
    rejection = answer.rejection if answer is not None else None
    command = request.command
    return RequestRow(
        request.id,
        request.run,
        str(command.__struct_config__.tag) if command is not None else "requeue",
        request.at,
        "waiting" if answer is None else "done" if rejection is None else "refused",
        by=getattr(command, "by", None),
        workflow=request.workflow,
        kind=rejection.kind if rejection is not None else None,
        reason=rejection.message if rejection is not None else None,
    )
