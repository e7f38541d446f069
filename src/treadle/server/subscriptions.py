"""Subscriptions: addresses that events of runs are sent to (5.4).

Owns their form over HTTP. `Client.subscriptions` keeps them, an engine sends.
"""

from __future__ import annotations

import re
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from treadle.runtime.service.records import LogEntry
from treadle.runtime.service.subscriptions import SubscriptionRecord, SubscriptionState
from treadle.server.bodies import bad
from treadle.server.call import HttpAnswer, HttpCall, created
from treadle.server.hook_bodies import DeliveryQuery
from treadle.server.paging import PageQuery, page_of
from treadle.server.problems import not_found
from treadle.server.routes import AUTHOR, Route
from treadle.server.workflows import segment

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


class SubscriptionGiven(Struct, kw_only=True):
    """A subscription."""

    url: Annotated[str, Meta(description="Where events are sent to.", examples=["https://orders.example/events"])]
    types: Annotated[list[str], Meta(description="Patterns of event types.", examples=[["run.*", "custom.order.*"]])]
    workflows: Annotated[list[str] | None, Meta(description="Patterns of workflows; all unless given.")] = None
    secret: Annotated[
        str | None,
        Meta(description="Signs the messages: `whsec_` and base64. Never read back; left out, it stays as it is."),
    ] = None


class SubscriptionView(Struct, kw_only=True, omit_defaults=True):
    """A subscription, without its secret."""

    name: str
    url: str
    types: list[str]
    has_secret: bool
    created: int
    changed: int
    workflows: list[str] | None = None
    failing_since: Annotated[int | None, Meta(description="Since when its endpoint has accepted nothing.")] = None
    error: Annotated[str | None, Meta(description="The last failure.")] = None
    replaying: Annotated[Any, Meta(description="The replay under way: `since`, `until`, and the last run done.")] = None
    paused: Annotated[
        int | None,
        Meta(description="When it was paused: its endpoint had failed for an hour. PUT or replay lets it go on."),
    ] = None


class SubscriptionPage(Struct):
    """A page of subscriptions."""

    items: list[SubscriptionView]
    next: str | None = None


class SentView(Struct, kw_only=True, omit_defaults=True):
    """One event on its way to an endpoint."""

    id: int
    at: int
    result: Annotated[str, Meta(description="sent, failed, or paused.")]
    run: str | None = None
    seq: int | None = None
    type: str | None = None
    position: str | None = None
    detail: str | None = None


class SentPage(Struct):
    """A page of deliveries."""

    items: list[SentView]
    next: str | None = None


class ReplayFrom(Struct, forbid_unknown_fields=True, rename={"start": "from"}):
    """Where to begin again."""

    start: Annotated[int | str, Meta(description="An instant in milliseconds, or the `position` of a message.")]


async def list_subscriptions(call: HttpCall) -> HttpAnswer:
    states = await call.client.subscriptions.all()
    shown, more = page_of(call, states, lambda state: [state.record.created, state.record.name], newest_first=True)
    return HttpAnswer(SubscriptionPage([_view(state) for state in shown], more))


async def show(call: HttpCall) -> HttpAnswer:
    return HttpAnswer(_view(await call.client.subscriptions.find(_name(call))))


async def put(call: HttpCall) -> HttpAnswer:
    given: SubscriptionGiven = call.body
    workflows = tuple(given.workflows) if given.workflows is not None else None
    record = SubscriptionRecord(name=_name(call), url=given.url, types=tuple(given.types), workflows=workflows)
    state, is_new = await call.client.subscriptions.put(record, given.secret)
    view = _view(state)
    return created(view, f"/api/v1/subscriptions/{segment(record.name)}") if is_new else HttpAnswer(view)


async def remove(call: HttpCall) -> HttpAnswer:
    await call.client.subscriptions.remove(_name(call))
    return HttpAnswer(status=204)


async def deliveries(call: HttpCall) -> HttpAnswer:
    await call.client.subscriptions.find(_name(call))
    limit = call.query.limit
    found = await call.client.subscriptions.deliveries(_name(call), before=call.cursor(), limit=limit + 1)
    page = found[:limit]
    following = call.next_cursor(page[-1].id) if len(found) > limit else None
    return HttpAnswer(SentPage([_delivery(entry) for entry in page], following))


async def replay(call: HttpCall) -> HttpAnswer:
    return HttpAnswer(_view(await call.client.subscriptions.replay(_name(call), call.body.start)))


def _name(call: HttpCall) -> str:
    name = call.path["name"]
    if not NAME.fullmatch(name):
        if call.route.method == "PUT":
            raise bad("a name has letters, digits, dots, dashes and underscores, at most 100", place="name")
        raise not_found(f"subscription {name!r}")
    return name


def _view(state: SubscriptionState) -> SubscriptionView:
    record, progress = state.record, state.progress
    return SubscriptionView(
        name=record.name,
        url=record.url,
        types=list(record.types),
        has_secret=record.sealed is not None,
        created=record.created,
        changed=record.changed,
        workflows=list(record.workflows) if record.workflows is not None else None,
        failing_since=progress.failing_since,
        error=progress.error,
        paused=progress.paused,
        replaying=msgspec.to_builtins(progress.replay),
    )


def _delivery(entry: LogEntry) -> SentView:
    return msgspec.convert({"id": entry.id, "at": entry.at, **entry.body}, SentView)


def _route(method: Any, path: str, handler: Any, summary: str, answers: dict[int, Any], **more: Any) -> Route:
    return Route(
        method=method,
        path=f"/subscriptions{path}",
        handler=handler,
        access=AUTHOR,
        about="none",
        noun="other systems",
        summary=summary,
        answers=answers,
        **more,
    )


ROUTES = (
    _route("GET", "", list_subscriptions, "Subscriptions, newest first", {200: SubscriptionPage}, query=PageQuery),
    _route("GET", "/{name}", show, "A subscription", {200: SubscriptionView}, problems=("NOT_FOUND",)),
    _route(
        "PUT",
        "/{name}",
        put,
        "Create or replace a subscription",
        {201: SubscriptionView, 200: SubscriptionView},
        description="A new one begins with what happens from now on. One that was paused gets what it has missed.",
        body=SubscriptionGiven,
        problems=("STALE_VERSION",),
    ),
    _route("DELETE", "/{name}", remove, "Remove a subscription", {204: None}, problems=("NOT_FOUND",)),
    _route(
        "GET",
        "/{name}/deliveries",
        deliveries,
        "Deliveries of a subscription, newest first",
        {200: SentPage},
        query=DeliveryQuery,
        problems=("NOT_FOUND",),
    ),
    _route(
        "POST",
        "/{name}/replay",
        replay,
        "Send events again, from an instant or a position",
        {200: SubscriptionView},
        body=ReplayFrom,
        problems=("NOT_FOUND",),
    ),
)
