"""One project as a service: its client, settings and the parts that all handlers share.

Owns what lives as long as the application: who is known, secrets derived from the store's own, the audit trail, whether
it drains.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import secrets
from contextlib import suppress
from typing import Any

from starlette.requests import Request

from treadle.language.load import Known
from treadle.runtime.access.sealing import Sealing
from treadle.runtime.client import Client
from treadle.server.callers import Callers
from treadle.server.limits import RequestLimits
from treadle.server.problems import HttpProblem
from treadle.server.routes import Route
from treadle.server.sessions import SessionStore
from treadle.server.settings import ServerSettings
from treadle.server.trail import AuditTrail
from treadle.server.who import Who

WRITES_END_S = 5.0
"""How long the end of the service waits for writes under way, so that they are in the audit."""


class Service:
    """See the module's docstring."""

    def __init__(self, client: Client, settings: ServerSettings, project: str | None = None) -> None:
        self.client = client
        self.now = client.now
        self.settings = settings
        self.project = project
        self.routes: tuple[Route, ...] = ()
        """The route table of the application, for the description of the API."""
        self.known: Known = {}
        """The project's library and worker types, which definitions may use."""
        self.draining = asyncio.Event()
        """Set when the service stops: new requests are refused, streams end."""
        self.parts: dict[str, Any] = {}
        """What handlers of a noun share: made by them, kept here."""
        self.callers = Callers(client, settings, SessionStore(client, settings))
        self.limits = RequestLimits(settings)
        self.trail = AuditTrail(client.records)
        self.sealing: Sealing
        self.link_token: str | None = None
        """The hash of the start-up link's token, until it is used."""
        self.landing = "/"
        """The page that the start-up link leads to."""
        self._root: bytes | None = None
        self._opening = asyncio.Lock()
        self._writes = 0
        self._writes_done = asyncio.Event()
        self._writes_done.set()

    @property
    def is_open(self) -> bool:
        return self._root is not None

    async def open(self) -> None:
        """Reads what the service needs before its first request. Raises StoreUnavailable."""
        if self._root is not None:
            return
        async with self._opening:  # many requests may be the first
            if self._root is None:
                self.sealing = await self.client.sealing()
                self._root = await self.client.secret_root()

    async def close(self) -> None:
        """Lets every part end its work. What happens afterwards is still written to the audit."""
        self.draining.set()
        for part in list(self.parts.values()):
            ending = getattr(part, "close", None)
            if ending is not None:
                await ending()
        with suppress(TimeoutError):
            async with asyncio.timeout(WRITES_END_S):
                await self._writes_done.wait()
        await self.flush()

    def write_began(self) -> None:
        """A write is under way: the service ends after it."""
        self._writes += 1
        if self._writes == 1:
            self._writes_done.clear()

    def write_ended(self) -> None:
        """The write is answered, or refused."""
        self._writes -= 1
        if self._writes == 0:
            self._writes_done.set()

    async def flush(self) -> None:
        """Writes what was gathered: entries of the audit, and which keys were used."""
        await self.trail.close()
        await self.callers.close()

    def secret(self, purpose: str) -> bytes:
        """A key for one purpose, the same on every node and after every restart; made from the store's own secret."""
        assert self._root is not None, "the service is open"
        return hmac.new(self._root, b"treadle.server." + purpose.encode(), hashlib.sha256).digest()

    async def authenticate(self, request: Request) -> Who:
        """The caller. Raises UNAUTHENTICATED."""
        return await self.callers.authenticate(request)

    async def is_current(self, who: Who) -> bool:
        """Whether a caller that was admitted still is: asked again and again by streams."""
        return await self.callers.is_current(who)

    def forget_keys(self) -> None:
        """Keys were changed here: the next request reads them again."""
        self.callers.forget()

    @property
    def prefix(self) -> str:
        """Where the project is below the address of the process: `/p/NAME`, or nothing."""
        return f"/p/{self.project}" if self.project is not None else ""

    def make_link(self) -> str:
        """A token that signs in one browser as an admin, once: for the link that is printed at the start."""
        token = secrets.token_urlsafe(32)
        self.link_token = hashlib.sha256(token.encode()).hexdigest()
        return token

    def refuse_if_draining(self) -> None:
        if self.draining.is_set():
            raise draining()

    async def require_engine(self) -> None:
        """Raises NO_ENGINE if nobody coordinates the store: a command would wait for nobody knows how long."""
        if not await self.client.is_owned():
            raise HttpProblem(
                "NO_ENGINE", "no engine coordinates this store now", remedy="start `treadle engine` or `serve`"
            )


def draining() -> HttpProblem:
    """The refusal of everything that comes while the service stops."""
    return HttpProblem("DRAINING", "the service is stopping", remedy="ask another node, or again in a moment")
