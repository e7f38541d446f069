"""API keys over HTTP: list, make, revoke."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from treadle.runtime.access.keys import Key
from treadle.server.call import HttpAnswer, HttpCall, ListPage, created
from treadle.server.paging import PageQuery, page_of
from treadle.server.routes import ADMIN, Role, Route


class KeyView(Struct, kw_only=True):
    """A key, without the key itself."""

    id: str
    name: str
    user: str
    groups: list[str]
    roles: list[str]
    workflows: list[str] | None
    expires: int | None
    created: int
    created_by: str | None
    last_used: Annotated[int | None, Meta(description="To the minute; null: never.")] = None


class NewKeyView(KeyView, kw_only=True):
    """A key that was just made."""

    key: Annotated[str, Meta(description="The key itself. It is shown this once.")]


class KeyPage(Struct):
    """A page of keys."""

    items: list[KeyView]
    next: str | None = None


class NewKey(Struct, kw_only=True):
    """What a new key may do."""

    name: str
    roles: list[Role]
    user: str | None = None
    groups: list[str] = []
    workflows: Annotated[list[str] | None, Meta(description="Patterns of workflows: `orders/*`.")] = None
    expires: Annotated[int | None, Meta(description="Milliseconds since 1970.")] = None


def view(key: Key, last_used: int | None = None) -> KeyView:
    workflows = list(key.workflows) if key.workflows is not None else None
    return KeyView(
        id=key.id,
        name=key.name,
        user=key.user,
        groups=list(key.groups),
        roles=list(key.roles),
        workflows=workflows,
        expires=key.expires,
        created=key.created,
        created_by=key.created_by,
        last_used=last_used,
    )


async def list_keys(call: HttpCall) -> HttpAnswer:
    used = await call.client.keys.last_used()
    keys = await call.client.keys.list()
    shown, more = page_of(call, keys, lambda key: [key.created, key.id], newest_first=True)
    return HttpAnswer(ListPage([view(key, used.get(key.id)) for key in shown], more))


async def create(call: HttpCall) -> HttpAnswer:
    given: NewKey = call.body
    keys = call.client.keys
    key, text = keys.draft(
        given.name,
        [str(role) for role in given.roles],
        user=given.user,
        groups=given.groups,
        workflows=given.workflows,
        expires=given.expires,
        by=call.who.name,
    )
    shown = view(key)
    made = NewKeyView(**{name: getattr(shown, name) for name in shown.__struct_fields__}, key=text)
    answer = created(made, f"/api/v1/keys/{key.id}")
    await keys.keep(key, lambda kept: call.audited(201, kept.id), call.notes(answer, sealed=True))
    call.service.forget_keys()
    return answer


async def revoke(call: HttpCall) -> HttpAnswer:
    await call.client.keys.revoke(call.path["id"], lambda key: call.audited(204, key.id))
    call.service.forget_keys()
    return HttpAnswer(status=204)


ROUTES = (
    Route(
        method="GET",
        path="/keys",
        handler=list_keys,
        access=ADMIN,
        about="none",
        noun="keys",
        summary="Keys, newest first, without the keys themselves",
        query=PageQuery,
        answers={200: KeyPage},
    ),
    Route(
        method="POST",
        path="/keys",
        handler=create,
        access=ADMIN,
        about="none",
        noun="keys",
        summary="Make a key",
        body=NewKey,
        answers={201: NewKeyView},
        makes={"id": "id"},
    ),
    Route(
        method="DELETE",
        path="/keys/{id}",
        handler=revoke,
        access=ADMIN,
        about="none",
        noun="keys",
        summary="Revoke a key",
        answers={204: None},
        problems=("NOT_FOUND",),
    ),
)
