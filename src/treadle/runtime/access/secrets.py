"""Stored secrets: written once, never read back by people, given only to the action that sends them (5.6).

Owns the documents of secrets: sealed values, the hosts each may go to, when it was last used. Promises that no method
returns a value but `find`, which the actions call for one attempt; that a stored secret wins over one of the
environment; and that a secret whose value cannot be opened is an error and not a reason to fall back.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import cast

import msgspec
from msgspec import Struct

from treadle.actions.secrets import SHORTEST, BoundSecrets, FoundSecret, SecretProvider
from treadle.actions.task_failure import TaskFailure
from treadle.errors import CommandRefused, StoreConflict, TreadleError
from treadle.runtime.access.audit import on_store
from treadle.runtime.access.sealing import SealBroken, Sealing
from treadle.runtime.surroundings.ports import Clock
from treadle.store.port import Store, StoredDocument
from treadle.store.service import Changes, DocumentChange, Entry, ServiceStore

KIND = "_secret"
USED_KIND = "_secret_used"
USED_EVERY_MS = 60_000
VALUE_MAX = 64 * 1024
HOSTS_MAX = 100
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}")
_HOST = re.compile(r"(?:\*\.)?[a-z0-9_](?:[a-z0-9_.-]{0,251}[a-z0-9_])?|[0-9a-f:]{2,39}")

Audited = Callable[[str, bool], Entry]
"""Makes the entry of the audit for a secret that is written or removed: its name, and whether it is new."""
Unseal = Callable[[], Awaitable[Sealing]]


class StoredSecret(Struct, frozen=True, kw_only=True):
    """A secret as it is kept."""

    name: str
    sealed: str
    hosts: tuple[str, ...] | None = None
    """The only hosts it may be sent to; None: any."""
    created: int
    changed: int
    changed_by: str | None = None


class Secrets:
    """The secrets of one store."""

    def __init__(self, store: Store, clock: Clock, sealing: Unseal) -> None:
        self._store = store
        self._service = cast(ServiceStore, store)
        self._clock = clock
        self._sealing = sealing

    async def list(self) -> list[StoredSecret]:
        """All secrets, by name. Their values are sealed."""
        return [_secret(kept) for kept in await self._store.documents(KIND)]

    async def put(
        self,
        name: str,
        value: str,
        hosts: Sequence[str] | None = None,
        *,
        by: str | None = None,
        audited: Audited | None = None,
    ) -> tuple[StoredSecret, bool]:
        """Writes a secret, with its entry in the audit. Returns it, and whether it is new. Raises
        CommandRefused(BAD_REQUEST); StoreConflict if somebody else has written it meanwhile."""
        _check(name, value, hosts)
        kept = await self._store.documents(KIND, name)
        now = self._clock.now()
        secret = StoredSecret(
            name=name,
            sealed=(await self._sealing()).seal(f"secret:{name}", value),
            hosts=tuple(dict.fromkeys(host.lower().rstrip(".") for host in hosts)) if hosts is not None else None,
            created=_secret(kept[0]).created if kept else now,
            changed=now,
            changed_by=by,
        )
        expected = kept[0].version if kept else 0
        change = DocumentChange(KIND, name, secret.sealed, msgspec.to_builtins(secret), expected)
        entry = audited(name, not kept) if audited is not None else on_store("secrets put", now, name)
        await self._service.write(Changes(documents=[change], entries=[entry]))
        return secret, not kept

    async def remove(self, name: str, audited: Audited | None = None) -> None:
        """Removes a secret. Raises CommandRefused(NOT_FOUND)."""
        kept = await self._store.documents(KIND, name)
        missing = CommandRefused("NOT_FOUND", f"there is no secret {name!r}")
        if not kept:
            raise missing
        entry = audited(name, False) if audited is not None else on_store("secrets remove", self._clock.now(), name)
        ended = DocumentChange(KIND, name, "", None, kept[0].version)
        try:
            await self._service.write(Changes(removed=[(USED_KIND, name)], documents=[ended], entries=[entry]))
        except StoreConflict:
            raise missing from None

    async def find(self, name: str) -> FoundSecret | None:
        """A secret in the clear, for the action that sends it. Raises TaskFailure if it cannot be opened."""
        kept = await self._store.documents(KIND, name)
        if not kept:
            return None
        secret = _secret(kept[0])
        try:
            value = (await self._sealing()).open(f"secret:{name}", secret.sealed)
        except SealBroken as broken:
            raise TaskFailure(f"the secret {name!r} cannot be opened: {broken}", kind="NOT_FOUND") from None
        return FoundSecret(value, secret.hosts)

    async def last_used(self) -> dict[str, int]:
        """When each secret was last used, to the minute; those that never were are missing."""
        return {kept.name: kept.body for kept in await self._store.documents(USED_KIND)}

    async def note_used(self, name: str) -> None:
        """Writes down that a secret is used now."""
        now = self._clock.now()
        await self._service.write(Changes(documents=[DocumentChange(USED_KIND, name, str(now), now)]))


class SecretsInOrder:
    """Stored secrets first, then those of the environment or wherever else the operator keeps them."""

    def __init__(self, stored: Secrets, clock: Clock, other: SecretProvider) -> None:
        self._stored = stored
        self._clock = clock
        self._other = other
        self._used: dict[str, int] = {}

    async def get(self, name: str) -> str | None:
        """The value, or None if there is no such secret."""
        found = await self.find(name)
        return found.value if found is not None else None

    async def find(self, name: str) -> FoundSecret | None:
        """The secret with its hosts, or None."""
        found = await self._stored.find(name)
        if found is not None:
            await self._note_use(name)
            return found
        if isinstance(self._other, BoundSecrets):
            return await self._other.find(name)
        value = await self._other.get(name)
        return FoundSecret(value) if value is not None else None

    async def _note_use(self, name: str) -> None:
        now = self._clock.now()
        if now - self._used.get(name, -USED_EVERY_MS) >= USED_EVERY_MS:
            self._used[name] = now
            with suppress(TreadleError):  # an action does not fail for a note about it
                await self._stored.note_used(name)


def _check(name: str, value: str, hosts: Sequence[str] | None) -> None:
    if not _NAME.fullmatch(name):
        raise CommandRefused("BAD_REQUEST", "a secret's name is made of letters, digits, `_`, `-` and `.`")
    if not SHORTEST <= len(value) <= VALUE_MAX or "\0" in value:
        raise CommandRefused("BAD_REQUEST", f"a secret has {SHORTEST} to {VALUE_MAX} characters, none of them NUL")
    if hosts is not None and not 1 <= len(hosts) <= HOSTS_MAX:
        raise CommandRefused("BAD_REQUEST", f"a secret has 1 to {HOSTS_MAX} hosts, or none for any")
    for host in hosts or ():
        if not _HOST.fullmatch(host.lower().rstrip(".")):
            raise CommandRefused("BAD_REQUEST", f"{host[:80]!r} is no host: write api.example.com or *.example.com")


def _secret(kept: StoredDocument) -> StoredSecret:
    return msgspec.convert(kept.body, StoredSecret)
