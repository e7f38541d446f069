"""Hooks and deliveries as the API takes and shows them (5.4). A secret is taken and never shown."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from treadle.runtime.service.hook_rules import Hook
from treadle.runtime.service.records import LogEntry
from treadle.server.workflows import segment

HookSource = Literal["generic", "standard", "github", "stripe", "slack", "none"]


class SignalGiven(Struct, kw_only=True, forbid_unknown_fields=True):
    """The signal that a delivery becomes; all runs that wait for it get it."""

    name: Annotated[str, Meta(min_length=1, max_length=200)]
    key: Annotated[Any, Meta(description="A source; only runs that wait for this key.")] = None


class HookEntity(Struct, kw_only=True, forbid_unknown_fields=True):
    """The entity that a delivery is about."""

    type: Annotated[str, Meta(min_length=1, max_length=200)]
    id: Annotated[Any, Meta(description="A source.", examples=["$.body.customer"])]
    name: Annotated[Any, Meta(description="A source.")] = None
    attributes: Annotated[dict[str, Any] | None, Meta(description="A mapping.")] = None


class HookGiven(Struct, kw_only=True):
    """A hook. Its rules read `body`, `headers` (names in lower case), `query` and `delivery` (`id`, `at`, `hook`,
    `digest`)."""

    source: Annotated[HookSource, Meta(description="How deliveries are signed.")]
    secret: Annotated[str | None, Meta(description="Written, never read back; left out, it stays as it is.")] = None
    workflow: Annotated[str | None, Meta(description="What a delivery starts; or `signal`.")] = None
    signal: SignalGiven | None = None
    input: Annotated[Any, Meta(description="A mapping, or one source; the body unless given.")] = None
    key: Annotated[Any, Meta(description="A source. A key counts once per hook.", examples=["$.body.id"])] = None
    entity: HookEntity | None = None
    when: Annotated[Any, Meta(description="A condition; others are accepted without effect.")] = None
    respond: Literal["accepted", "result"] = "accepted"


class HookView(Struct, kw_only=True, omit_defaults=True):
    """A hook, without its secret."""

    slug: str
    source: str
    has_secret: bool
    url: Annotated[str, Meta(description="Where to deliver, below the address of the service.")]
    respond: str
    created: int
    changed: int
    workflow: str | None = None
    signal: Any = None
    input: Any = None
    key: Any = None
    entity: Any = None
    when: Any = None


class HookPage(Struct):
    """A page of hooks."""

    items: list[HookView]
    next: str | None = None


class DeliveryView(Struct, kw_only=True, omit_defaults=True):
    """A delivery: what came, without credentials, and what became of it."""

    id: int
    at: int
    headers: dict[str, str]
    query: dict[str, str]
    media_type: str
    size: int
    digest: Annotated[str, Meta(description="SHA-256 of the body.")]
    text: Annotated[str | None, Meta(description="The body, if it is text.")] = None
    base64: Annotated[str | None, Meta(description="The body, if it is not.")] = None
    sender: str | None = None
    replay_of: int | None = None
    outcome: Annotated[Any, Meta(description="null: the process that took it has died, or is still at it.")] = None


class DeliveryPage(Struct):
    """A page of deliveries."""

    items: list[DeliveryView]
    next: str | None = None


class DeliveryQuery(Struct):
    """Which deliveries."""

    limit: Annotated[int, Meta(ge=1, le=1_000)] = 100
    cursor: str | None = None


class HookTaken(Struct, kw_only=True, omit_defaults=True):
    """The answer to a delivery."""

    delivery: int
    run: str | None = None
    runs: Annotated[list[str] | None, Meta(description="Runs that took the signal.")] = None
    status: Annotated[str | None, Meta(description="Of a run whose result was waited for.")] = None
    output: Any = None


def hook_view(hook: Hook) -> HookView:
    return HookView(
        slug=hook.slug,
        source=hook.source,
        has_secret=hook.sealed is not None,
        url=f"/hooks/{segment(hook.slug)}",
        respond=hook.respond,
        created=hook.created,
        changed=hook.changed,
        workflow=hook.workflow,
        signal=msgspec.to_builtins(hook.signal),
        input=hook.input,
        key=hook.key,
        entity=msgspec.to_builtins(hook.entity),
        when=hook.when,
    )


def delivery_view(entry: LogEntry) -> DeliveryView:
    return msgspec.convert({"id": entry.id, "at": entry.at, **entry.body}, DeliveryView)
