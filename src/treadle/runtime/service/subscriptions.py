"""Subscriptions: addresses that events of runs are sent to (5.4). Reached as `Client.subscriptions`.

Owns what is kept of a subscription: the record itself (kind `_subscription`), and how it fares (kind
`_subscription_progress`: since when its endpoint fails, whether it is paused, which replay is under way). A sender
compares the second before it changes it, so what somebody asks for wins. `subscription_sender` sends.

How long deliveries are kept
    Seven days, and the newest thousand of all subscriptions for ever.
"""

from __future__ import annotations

import base64
from fnmatch import fnmatchcase
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from treadle.actions.net import AddressGate, AddressRefused, NetPolicy
from treadle.errors import CommandRefused
from treadle.model.events import Event
from treadle.runtime.access.sealing import Sealing
from treadle.runtime.command.commander import Commander
from treadle.runtime.service.records import Changes, LogEntry, Records, change

Json = Any
KIND, PROGRESS = "_subscription", "_subscription_progress"
LOG = "delivery:subscription"
SECRET_BYTES = range(24, 65)
PAUSE_AFTER_MS = 3_600_000
"""How long an endpoint may fail before it is paused."""


class SubscriptionRecord(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A subscription. Its secret is kept sealed."""

    name: str
    url: str
    types: tuple[str, ...]
    """Patterns of event types: `run.*`, `custom.order.paid`, `*`."""
    workflows: tuple[str, ...] | None = None
    """Patterns of workflows; None: all."""
    sealed: str | None = None
    created: int = 0
    changed: int = 0

    def takes(self, type: str, workflow: str | None) -> bool:
        """Whether an event of this type and workflow is wanted."""
        if not any(fnmatchcase(type, pattern) for pattern in self.types):
            return False
        if self.workflows is None:
            return True
        return workflow is not None and any(fnmatchcase(workflow, pattern) for pattern in self.workflows)


class SubscriptionReplay(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Events of the past that are sent again: run by run, in the order of their ids."""

    since: int
    until: int
    after: str | None = None
    """The last run that is done."""


class SubscriptionProgress(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How a subscription fares."""

    failing_since: int | None = None
    """When it failed for the first time since it has last accepted something, at whatever node."""
    unsent_since: int | None = None
    """The instant of the oldest event that it has not accepted meanwhile. What it missed while it was paused begins
    there: an event is older than its failure."""
    tries: int = 0
    error: str | None = None
    paused: int | None = None
    """When it was paused, because its endpoint had failed for too long."""
    replay: SubscriptionReplay | None = None

    def accepted(self) -> SubscriptionProgress:
        """Afterwards, when its endpoint has accepted an event."""
        return replace(self, failing_since=None, unsent_since=None, tries=0, error=None)

    def failed(self, at: int, reason: str, tries: int, now: int) -> SubscriptionProgress:
        """Afterwards, when its endpoint has not accepted an event of the instant `at`."""
        since = self.failing_since if self.failing_since is not None else now
        paused = now if self.paused is None and now - since >= PAUSE_AFTER_MS else self.paused
        return replace(self.left_out(at), failing_since=since, tries=tries, error=reason, paused=paused)

    def left_out(self, at: int) -> SubscriptionProgress:
        """Afterwards, when an event of the instant `at` is not sent for now."""
        return replace(self, unsent_since=at if self.unsent_since is None else min(at, self.unsent_since))

    def missed_since(self, now: int) -> int:
        """Since when it has missed events."""
        return min(at if at is not None else now for at in (self.failing_since, self.unsent_since))


class SubscriptionState(Struct, frozen=True):
    """A subscription and how it fares."""

    record: SubscriptionRecord
    progress: SubscriptionProgress


class Subscriptions:
    """See the module's docstring."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self._commander: Commander = client._commander
        self._records = Records(self._commander.store)

    async def all(self) -> list[SubscriptionState]:
        """Every subscription, by name."""
        return await read_all(self._records)

    async def find(self, name: str) -> SubscriptionState:
        """A subscription. Raises CommandRefused(NOT_FOUND)."""
        record = await self._records.find(KIND, name)
        if record is None:
            raise CommandRefused("NOT_FOUND", f"there is no subscription {name!r}")
        progress = await self._records.find(PROGRESS, name)
        return _state(record.body, progress.body if progress is not None else None)

    async def put(self, record: SubscriptionRecord, secret: str | None = None) -> tuple[SubscriptionState, bool]:
        """Creates or replaces a subscription. A new one begins with what happens from now on; one that was paused gets
        what happened since its endpoint failed. Without a secret it keeps the one it has. Raises
        CommandRefused(BAD_REQUEST). Returns it and whether it is new."""
        self._check(record, secret)
        now = self._commander.clock.now()
        document = await self._records.find(KIND, record.name)
        before = msgspec.convert(document.body, SubscriptionRecord) if document is not None else None
        sealed = before.sealed if before is not None else None
        if secret is not None:
            sealing: Sealing = await self._client.sealing()
            sealed = sealing.seal(purpose_of(record.name), secret)
        record = replace(record, sealed=sealed, created=before.created if before is not None else now, changed=now)
        progress = await self._records.find(PROGRESS, record.name)
        known = msgspec.convert(progress.body if progress is not None and before else {}, SubscriptionProgress)
        begun = SubscriptionProgress(replay=known.replay)
        if known.paused is not None:
            begun = SubscriptionProgress(replay=SubscriptionReplay(since=known.missed_since(now), until=now))
        changes = [
            change(KIND, record.name, msgspec.to_builtins(record), document.version if document is not None else 0),
            change(PROGRESS, record.name, _kept(begun)),  # not compared: a sender may write it at any moment
        ]
        await self._records.write(Changes(documents=changes))
        await self._told()
        return SubscriptionState(record, begun), before is None

    async def remove(self, name: str) -> None:
        """Ends a subscription. Raises CommandRefused(NOT_FOUND)."""
        await self.find(name)
        await self._records.write(Changes(documents=[change(KIND, name, None), change(PROGRESS, name, None)]))
        await self._told()

    async def replay(self, name: str, start: int | str) -> SubscriptionState:
        """Sends again what happened since an instant (milliseconds), or since a position as a message has it. One that
        was paused goes on, too. Raises CommandRefused: NOT_FOUND, BAD_REQUEST."""
        known = await self.find(name)
        since = start if isinstance(start, int) else _instant(start)
        begun = SubscriptionProgress(replay=SubscriptionReplay(since=since, until=self._commander.clock.now()))
        await self._records.write(Changes(documents=[change(PROGRESS, name, _kept(begun))]))
        await self._told()
        return SubscriptionState(known.record, begun)

    async def deliveries(self, name: str, *, before: int | None = None, limit: int = 100) -> list[LogEntry]:
        """Deliveries of a subscription, newest first."""
        return await self._records.entries(LOG, name, before=before, limit=limit)

    async def _told(self) -> None:
        """Tells every node, and waits until this one knows."""
        self._commander.changed()
        if self._client.on_subscribed is not None:
            await self._client.on_subscribed()

    def _check(self, record: SubscriptionRecord, secret: str | None) -> None:
        gate: AddressGate = self._client.address_gate or AddressGate(NetPolicy())
        try:
            gate.check_url(record.url)
        except AddressRefused as refused:
            raise CommandRefused("BAD_REQUEST", f"url: {refused}") from None
        if not record.types or not all(record.types):
            raise CommandRefused("BAD_REQUEST", "types: name at least one pattern of event types, such as run.*")
        for word in (secret or "").split():
            try:
                key = base64.b64decode(word.removeprefix("whsec_"), validate=True)
            except ValueError:
                key = b""
            if len(key) not in SECRET_BYTES:
                raise CommandRefused("BAD_REQUEST", "secret: it must be `whsec_` and 24 to 64 bytes in base64")


async def read_all(records: Records) -> list[SubscriptionState]:
    """Every subscription, by name."""
    known = {document.name: document.body for document in await records.all(PROGRESS)}
    return [_state(document.body, known.get(document.name)) for document in await records.all(KIND)]


def purpose_of(name: str) -> str:
    """What a subscription's secret is sealed for."""
    return f"subscription:{name}"


def _state(record: Json, progress: Json) -> SubscriptionState:
    return SubscriptionState(
        msgspec.convert(record, SubscriptionRecord), msgspec.convert(progress or {}, SubscriptionProgress)
    )


def _kept(progress: SubscriptionProgress) -> Json:
    return msgspec.to_builtins(progress)


def position_of(run: str, event: Event) -> str:
    """Names an event among all: its instant, run and number."""
    return f"{event.at}:{run}:{event.seq}"


def _instant(position: str) -> int:
    at = position.partition(":")[0]
    if not (at.isascii() and at.isdigit() and len(at) < 16):
        raise CommandRefused("BAD_REQUEST", "from: an instant in milliseconds, or a position as a message has it")
    return int(at)
