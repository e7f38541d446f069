"""Streams of the tortured client: each is continued behind its last id, at any server, for as long as it takes.

Owns the reading of server-sent events here, and what was read: the judge compares it with the histories.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import aiohttp
import msgspec

from tests.torture.service.asking import AGAIN_S, LOST, Asking

Json = Any
SILENT_S = 40.0
"""A stream without even a comment line for so long is dead: its server stands still or is gone."""
Seen = Callable[[str, Json], bool]


async def follow(asking: Asking, path: str, is_last: Seen) -> list[tuple[str, int]]:
    """Follows a stream until a message (its event and data) is the last one; the events of runs that came."""
    found: list[tuple[str, int]] = []
    last: str | None = None
    while True:
        headers = {**asking.headers("viewer"), **({"Last-Event-ID": last} if last is not None else {})}
        url = asking.choose.choice(asking.servers) + path
        try:
            timeout = aiohttp.ClientTimeout(total=None, sock_connect=5, sock_read=SILENT_S)
            async with asking.session.get(url, headers=headers, timeout=timeout) as reply:
                if reply.status in (404, 410, 400, 401, 403, 500):
                    said = await reply.text()
                    asking.journal.say(sure=True, op="broken", path=path, status=reply.status, said=said, last=last)
                async for id, event, data in _messages(reply) if reply.status == 200 else _none():
                    if id is not None:
                        found.append((data.get("run", ""), data["seq"]))
                        last = id
                    if is_last(event, data):
                        return found
        except LOST:
            pass
        await asyncio.sleep(AGAIN_S)


async def _none() -> AsyncIterator[tuple[str | None, str, Json]]:
    return
    yield


async def _messages(reply: aiohttp.ClientResponse) -> AsyncIterator[tuple[str | None, str, Json]]:
    """Whole messages; one that was cut off in the middle does not count."""
    fields: dict[str, str] = {}
    rest = b""
    async for chunk in reply.content.iter_any():
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            text = line.rstrip(b"\r").decode()
            if not text and "event" in fields:
                yield fields.get("id"), fields["event"], msgspec.json.decode(fields["data"])
            if not text:
                fields = {}
            elif not text.startswith(":"):
                name, _, value = text.partition(": ")
                fields[name] = value
