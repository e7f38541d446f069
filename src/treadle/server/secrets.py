"""Stored secrets over HTTP: their names and where they may go. A value is written and never read back."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from treadle.runtime.access.secrets import StoredSecret
from treadle.server.call import HttpAnswer, HttpCall, ListPage
from treadle.server.paging import PageQuery, page_of
from treadle.server.routes import ADMIN, Route


class SecretView(Struct, kw_only=True):
    """A secret, without its value."""

    name: str
    hosts: Annotated[list[str] | None, Meta(description="The only hosts it may be sent to; null: any.")]
    created: int
    changed: int
    changed_by: str | None
    last_used: Annotated[int | None, Meta(description="To the minute; null: never.")] = None


class SecretPage(Struct):
    """A page of secrets."""

    items: list[SecretView]
    next: str | None = None


class SecretGiven(Struct, kw_only=True):
    """A secret to keep. To change its hosts, send its value again."""

    value: str
    hosts: Annotated[
        list[str] | None, Meta(description="`api.example.com`, `*.example.com`. Without: it may go anywhere.")
    ] = None


def view(secret: StoredSecret, last_used: int | None = None) -> SecretView:
    return SecretView(
        name=secret.name,
        hosts=list(secret.hosts) if secret.hosts is not None else None,
        created=secret.created,
        changed=secret.changed,
        changed_by=secret.changed_by,
        last_used=last_used,
    )


async def list_secrets(call: HttpCall) -> HttpAnswer:
    used = await call.client.secrets.last_used()
    secrets = await call.client.secrets.list()
    shown, more = page_of(call, secrets, lambda one: [one.created, one.name], newest_first=True)
    return HttpAnswer(ListPage([view(one, used.get(one.name)) for one in shown], more))


async def put(call: HttpCall) -> HttpAnswer:
    given: SecretGiven = call.body
    secret, is_new = await call.client.secrets.put(
        call.path["name"],
        given.value,
        given.hosts,
        by=call.who.name,
        audited=lambda name, is_new: call.audited(201 if is_new else 200, name),
    )
    if not is_new:
        return HttpAnswer(view(secret))
    return HttpAnswer(view(secret), 201, {"location": "/api/v1/secrets"})


async def remove(call: HttpCall) -> HttpAnswer:
    await call.client.secrets.remove(call.path["name"], lambda name, _is_new: call.audited(204, name))
    return HttpAnswer(status=204)


ROUTES = (
    Route(
        method="GET",
        path="/secrets",
        handler=list_secrets,
        access=ADMIN,
        about="none",
        noun="secrets",
        summary="Names of secrets, newest first, where they may go, when they were used",
        query=PageQuery,
        answers={200: SecretPage},
    ),
    Route(
        method="PUT",
        path="/secrets/{name}",
        handler=put,
        access=ADMIN,
        about="none",
        noun="secrets",
        summary="Write a secret",
        description="It wins over TREADLE_SECRET_… of the environment, from the next attempt on.",
        body=SecretGiven,
        answers={201: SecretView, 200: SecretView},
    ),
    Route(
        method="DELETE",
        path="/secrets/{name}",
        handler=remove,
        access=ADMIN,
        about="none",
        noun="secrets",
        summary="Remove a secret",
        answers={204: None},
        problems=("NOT_FOUND",),
    ),
)
