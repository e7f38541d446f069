"""The audit over HTTP: read it, and check that it is complete and unchanged."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from treadle.runtime.access.audit import LOG, AuditEvent, event_of
from treadle.runtime.service.records import LogEntry
from treadle.server.call import HttpAnswer, HttpCall, ListPage
from treadle.server.routes import ADMIN, Route

LOOKED_AT_MAX = 10_000
"""Entries that one request looks at: filters that fit little give a short page with a cursor, not a long wait."""
SCAN = 1_000
Limit = Annotated[int, Meta(ge=1, le=1_000)]


class AuditEntry(Struct, kw_only=True):
    """Somebody did something."""

    id: int
    at: int
    who: Annotated[str, Meta(description="`key:ID`, `session:ID`, `store` (directly on the store); empty: unknown.")]
    name: str
    user: str
    action: Annotated[str, Meta(examples=["POST /api/v1/runs", "keys create"])]
    path: str
    address: str
    status: Annotated[int, Meta(description="The status of the answer; 0: it was no request.")]
    outcome: Annotated[Literal["done", "refused"], Meta(description="`refused`: the status is 400 or above.")]
    code: str | None
    request_id: str
    about: str | None
    left_out: Annotated[int, Meta(description="Refusals of the same address before it that have no entry.")]
    hash: str


class AuditPage(Struct):
    """A page of the audit, newest first. A page may be short and still have a next one."""

    items: list[AuditEntry]
    next: str | None = None


class AuditFilter(Struct, kw_only=True):
    """Which entries."""

    who: str | None = None
    user: str | None = None
    action: str | None = None
    address: str | None = None
    request_id: str | None = None
    about: str | None = None
    outcome: Literal["done", "refused"] | None = None
    since: Annotated[int | None, Meta(description="From this instant on.")] = None
    until: Annotated[int | None, Meta(description="Before this instant.")] = None
    limit: Limit = 100
    cursor: str | None = None


class AuditVerdict(Struct):
    """Whether the audit is whole."""

    ok: bool
    count: Annotated[int, Meta(description="Entries that were ever written. Keep it elsewhere with `hash`.")]
    checked: int
    hash: str
    problems: list[str]


async def list_entries(call: HttpCall) -> HttpAnswer:
    wanted: AuditFilter = call.query
    await call.service.trail.write_now()
    before = call.cursor()
    found: list[AuditEntry] = []
    looked = 0
    while len(found) < wanted.limit and looked < LOOKED_AT_MAX:
        page = await call.client.records.entries(LOG, wanted.who, before=before, limit=SCAN)
        for entry in page:
            looked, before = looked + 1, entry.id
            event = event_of(entry)
            if wanted.since is not None and entry.at < wanted.since:
                return HttpAnswer(ListPage(found))
            if _fits(entry, event, wanted):
                found.append(_view(entry, event))
                if len(found) == wanted.limit:
                    break
        if len(page) < SCAN and (not page or page[-1].id == before):
            return HttpAnswer(ListPage(found))
    return HttpAnswer(ListPage(found, call.next_cursor(before)))


def _fits(entry: LogEntry, event: AuditEvent, wanted: AuditFilter) -> bool:
    if wanted.until is not None and entry.at >= wanted.until:
        return False
    if wanted.outcome not in (None, _outcome(event)):
        return False
    pairs = (
        (wanted.user, event.user),
        (wanted.action, event.action),
        (wanted.address, event.address),
        (wanted.request_id, event.request),
        (wanted.about, event.about),
    )
    return all(value is None or value == has for value, has in pairs)


def _outcome(event: AuditEvent) -> Literal["done", "refused"]:
    return "refused" if event.status >= 400 else "done"


def _view(entry: LogEntry, event: AuditEvent) -> AuditEntry:
    return AuditEntry(
        id=entry.id,
        at=entry.at,
        who=event.who,
        name=event.name,
        user=event.user,
        action=event.action,
        path=event.path,
        address=event.address,
        status=event.status,
        outcome=_outcome(event),
        code=event.code,
        request_id=event.request,
        about=event.about,
        left_out=event.left_out,
        hash=entry.hash,
    )


async def verify(call: HttpCall) -> HttpAnswer:
    await call.service.trail.write_now()
    verdict = await call.client.records.verify_log(LOG)
    return HttpAnswer(AuditVerdict(verdict.ok, verdict.count, verdict.checked, verdict.hash, verdict.problems))


ROUTES = (
    Route(
        method="GET",
        path="/audit",
        handler=list_entries,
        access=ADMIN,
        about="none",
        noun="audit",
        summary="Who did what, when, from where, with which outcome",
        query=AuditFilter,
        answers={200: AuditPage},
    ),
    Route(
        method="GET",
        path="/audit/verify",
        handler=verify,
        access=ADMIN,
        about="none",
        noun="audit",
        summary="Check that no entry is missing or was changed",
        answers={200: AuditVerdict},
    ),
)
