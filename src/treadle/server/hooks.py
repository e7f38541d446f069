"""Ingress hooks: where other systems deliver, and what authors say about it (5.4).

Owns the form of a hook and of its deliveries over HTTP. `Client.hooks` does the work; what a delivery means, its hook's
rules say.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

from treadle.errors import DefinitionError
from treadle.language.hook import read_hook_rules
from treadle.runtime.service.deliveries import Delivered, without_credentials
from treadle.runtime.service.hook_rules import EntityRule, Hook, SignalRule
from treadle.runtime.service.hooks import Received
from treadle.server.bodies import bad
from treadle.server.call import HttpAnswer, HttpCall, created
from treadle.server.hook_bodies import (
    DeliveryPage,
    DeliveryQuery,
    HookGiven,
    HookPage,
    HookTaken,
    HookView,
    delivery_view,
    hook_view,
)
from treadle.server.paging import PageQuery, page_of
from treadle.server.problems import HttpProblem, not_found
from treadle.server.routes import AUTHOR, OPEN, Route
from treadle.server.workflows import segment

SLUG = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


async def receive(call: HttpCall) -> HttpAnswer:
    request = call.request
    delivered = Delivered(
        headers=without_credentials(request.headers),
        query=dict(request.query_params.multi_items()),
        body=call.raw,
        media_type=request.headers.get("content-type", ""),
        sender=request.client.host if request.client is not None else None,
    )
    return _answer(await call.client.hooks.receive(_slug(call), delivered))


async def replay(call: HttpCall) -> HttpAnswer:
    await _visible(call)
    return _answer(await call.client.hooks.replay(_slug(call), call.number("id")))


def _answer(received: Received) -> HttpAnswer:
    outcome = received.outcome
    if outcome.status >= 400:
        raise HttpProblem(outcome.code or "BAD_REQUEST", outcome.detail or "", status=outcome.status)
    runs = list(outcome.runs) if outcome.result in ("signalled", "seen") and outcome.run is None else None
    body: dict[str, Any] = {"delivery": received.delivery}
    if outcome.run is not None:
        body["run"] = outcome.run
    if runs is not None:
        body["runs"] = runs
    if outcome.ended is not None:
        body |= {"status": outcome.ended, "output": outcome.output}
    return HttpAnswer(body, outcome.status)


async def list_hooks(call: HttpCall) -> HttpAnswer:
    hooks = [hook for hook in await call.client.hooks.all() if _sees(call, hook)]
    shown, more = page_of(call, hooks, lambda hook: [hook.created, hook.slug], newest_first=True)
    return HttpAnswer(HookPage([hook_view(hook) for hook in shown], more))


async def show(call: HttpCall) -> HttpAnswer:
    return HttpAnswer(hook_view(await _visible(call)))


async def put(call: HttpCall) -> HttpAnswer:
    slug, given = _slug(call), call.body
    _check(given)
    if call.who.workflows is not None:
        if given.workflow is None or not call.sees(given.workflow):
            raise HttpProblem("FORBIDDEN", "this key is not for that workflow")
        if any(hook.slug == slug and not _sees(call, hook) for hook in await call.client.hooks.all()):
            raise HttpProblem("FORBIDDEN", "this key is not for that hook")
    rules = {name: msgspec.to_builtins(getattr(given, name)) for name in ("input", "key", "when", "signal", "entity")}
    canonical, problems = read_hook_rules({name: rule for name, rule in rules.items() if rule is not None})
    if problems:
        raise DefinitionError(problems)
    entity, signal = canonical.pop("entity", None), canonical.pop("signal", None)
    hook = Hook(
        slug=slug,
        source=given.source,
        workflow=given.workflow,
        signal=msgspec.convert(signal, SignalRule | None),
        entity=msgspec.convert(entity, EntityRule | None),
        respond=given.respond,
        **canonical,
    )
    kept, is_new = await call.client.hooks.put(hook, given.secret)
    view = hook_view(kept)
    return created(view, f"/api/v1/hooks/{segment(slug)}") if is_new else HttpAnswer(view)


def _check(given: HookGiven) -> None:
    if (given.workflow is None) == (given.signal is None):
        raise bad("a hook starts a `workflow` or sends a `signal`: one of them", place="$.workflow")
    if given.signal is not None and given.respond == "result":
        raise bad("a signal has no result to wait for", place="$.respond")
    if given.signal is not None and given.entity is not None:
        raise bad("only a run that is started has an entity", place="$.entity")


async def remove(call: HttpCall) -> HttpAnswer:
    await _visible(call)
    await call.client.hooks.remove(_slug(call))
    return HttpAnswer(status=204)


async def deliveries(call: HttpCall) -> HttpAnswer:
    await _visible(call)
    limit = call.query.limit
    found = await call.client.hooks.deliveries(_slug(call), before=call.cursor(), limit=limit + 1)
    page = found[:limit]
    following = call.next_cursor(page[-1].id) if len(found) > limit else None
    return HttpAnswer(DeliveryPage([delivery_view(entry) for entry in page], following))


async def _visible(call: HttpCall) -> Hook:
    hook = await call.client.hooks.find(_slug(call))
    if not _sees(call, hook):
        raise not_found(f"hook {hook.slug!r}")
    return hook


def _sees(call: HttpCall, hook: Hook) -> bool:
    """A key for some workflows sees the hooks that start them."""
    return call.who.workflows is None or (hook.workflow is not None and call.sees(hook.workflow))


def _slug(call: HttpCall) -> str:
    slug = call.path["slug"]
    if not SLUG.fullmatch(slug):
        if call.route.method == "PUT":
            raise bad("a slug has letters, digits, dots, dashes and underscores, at most 100", place="slug")
        raise not_found(f"hook {slug!r}")
    return slug


def _author(method: Any, path: str, handler: Any, summary: str, answers: dict[int, Any], **more: Any) -> Route:
    return Route(
        method=method,
        path=path,
        handler=handler,
        access=AUTHOR,
        about="handler",
        noun="other systems",
        summary=summary,
        answers=answers,
        **more,
    )


ROUTES = (
    Route(
        method="POST",
        path="/hooks/{slug}",
        handler=receive,
        access=OPEN,
        about="none",
        noun="other systems",
        summary="Deliver to a hook",
        description=(
            "For other systems. The delivery is written down first; then its signature is checked, its condition and"
            " its mappings are evaluated, and a run is started or a signal sent. A key that was seen before answers 200"
            " with the first run."
        ),
        root=True,
        body=bytes,
        media_types=("application/json", "application/x-www-form-urlencoded", "*/*"),
        takes_any_query=True,
        answers={202: HookTaken, 200: HookTaken},
        problems=("UNAUTHENTICATED", "NOT_FOUND", "SCHEMA", "TOO_LARGE", "NO_ENGINE"),
        audited=False,
    ),
    _author("GET", "/hooks", list_hooks, "Hooks, newest first", {200: HookPage}, query=PageQuery),
    _author("GET", "/hooks/{slug}", show, "A hook", {200: HookView}, problems=("NOT_FOUND",)),
    _author(
        "PUT",
        "/hooks/{slug}",
        put,
        "Create or replace a hook",
        {201: HookView, 200: HookView},
        body=HookGiven,
        problems=("SCHEMA", "STALE_VERSION"),
    ),
    _author("DELETE", "/hooks/{slug}", remove, "Remove a hook", {204: None}, problems=("NOT_FOUND",)),
    _author(
        "GET",
        "/hooks/{slug}/deliveries",
        deliveries,
        "Deliveries of a hook, newest first",
        {200: DeliveryPage},
        query=DeliveryQuery,
        problems=("NOT_FOUND",),
    ),
    _author(
        "POST",
        "/hooks/{slug}/deliveries/{id}/replay",
        replay,
        "Take a delivery again",
        {202: HookTaken, 200: HookTaken},
        problems=("NOT_FOUND", "INVALID_STATE", "SCHEMA", "NO_ENGINE"),
    ),
)
