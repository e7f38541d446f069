"""What a process leaves behind that dies between writing a delivery down and doing something about it."""

from __future__ import annotations

import asyncio

from treadle.runtime.connecting import connect
from treadle.runtime.service.deliveries import Delivered, without_credentials
from treadle.runtime.service.hooks import LOG
from treadle.runtime.service.records import Changes, Entry


def write_delivery(store: str, slug: str, body: bytes, headers: dict[str, str]) -> int:
    """Writes a delivery into the log and nothing else. Returns its number."""
    delivered = Delivered(
        headers=without_credentials(headers), query={}, body=body, media_type="application/json", sender=None
    )

    async def write() -> int:
        async with connect(store) as client:
            entry = Entry(LOG, slug, delivered.as_json(), client.now())
            return (await client.records.write(Changes(entries=[entry]))).entries[0].id

    return asyncio.run(write())
