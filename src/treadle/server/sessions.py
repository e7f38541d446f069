"""Browser sessions, kept in the store: every node knows them, and ending one ends it everywhere (5.6).

A session's id is 256 random bits that only the browser's cookie has; the store keeps its SHA-256. A session begins when
somebody signs in and always gets a new id, so that an id that was planted in a browser never becomes a session. It ends
when its person signs out, when it was not used for a while, at latest after some days, and with the key it began with.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Sequence
from contextlib import suppress

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from treadle.errors import StoreConflict
from treadle.runtime.client import Client
from treadle.runtime.service.records import Changes, Entry, change
from treadle.server.routes import Role
from treadle.server.settings import ServerSettings
from treadle.server.who import Who

KIND = "_session"
FRESH_MS = 2_000
"""How long a session is believed without reading the store: one that was ended is refused within five seconds."""
USED_PARTS = 20
"""A session's last use is written down when a twentieth of the idle time has passed since it was."""
KEPT_MAX = 10_000


class BrowserSession(Struct, frozen=True, kw_only=True):
    """A session as it is kept."""

    id: str
    """The hash of what the cookie has."""
    key: str | None = None
    """The id of the key it began with, whose rights it has; None: it has its own."""
    name: str = ""
    user: str = ""
    groups: tuple[str, ...] = ()
    roles: tuple[str, ...] = ()
    by: str
    """How it began: `key`, `link` (of the start-up), `oidc`."""
    created: int
    used: int
    expires: int

    def who(self) -> Who:
        """The caller, of a session without a key."""
        return Who(
            id=f"session:{self.id[:12]}",
            name=self.name,
            user=self.user,
            groups=self.groups,
            roles=frozenset(Role(role) for role in self.roles),
            expires=self.expires,
            session=self.id,
        )


class SessionStore:
    """See the module's docstring."""

    def __init__(self, client: Client, settings: ServerSettings) -> None:
        self._client = client
        self._settings = settings
        self._known: dict[str, tuple[BrowserSession | None, int]] = {}
        """Id → the session, and when it was read."""

    def draft(
        self,
        by: str,
        *,
        key: str | None = None,
        name: str = "",
        user: str = "",
        groups: Sequence[str] = (),
        roles: Sequence[str] = (),
    ) -> tuple[BrowserSession, str]:
        """A session that is not stored yet, and what its cookie says."""
        cookie, now = secrets.token_urlsafe(32), self._client.now()
        session = BrowserSession(
            id=hashed(cookie),
            key=key,
            name=name,
            user=user or name,
            groups=tuple(groups),
            roles=tuple(roles),
            by=by,
            created=now,
            used=now,
            expires=now + self._settings.session_max_ms,
        )
        return session, cookie

    async def begin(self, session: BrowserSession, entry: Entry, replaced: str | None = None) -> None:
        """Keeps a session with its entry in the audit, ends the one that it replaces and drops those that are over."""
        over = [one.id for one in await self.all() if not self._is_live(one)]
        if replaced is not None:
            over.append(replaced)
        kept = change(KIND, session.id, msgspec.to_builtins(session), expected=0)
        removed = [(KIND, id) for id in over]
        await self._client.records.write(Changes(removed=removed, documents=[kept], entries=[entry]))
        for id in over:
            self._known.pop(id, None)

    async def end(self, id: str, entry: Entry) -> None:
        """Ends a session."""
        await self._client.records.write(Changes(removed=[(KIND, id)], entries=[entry]))
        self._known.pop(id, None)

    async def all(self) -> list[BrowserSession]:
        """Every session that is kept."""
        return [msgspec.convert(kept.body, BrowserSession) for kept in await self._client.records.all(KIND)]

    async def find(self, cookie: str) -> BrowserSession | None:
        """The session of a cookie; None if there is none, or not any more."""
        session = await self._read(hashed(cookie))
        if session is not None:
            session = await self._noted_use(session)
        return session

    async def is_live(self, id: str) -> bool:
        """Whether a session is still there, as its streams ask."""
        return await self._read(id) is not None

    async def _read(self, id: str) -> BrowserSession | None:
        now = self._client.now()
        known = self._known.get(id)
        if known is None or now - known[1] >= FRESH_MS:
            kept = await self._client.records.find(KIND, id)
            known = (msgspec.convert(kept.body, BrowserSession) if kept is not None else None, now)
            if len(self._known) >= KEPT_MAX:
                self._known.clear()
            self._known[id] = known
        session = known[0]
        return session if session is not None and self._is_live(session) else None

    def _is_live(self, session: BrowserSession) -> bool:
        now = self._client.now()
        return now < session.expires and now - session.used < self._settings.session_idle_ms

    async def _noted_use(self, session: BrowserSession) -> BrowserSession:
        now = self._client.now()
        if now - session.used < self._settings.session_idle_ms // USED_PARTS:
            return session
        kept = await self._client.records.find(KIND, session.id)
        if kept is None:  # it was ended meanwhile: writing it again would bring it back
            return session
        used = replace(session, used=now)
        noted = change(KIND, session.id, msgspec.to_builtins(used), expected=kept.version)
        with suppress(StoreConflict):  # another node has written it down
            await self._client.records.write(Changes(documents=[noted]))
        self._known[session.id] = (used, now)
        return used


def hashed(cookie: str) -> str:
    """The name under which a session is kept."""
    return hashlib.sha256(cookie.encode()).hexdigest()
