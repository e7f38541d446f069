"""Callers: recognises keys and browser sessions (5.6).

Owns what this node believes about keys and sessions, and for how long: two seconds, so that a revoked key is refused
within five seconds on every node, streams included. Promises that a wrong key tells nothing: not by its answer, and not
by its time, which is that of one comparison whether its prefix is known or not. Wrong keys are slowed down for each
address; a key that was right a moment ago is let in meanwhile, so that a stranger behind the same proxy locks nobody
out.
"""

from __future__ import annotations

import asyncio
import re
from collections import OrderedDict
from collections.abc import Mapping

from starlette.requests import Request

from treadle.errors import TreadleError
from treadle.runtime.access.keys import NO_KEY, Key, hash_of, is_text_of, prefix_of
from treadle.runtime.client import Client
from treadle.server.addresses import address_of
from treadle.server.buckets import TokenBuckets
from treadle.server.cookies import session_cookie
from treadle.server.problems import HttpProblem
from treadle.server.routes import Role
from treadle.server.sessions import SessionStore
from treadle.server.settings import ServerSettings
from treadle.server.who import Who

KEYS_FRESH_MS = 2_000
"""How long keys are believed without reading the store."""
KEYS_UNKNOWN_MS = 200
"""How long they are believed when an unknown key comes: wrong keys cost the store five reads a second at most."""
USED_EVERY_MS = 60_000
"""How often the store is told that a key is used: people ask for the day, and a key that is used all the time costs one
write a minute."""
GOOD_MAX = 10_000
"""Keys that were right a moment ago and are let in while their address is slowed down."""
_BEARER = re.compile(r"[Bb]earer +(\S{1,200}) *")


class Callers:
    """See the module's docstring."""

    def __init__(self, client: Client, settings: ServerSettings, sessions: SessionStore) -> None:
        self._client = client
        self._settings = settings
        self.sessions = sessions
        self._keys: Mapping[str, Key] = {}
        self._proven: dict[str, tuple[Key, Who]] = {}
        """Texts of keys that were compared with `_keys` and are right. They are thrown away with those: two seconds."""
        self._keys_read = -KEYS_FRESH_MS
        self._reading = asyncio.Lock()
        self._failures = TokenBuckets(settings.failures_per_min / 60, settings.failures_per_min)
        self._good: OrderedDict[str, None] = OrderedDict()
        self._used: dict[str, int] = {}
        self._used_said: dict[str, int] = {}
        self._saying: asyncio.Task[None] | None = None

    def recognised(self, request: Request) -> Who | None:
        """The caller, if its key was compared a moment ago and is right; None: `authenticate` finds out."""
        now = self._client.now()
        if now - self._keys_read >= KEYS_FRESH_MS:
            return None
        given = request.headers.get("authorization")
        match = _BEARER.fullmatch(given) if given is not None else None
        known = self._proven.get(match[1]) if match is not None else None
        if known is None or not known[0].is_valid(now):
            return None
        self._note_use(known[0].id, now)
        return known[1]

    async def authenticate(self, request: Request) -> Who:
        """The caller. Raises UNAUTHENTICATED, which does not say why: every wrong key looks the same."""
        given = request.headers.get("authorization")
        if given is not None:
            match = _BEARER.fullmatch(given)
            who = await self.with_key(match[1], address_of(request, self._settings)) if match else None
        else:
            cookie = session_cookie(request, self._settings)
            who = await self.of_session(cookie) if cookie is not None else None
        if who is None:
            raise HttpProblem(
                "UNAUTHENTICATED",
                "this needs a key",
                remedy="send Authorization: Bearer tdl_…; `treadle keys create` makes one",
                headers={"www-authenticate": "Bearer"},
            )
        return who

    async def with_key(self, text: str, address: str) -> Who | None:
        """The caller a key stands for; None if it is wrong. Raises RATE_LIMITED after too many wrong ones."""
        await self._fresh_keys()
        known = self._proven.get(text)  # the whole key is the name: a part of it finds nothing
        if known is None:
            known = await self._prove(text, address)
            if known is None:
                return None
        key, who = known
        if not key.is_valid(self._client.now()):
            return None
        self._note_use(key.id, self._client.now())
        return who

    async def _prove(self, text: str, address: str) -> tuple[Key, Who] | None:
        """Compares a key with those of the store; one that is right is believed until they are read again."""
        digest = hash_of(text)
        wait_s = self._failures.wait_s(address)
        if wait_s > 0 and digest not in self._good:
            raise slowed(wait_s, "too many wrong keys have come from this address")
        key = await self._key_of(text)
        if key is None:
            self._failures.take(address)
            return None
        if key.is_valid(self._client.now()):
            self._good[digest] = None
            self._good.move_to_end(digest)
            if len(self._good) > GOOD_MAX:
                self._good.popitem(last=False)
        known = key, who_of(key)
        if len(self._proven) < GOOD_MAX:
            self._proven[text] = known
        return known

    async def _key_of(self, text: str) -> Key | None:
        await self._fresh_keys()
        if (prefix_of(text) or "") not in self._keys:  # it may have been made a moment ago, perhaps by another node
            await self._fresh_keys(KEYS_UNKNOWN_MS)
        key = self._keys.get(prefix_of(text) or "", NO_KEY)
        return key if is_text_of(key, text) else None

    async def of_session(self, cookie: str) -> Who | None:
        """The caller of a browser session; None if it is over, or its key is."""
        session = await self.sessions.find(cookie)
        if session is None:
            return None
        if session.key is None:
            return session.who()
        await self._fresh_keys()
        key = self._keys.get(session.key)
        if key is None or not key.is_valid(self._client.now()):
            return None
        return who_of(key, session=session.id)

    async def is_current(self, who: Who) -> bool:
        """Whether a caller that was admitted still is: asked again and again by streams."""
        if who.session is not None and not await self.sessions.is_live(who.session):
            return False
        if who.key is None:
            return who.expires is None or self._client.now() < who.expires
        await self._fresh_keys()
        key = self._keys.get(who.key)
        return key is not None and key.is_valid(self._client.now())

    async def _fresh_keys(self, fresh_ms: int = KEYS_FRESH_MS) -> None:
        if self._client.now() - self._keys_read < fresh_ms:
            return
        async with self._reading:
            if self._client.now() - self._keys_read >= fresh_ms:
                asked = self._client.now()
                self._keys = {key.id: key for key in await self._client.keys.list()}
                self._proven.clear()
                self._keys_read = asked

    def forget(self) -> None:
        """Keys were changed here: the next request reads them again."""
        self._keys_read = -KEYS_FRESH_MS

    def _note_use(self, id: str, now: int) -> None:
        self._used[id] = now
        if now - self._used_said.get(id, 0) >= USED_EVERY_MS and self._saying is None:
            self._saying = asyncio.get_running_loop().create_task(self._say_used())

    async def _say_used(self) -> None:
        used, self._used = self._used, {}
        try:
            await self._client.keys.note_used({id: at for id, at in used.items() if id in self._keys})
        except TreadleError:
            pass  # it is said again with the next use
        finally:
            self._used_said |= used
            self._saying = None

    async def close(self) -> None:
        """Writes down which keys were used since."""
        if self._saying is not None:
            await self._saying
        if self._used:
            await self._say_used()


def who_of(key: Key, session: str | None = None) -> Who:
    """A key as a caller, directly or by a browser session that began with it."""
    return Who(
        id=f"key:{key.id}" if session is None else f"session:{session[:12]}",
        name=key.name,
        user=key.user,
        groups=key.groups,
        roles=frozenset(Role(role) for role in key.roles),
        workflows=key.workflows,
        expires=key.expires,
        session=session,
        key=key.id,
    )


def slowed(wait_s: float, detail: str) -> HttpProblem:
    """The refusal of a caller that asks too often."""
    seconds = max(1, int(wait_s + 0.999))
    return HttpProblem(
        "RATE_LIMITED", detail, remedy=f"try again in {seconds} s", headers={"retry-after": str(seconds)}
    )
