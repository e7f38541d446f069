"""Requests of the tortured client: each is sent, to one server after the other, until somebody gives an answer.

Owns what counts as an answer. A refusal that says nothing about the request (the service stops, the store is away, the
first request is still at work) is no answer; a 500 is one that must never be given and goes into the journal.
"""

from __future__ import annotations

import asyncio
import random
import uuid
from collections.abc import Sequence
from typing import Any, NamedTuple

import aiohttp
import msgspec

from tests.torture.journal import Journal

Json = Any
AGAIN_S = 0.05
ANSWER_S = 20.0
"""A request that is not answered for so long is sent again: its server may stand still."""
NO_ANSWER = frozenset({"DRAINING", "STORE_UNAVAILABLE", "NO_ENGINE", "IDEMPOTENCY_IN_PROGRESS", "RATE_LIMITED"})
LOST = (aiohttp.ClientError, TimeoutError, OSError)


class Answer(NamedTuple):
    """What a server said."""

    status: int
    body: Json
    request: str
    """The id under which the audit has the request."""
    is_replayed: bool
    is_sure: bool
    """It was the first time that the request was sent."""


class Asking:
    """See the module's docstring."""

    def __init__(
        self,
        session: aiohttp.ClientSession,
        servers: Sequence[str],
        keys: dict[str, str],
        journal: Journal,
        choose: random.Random,
    ) -> None:
        self.session = session
        self.servers = servers
        self.journal = journal
        self.choose = choose
        self._keys = keys

    def headers(self, role: str | None) -> dict[str, str]:
        return {"Authorization": f"Bearer {self._keys[role]}"} if role is not None else {}

    async def ask(
        self, role: str | None, method: str, path: str, body: Json = None, headers: dict[str, str] | None = None
    ) -> Answer:
        """The answer to one request, whatever happens to those who should give it."""
        raw = body if isinstance(body, bytes) else msgspec.json.encode(body if body is not None else {})
        sent = {"Content-Type": "application/json", **self.headers(role), **(headers or {})}
        is_sure = True
        while True:
            request = uuid.uuid4().hex
            try:
                async with self.session.request(
                    method,
                    self.choose.choice(self.servers) + path,
                    data=raw if method != "GET" else None,
                    headers={**sent, "X-Request-Id": request},
                    timeout=aiohttp.ClientTimeout(ANSWER_S),
                ) as reply:
                    text = await reply.read()
                    said = _json(text)
                    replayed = reply.headers.get("Idempotency-Replayed") == "true"
            except LOST:
                is_sure = False
                await asyncio.sleep(AGAIN_S)
                continue
            code = said.get("code") if reply.status >= 400 and isinstance(said, dict) else None
            if reply.status >= 500 and code not in NO_ANSWER:
                self.journal.say(sure=True, op="broken", path=path, status=reply.status, said=said)
            if reply.status < 500 and code not in NO_ANSWER:
                return Answer(reply.status, said, request, replayed, is_sure)
            is_sure = False
            await asyncio.sleep(AGAIN_S)


def _json(text: bytes) -> Json:
    """A body; one that is no JSON is shown as it is."""
    try:
        return msgspec.json.decode(text) if text else None
    except msgspec.DecodeError:
        return text.decode(errors="replace")
