"""A connection to a service: sends requests, waits while it does not answer, turns refusals into exceptions.

Promises that a command which had to be sent again counts once: it carries an idempotency key. Must not know a noun.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import quote, urlsplit

import aiohttp
import msgspec
import uuid_utils

from treadle.errors import CommandRefused, DefinitionError, EngineStopped, StorePlaceError, StoreUnavailable
from treadle.language import Problem
from treadle.model.errors import FieldProblem
from treadle.runtime.surroundings.patience import PATIENCE_S

Json = Any
REQUEST_S = 30.0
"""How long an answer may take beyond what the request itself asks to wait for."""
PAUSE_S = 0.1
PAUSE_MAX_S = 2.0
"""Between two tries, doubling."""
AGAIN = frozenset({502, 503, 504})
"""Statuses that say: not now."""
PAGE = 1_000
"""Rows of one request: the most a service gives."""


class Connection:
    """See the module's docstring. `wait_s`: how long a service that does not answer is waited for."""

    def __init__(self, url: str, key: str | None, wait_s: float = PATIENCE_S) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
            raise StorePlaceError(url, "this is no address of a service", "write https://HOST or http://HOST:PORT")
        self.url = url.rstrip("/")
        self._key = key
        self._wait_s = wait_s
        self._session: aiohttp.ClientSession | None = None

    async def open(self) -> None:
        headers = {"Authorization": f"Bearer {self._key}"} if self._key else {}
        self._session = aiohttp.ClientSession(headers=headers, timeout=aiohttp.ClientTimeout(total=None))

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def get(self, path: str, query: Mapping[str, Json] | None = None, *, wait_ms: int = 0) -> Json:
        """The JSON at a path below /api/v1. `wait_ms`: how long the service was asked to wait."""
        return await self._told("GET", path, query=query, wait_ms=wait_ms)

    async def all_of(self, path: str) -> list[dict[str, Json]]:
        """All rows of a list, however many pages it has."""
        page = await self.get(path, {"limit": PAGE})
        rows: list[dict[str, Json]] = page["items"]
        while page["next"] is not None:
            page = await self.get(path, {"limit": PAGE, "cursor": page["next"]})
            rows += page["items"]
        return rows

    async def send(
        self,
        method: str,
        path: str,
        body: Json = None,
        *,
        query: Mapping[str, Json] | None = None,
        once: bool | str = True,
        headers: Mapping[str, str] | None = None,
        wait_ms: int = 0,
    ) -> Json:
        """A command. `once`: it carries a key of its own, or this one, so that it may be sent again if its answer is
        lost. `wait_ms`: how long the service was asked to wait."""
        named = once if isinstance(once, str) else str(uuid_utils.uuid4())
        key = {"Idempotency-Key": named} if once and method == "POST" else {}
        again = bool(once) or method in ("PUT", "DELETE")
        return await self._told(
            method,
            path,
            body=body if body is not None else {},
            query=query,
            headers={**(headers or {}), **key},
            wait_ms=wait_ms,
            again=again,
        )

    async def download(self, path: str) -> bytes:
        """The bytes at a path below /api/v1."""
        return await self._patiently("GET", path, None, None, {}, REQUEST_S)

    async def upload(self, path: str, content: bytes, content_type: str | None) -> None:
        """Bytes to a path below /api/v1."""
        headers = {"Content-Type": content_type or "application/octet-stream"}
        await self._patiently("PUT", path, None, content, headers, REQUEST_S)

    @asynccontextmanager
    async def stream(self, path: str, headers: Mapping[str, str]) -> AsyncIterator[aiohttp.ClientResponse]:
        """A response that goes on."""
        assert self._session is not None, "the connection is open"
        async with self._session.get(f"{self.url}/api/v1{path}", headers=dict(headers)) as response:
            if response.status != 200:
                raise refusal(response.status, await response.read())
            yield response

    async def _told(
        self,
        method: str,
        path: str,
        *,
        body: Json = None,
        query: Mapping[str, Json] | None = None,
        headers: Mapping[str, str] | None = None,
        wait_ms: int = 0,
        again: bool = True,
    ) -> Json:
        data = msgspec.json.encode(body) if method != "GET" and body is not None else None
        sent = {**(headers or {}), **({"Content-Type": "application/json"} if data is not None else {})}
        limit_s = REQUEST_S + wait_ms / 1_000
        answer = await self._patiently(method, path, query, data, sent, limit_s, again=again)
        return msgspec.json.decode(answer) if answer else None

    async def _patiently(
        self,
        method: str,
        path: str,
        query: Mapping[str, Json] | None,
        data: bytes | None,
        headers: Mapping[str, str],
        limit_s: float,
        *,
        again: bool = True,
    ) -> bytes:
        """An answer, asked for again while the service does not answer. `again`: also where it may have acted."""
        deadline = asyncio.get_running_loop().time() + self._wait_s
        pause_s = PAUSE_S
        while True:
            try:
                return await self._answer(method, path, query, data, headers, limit_s)
            except StoreUnavailable as problem:
                is_late = asyncio.get_running_loop().time() + pause_s > deadline
                if is_late or (problem.outcome_unknown and not again):
                    raise
            await asyncio.sleep(pause_s)
            pause_s = min(pause_s * 2, PAUSE_MAX_S)

    async def _answer(
        self,
        method: str,
        path: str,
        query: Mapping[str, Json] | None,
        data: bytes | None,
        headers: Mapping[str, str],
        limit_s: float,
    ) -> bytes:
        if self._session is None:
            raise EngineStopped("this client was closed")
        address = f"{self.url}/api/v1{path}"
        try:
            async with asyncio.timeout(limit_s):
                request = self._session.request(
                    method, address, params=_parameters(query), data=data, headers=headers, allow_redirects=False
                )
                async with request as response:
                    answer = await response.read()
        except aiohttp.ClientConnectorError as problem:
            raise StoreUnavailable(f"{self.url} cannot be reached: {problem.strerror or problem}") from None
        except (aiohttp.ClientError, TimeoutError, OSError) as problem:
            reason = f"{self.url} does not answer: {type(problem).__name__}"
            raise StoreUnavailable(reason, outcome_unknown=method != "GET") from None
        moved = response.headers.get("Location", "").partition("/api/v1")[2] if response.status == 308 else ""
        if moved and moved != path:  # the thing has another address now, of the same service
            return await self._answer(method, moved, query, data, headers, limit_s)
        if response.status >= 300:
            raise refusal(response.status, answer)
        return answer


def _parameters(query: Mapping[str, Json] | None) -> Sequence[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for name, value in (query or {}).items():
        for one in value if isinstance(value, list | tuple) else [value]:
            if one is not None:
                found.append((name, str(one).lower() if isinstance(one, bool) else str(one)))
    return found


def segment(text: str) -> str:
    """A name as one segment of a path."""
    return quote(text, safe="")


def refusal(status: int, answer: bytes) -> Exception:
    """The exception that a refusal stands for."""
    try:
        told = msgspec.json.decode(answer)
        code, detail = str(told["code"]), str(told["detail"])
    except (msgspec.DecodeError, KeyError, TypeError):
        return StoreUnavailable(f"the service answers {status} without saying why", outcome_unknown=status >= 500)
    remedy = f"; {told['remedy']}" if told.get("remedy") else ""
    if code == "NO_ENGINE":
        return EngineStopped(f"{detail}{remedy}")
    if status in AGAIN:
        return StoreUnavailable(f"{detail}{remedy}")
    problems = told.get("problems") or ()
    if status == 422 and any(one.get("severity") for one in problems):
        return DefinitionError([_problem(one) for one in problems])
    fields = [FieldProblem(one.get("place") or "", one["message"]) for one in problems]
    return CommandRefused(code, f"{detail}{remedy}", fields)


def _problem(told: dict[str, Json]) -> Problem:
    """A problem of a definition, as if it had been found here. The service does not know the author's file."""
    known = {name: told[name] for name in ("code", "message", "severity", "line", "column", "hint") if name in told}
    return Problem(**known, at=told.get("place") or "", file="<service>")
