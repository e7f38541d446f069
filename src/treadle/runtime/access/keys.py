"""API keys: made, listed, revoked and recognised (5.6).

A key is `tdl_<prefix>_<secret>`. The store keeps the prefix, by which a key is found, and the SHA-256 of the whole
text. The secret has 256 random bits, so a plain hash is enough: it cannot be guessed, and it must be compared at every
request. Promises that the text of a key is given once, when it is made, and that a comparison takes the same time
wherever two keys differ. Must not know HTTP."""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import msgspec
from msgspec import Struct

from treadle.errors import CommandRefused, StoreConflict
from treadle.expression.names import name_problem
from treadle.runtime.access.audit import on_store
from treadle.runtime.surroundings.ports import Clock
from treadle.store.port import Store
from treadle.store.service import Changes, DocumentChange, Entry, Note, ServiceStore

KIND = "_key"
USED_KIND = "_key_used"
"""When a key was last used: apart from the key, so that using one does not change it."""
PATTERNS_MAX = 100
PREFIX_TRIES = 5
"""Prefixes that are tried before a key is given up: 10 characters of 32 collide about never."""
ROLES = ("viewer", "operator", "author", "approver", "worker", "admin")
PREFIX_CHARACTERS = 10
_ALPHABET = "abcdefghijkmnpqrstuvwxyz23456789"
"""Without characters that look alike: people read prefixes to each other."""
_TEXT = re.compile(r"tdl_([a-z0-9]{1,40})_([A-Za-z0-9_-]{20,100})")


class Key(Struct, frozen=True, kw_only=True):
    """A key as it is kept: everything but the key itself."""

    id: str
    """Its prefix, which names it."""
    name: str
    user: str
    """The person who answers gates with it; the key's name unless another was given."""
    groups: tuple[str, ...] = ()
    roles: tuple[str, ...]
    workflows: tuple[str, ...] | None = None
    """Patterns of the workflows it is for (`orders/*`); None: all."""
    expires: int | None = None
    created: int
    created_by: str | None = None
    hash: str

    def is_valid(self, now: int) -> bool:
        return self.expires is None or now < self.expires


Audited = Callable[[Key], Entry]
"""Makes the entry of the audit for a key that is made or revoked."""


class Keys:
    """The keys of one store. Making and revoking one is written together with its entry in the audit."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._service = cast(ServiceStore, store)
        self._clock = clock

    async def create(
        self,
        name: str,
        roles: Sequence[str],
        *,
        user: str | None = None,
        groups: Sequence[str] = (),
        workflows: Sequence[str] | None = None,
        expires: int | None = None,
        by: str | None = None,
    ) -> tuple[Key, str]:
        """Makes a key. Returns it with its text, which is not kept. Raises CommandRefused(BAD_REQUEST)."""
        for _ in range(PREFIX_TRIES):
            key, text = self.draft(name, roles, user=user, groups=groups, workflows=workflows, expires=expires, by=by)
            try:
                await self.keep(key)
            except StoreConflict:  # another key has this prefix
                continue
            return key, text
        raise CommandRefused("DUPLICATE", "no prefix was free; try again")

    async def keep(self, key: Key, audited: Audited | None = None, notes: Sequence[Note] = ()) -> None:
        """Stores a drafted key, with its entry in the audit and notes. Raises StoreConflict if its prefix is taken, or
        a note is there already."""
        now = self._clock.now()
        entry = audited(key) if audited is not None else on_store("keys create", now, key.id)
        change = DocumentChange(KIND, key.id, key.hash, msgspec.to_builtins(key), expected=0)
        await self._service.write(Changes(documents=[change], entries=[entry], notes=notes))

    def draft(
        self,
        name: str,
        roles: Sequence[str],
        *,
        user: str | None = None,
        groups: Sequence[str] = (),
        workflows: Sequence[str] | None = None,
        expires: int | None = None,
        by: str | None = None,
    ) -> tuple[Key, str]:
        """A key that is not stored yet, and its text. Raises CommandRefused(BAD_REQUEST)."""
        for what, text in (("name", name), ("user", user), *(("group", group) for group in groups)):
            problem = name_problem(text) if text is not None else None
            if text == "":
                problem = "is empty"
            if problem is not None:
                raise CommandRefused("BAD_REQUEST", f"the {what} {problem}")
        unknown = [role for role in roles if role not in ROLES]
        if unknown or not roles:
            what = f"unknown role {unknown[0]!r}" if unknown else "a key needs a role"
            raise CommandRefused("BAD_REQUEST", f"{what}; the roles are {', '.join(ROLES)}")
        for pattern in workflows or ():
            if not 1 <= len(pattern) <= 200 or not pattern.isprintable():
                raise CommandRefused("BAD_REQUEST", "a workflow pattern has 1 to 200 printable characters")
        if workflows is not None and not 1 <= len(workflows) <= PATTERNS_MAX:
            raise CommandRefused("BAD_REQUEST", f"a key has 1 to {PATTERNS_MAX} workflow patterns, or none for all")
        if expires is not None and expires <= self._clock.now():
            raise CommandRefused("BAD_REQUEST", "the key would have expired already")
        id = "".join(secrets.choice(_ALPHABET) for _ in range(PREFIX_CHARACTERS))
        text = f"tdl_{id}_{secrets.token_urlsafe(32)}"
        key = Key(
            id=id,
            name=name,
            user=user or name,
            groups=tuple(groups),
            roles=tuple(dict.fromkeys(roles)),
            workflows=tuple(workflows) if workflows is not None else None,
            expires=expires,
            created=self._clock.now(),
            created_by=by,
            hash=hash_of(text),
        )
        return key, text

    async def list(self) -> list[Key]:
        """All keys that were not revoked, by the time they were made."""
        documents = await self._store.documents(KIND)
        return sorted((_key(document.body) for document in documents), key=lambda key: (key.created, key.id))

    async def revoke(self, id: str, audited: Audited | None = None) -> Key:
        """Ends a key, by its id or the text of the key itself. Raises CommandRefused(NOT_FOUND)."""
        match = _TEXT.fullmatch(id)
        kept = await self._store.documents(KIND, match[1] if match else id)
        if not kept:
            raise CommandRefused("NOT_FOUND", f"there is no key {match[1] if match else id!r}")
        key = _key(kept[0].body)
        entry = audited(key) if audited is not None else on_store("keys revoke", self._clock.now(), key.id)
        ended = DocumentChange(KIND, key.id, "", None, expected=kept[0].version)
        try:
            await self._service.write(Changes(removed=[(USED_KIND, key.id)], documents=[ended], entries=[entry]))
        except StoreConflict:  # somebody else has revoked it meanwhile
            raise CommandRefused("NOT_FOUND", f"there is no key {key.id!r}") from None
        return key

    async def last_used(self) -> dict[str, int]:
        """When each key was last used, to the minute; keys that never were are missing."""
        return {document.name: document.body for document in await self._store.documents(USED_KIND)}

    async def note_used(self, used: Mapping[str, int]) -> None:
        """Writes down when keys were last used."""
        changes = [DocumentChange(USED_KIND, id, str(at), at) for id, at in used.items()]
        await self._service.write(Changes(documents=changes))


NO_KEY = Key(id="", name="", user="", roles=(), created=0, hash=hashlib.sha256(secrets.token_bytes(32)).hexdigest())
"""Compared with where there is no key of a prefix: an unknown prefix takes as long as a wrong secret."""


def prefix_of(text: str) -> str | None:
    """The id inside a key's text; None if it is no key."""
    match = _TEXT.fullmatch(text)
    return match[1] if match else None


def is_text_of(key: Key, text: str) -> bool:
    """Whether a text is exactly this key."""
    return hmac.compare_digest(hash_of(text).encode(), key.hash.encode())


def hash_of(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _key(body: Any) -> Key:
    return msgspec.convert(body, Key)
