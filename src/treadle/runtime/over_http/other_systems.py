"""Hooks and subscriptions behind a service: the methods of `Client.hooks` and `Client.subscriptions`, over HTTP.

A secret is sent and never comes back: of one that is kept, a record has the empty text as `sealed`. Must not know a
store."""

from __future__ import annotations

from typing import Any

import msgspec

from treadle.errors import CommandRefused
from treadle.runtime.over_http.commanding import OverHttp
from treadle.runtime.over_http.connection import segment
from treadle.runtime.over_http.reading import fitted
from treadle.runtime.service.deliveries import Delivered
from treadle.runtime.service.hook_rules import Hook
from treadle.runtime.service.hooks import LOG as HOOK_LOG
from treadle.runtime.service.hooks import HookOutcome, Hooks, Received
from treadle.runtime.service.records import LogEntry
from treadle.runtime.service.subscriptions import LOG as SUBSCRIPTION_LOG
from treadle.runtime.service.subscriptions import (
    SubscriptionProgress,
    SubscriptionRecord,
    Subscriptions,
    SubscriptionState,
)

Json = Any
KEPT_BY_THE_SERVICE = ("slug", "sealed", "earlier", "created", "changed")
"""Fields of a hook that are not sent."""


class ServiceHooks(Hooks):
    """See the module's docstring."""

    def __init__(self, commander: OverHttp) -> None:
        self._http, self._reader = commander.connection, commander.reader

    async def all(self) -> list[Hook]:
        return [_hook(row) for row in await self._http.all_of("/hooks")]

    async def find(self, slug: str) -> Hook:
        return _hook(await self._http.get(_hook_path(slug)))

    async def put(self, hook: Hook, secret: str | None = None) -> tuple[Hook, bool]:
        is_new = all(known.slug != hook.slug for known in await self.all())
        rules = {name: part for name, part in msgspec.to_builtins(hook).items() if name not in KEPT_BY_THE_SERVICE}
        given = {name: part for name, part in {**rules, "secret": secret}.items() if part is not None}
        return _hook(await self._http.send("PUT", _hook_path(hook.slug), given)), is_new

    async def remove(self, slug: str) -> None:
        await self._http.send("DELETE", _hook_path(slug))

    async def deliveries(self, slug: str, *, before: int | None = None, limit: int = 100) -> list[LogEntry]:
        return await _entries(self._reader, f"{_hook_path(slug)}/deliveries", HOOK_LOG, slug, before, limit)

    async def receive(self, slug: str, delivered: Delivered) -> Received:  # noqa: ARG002
        raise CommandRefused("BAD_REQUEST", f"other systems deliver at POST /hooks/{segment(slug)} of the service")

    async def replay(self, slug: str, id: int) -> Received:
        """As on a store: also a delivery that is refused again is an outcome."""
        try:
            told = await self._http.send("POST", f"{_hook_path(slug)}/deliveries/{id}/replay")
            entry = await self.delivery(slug, told["delivery"])
        except CommandRefused:
            newest = await self.deliveries(slug, limit=1)
            if not newest or newest[0].body.get("replay_of") != id or newest[0].body.get("outcome") is None:
                raise
            entry = newest[0]
        return Received(entry.id, msgspec.convert(entry.body["outcome"], HookOutcome))


class ServiceSubscriptions(Subscriptions):
    """See the module's docstring."""

    def __init__(self, commander: OverHttp) -> None:
        self._http, self._reader = commander.connection, commander.reader

    async def all(self) -> list[SubscriptionState]:
        return [_subscription(row) for row in await self._http.all_of("/subscriptions")]

    async def find(self, name: str) -> SubscriptionState:
        return _subscription(await self._http.get(_subscription_path(name)))

    async def put(self, record: SubscriptionRecord, secret: str | None = None) -> tuple[SubscriptionState, bool]:
        is_new = all(known.record.name != record.name for known in await self.all())
        given = {"url": record.url, "types": list(record.types), "secret": secret, "workflows": record.workflows}
        body = {name: part for name, part in given.items() if part is not None}
        return _subscription(await self._http.send("PUT", _subscription_path(record.name), body)), is_new

    async def remove(self, name: str) -> None:
        await self._http.send("DELETE", _subscription_path(name))

    async def replay(self, name: str, start: int | str) -> SubscriptionState:
        return _subscription(await self._http.send("POST", f"{_subscription_path(name)}/replay", {"from": start}))

    async def deliveries(self, name: str, *, before: int | None = None, limit: int = 100) -> list[LogEntry]:
        path = f"{_subscription_path(name)}/deliveries"
        return await _entries(self._reader, path, SUBSCRIPTION_LOG, name, before, limit)


async def _entries(reader: Any, path: str, log: str, subject: str, before: int | None, limit: int) -> list[LogEntry]:
    """The newest entries first, from before a number on."""
    found: list[LogEntry] = []
    async for row in reader.pages(path, {}, limit if before is None else None):
        body = {name: part for name, part in row.items() if name not in ("id", "at")}
        if before is None or row["id"] < before:
            found.append(LogEntry(log, row["id"], subject, row["at"], body))
        if len(found) >= limit:
            break
    return found


def _hook_path(slug: str) -> str:
    return f"/hooks/{segment(slug)}"


def _subscription_path(name: str) -> str:
    return f"/subscriptions/{segment(name)}"


def _hook(row: dict[str, Json]) -> Hook:
    return fitted({**row, "sealed": "" if row["has_secret"] else None}, Hook)


def _subscription(row: dict[str, Json]) -> SubscriptionState:
    record = fitted({**row, "sealed": "" if row["has_secret"] else None}, SubscriptionRecord)
    return SubscriptionState(record, fitted({**row, "replay": row.get("replaying")}, SubscriptionProgress))
