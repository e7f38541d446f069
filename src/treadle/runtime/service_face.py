"""The part of a client that a service needs beside runs: the time, keys, records of its own, the store's secret."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager
from typing import Any

import uuid_utils

from treadle.actions.net import AddressGate
from treadle.model.commands import SendSignal
from treadle.runtime.access.keys import Keys
from treadle.runtime.access.root import root_secret
from treadle.runtime.access.sealing import Sealing, sealing_with
from treadle.runtime.access.secrets import Secrets
from treadle.runtime.command.commander import Commander
from treadle.runtime.command.once import Once, asking_once
from treadle.runtime.command.presence import NodeRow
from treadle.runtime.coordinate.along import Along
from treadle.runtime.given import given, named
from treadle.runtime.queue.tasks import Tasks
from treadle.runtime.service import signals
from treadle.runtime.service.callbacks import Callbacks
from treadle.runtime.service.entities import Entities
from treadle.runtime.service.following import Following
from treadle.runtime.service.hooks import Hooks
from treadle.runtime.service.records import Entry, Records
from treadle.runtime.service.subscriptions import Subscriptions


class ServiceFace:
    """See the module's docstring. `Client` is one."""

    _commander: Commander
    public_url: str | None = None
    """The address at which webhook workers reach the service, if the operator has set one."""
    address_gate: AddressGate | None = None
    """Which addresses subscriptions may name; None: public ones only."""
    on_subscribed: Callable[[], Awaitable[None]] | None = None
    """Called when subscriptions were changed here: an engine reads them before the change is answered."""
    _hooks: Hooks | None = None
    secrets_key_file: str | None = None
    """A file with the key that seals stored secrets; None: the store's own secret does."""

    async def is_owned(self) -> bool:
        """Whether somebody coordinates the store now: else commands are kept, and nothing happens."""
        return await self._commander.presence.is_owned()

    async def nodes(self) -> list[NodeRow]:
        """The processes that coordinate the store or execute its work, what each owns, and how far behind it is."""
        return await self._commander.presence.nodes()

    def now(self) -> int:
        """The time by which this client stamps commands, in milliseconds since 1970."""
        return self._commander.clock.now()

    @property
    def store_kind(self) -> str:
        """What the store is: sqlite, postgres or memory."""
        return type(self._commander.store).__name__.removesuffix("Store").lower()

    @property
    def keys(self) -> Keys:
        """Keys that let programs and people use the store from outside."""
        return Keys(self._commander.store, self._commander.clock)

    @property
    def following(self) -> Following:
        """All events of all runs, in one order."""
        store, listen = self._commander.store, getattr(self, "listen", None)  # an engine can tell of its commits
        return Following(store, listen, hears_all=listen is not None and store.shards == 1)

    @property
    def callbacks(self) -> Callbacks:
        """Answers of webhook workers, by their tokens."""
        return Callbacks(self._commander)

    @property
    def hooks(self) -> Hooks:
        """Ingress hooks and their deliveries."""
        if self._hooks is None:
            self._hooks = Hooks(self)
        return self._hooks

    @property
    def subscriptions(self) -> Subscriptions:
        """Addresses that events are sent to, and what was sent."""
        return Subscriptions(self)

    async def signal(self, name: str, data: Any = None, *, key: Any = None, id: str | None = None) -> list[str]:
        """Sends a signal to all runs that wait for it now; with the same `id` it counts once in each. Returns the runs
        that took it. If nobody waits, nothing is kept."""
        named("signal", name)
        runs = await signals.runs_waiting_for(self._commander, name, key)
        command = SendSignal(name, given("key", key), given("data", data), id or str(uuid_utils.uuid7()))
        return list(await signals.send_to(self._commander, runs, command))

    @property
    def entities(self) -> Entities:
        """Entities: records, journeys, positions, conversion."""
        return Entities(self._commander)

    @property
    def records(self) -> Records:
        """A server's own documents, logs and answers beside the runs. Not for applications."""
        return Records(self._commander.store)

    @property
    def tasks(self) -> Tasks:
        """Claims of workers outside. Raises CommandRefused for a store without claims."""
        kept: Tasks | None = self.__dict__.get("_tasks")
        if kept is None or kept.commander is not self._commander:
            kept = self.__dict__["_tasks"] = Tasks(self._commander)
        return kept

    @property
    def secrets(self) -> Secrets:
        """Stored secrets: written, bound to hosts, never read back."""
        return Secrets(self._commander.store, self._commander.clock, self.sealing)

    async def secret_root(self) -> bytes:
        """The store's own secret, from which a service makes those of its cursors and sessions."""
        return await root_secret(self._commander.store)

    async def sealing(self) -> Sealing:
        """Seals texts that must be kept and not be read in the store: signing secrets, stored secrets. Raises
        SettingsInvalid if the key file cannot be used."""
        return sealing_with(await self.secret_root(), self.secrets_key_file)

    def once(self, id: str, fingerprint: str) -> AbstractContextManager[Once]:
        """Inside this `with`, every command is carried out once for this id, and its first answer is given again when
        it comes again, also after a crash and from another node; see `runtime.command.once`."""
        return asking_once(id, fingerprint)

    def along(self, entry: Entry) -> Along:
        """Inside this `with`, the entry is written in the transaction of the first command that is sent, unless that is
        refused. `is_written` of what it gives says whether it was: otherwise it has to be written after; see
        `runtime.coordinate.along`."""
        return Along(entry)
