"""Cursors: the position of a walk through a list, opaque to its holder and bound to the list's filters.

Promises that a cursor which was changed, made for other filters or by another store is refused. Nothing in it is
secret: the mac only keeps callers from making positions up."""

from __future__ import annotations

import base64
import hashlib
import hmac
from typing import Any

import msgspec

from treadle.server.problems import HttpProblem

MAC_BYTES = 12
"""A forged cursor gives no right, only an odd page: 96 bits are plenty."""
LONGEST = 2_000


def write_cursor(key: bytes, value: Any, filters: bytes) -> str:
    """The cursor for a position, for a list with these filters."""
    body = msgspec.json.encode(value)
    return base64.urlsafe_b64encode(_mac(key, body, filters) + body).decode().rstrip("=")


def read_cursor(key: bytes, text: str, filters: bytes) -> Any:
    """The position out of a cursor. Raises BAD_REQUEST."""
    try:
        data = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
        mac, body = data[:MAC_BYTES], data[MAC_BYTES:]
        if len(text) <= LONGEST and hmac.compare_digest(mac, _mac(key, body, filters)):
            return msgspec.json.decode(body)
    except (ValueError, msgspec.DecodeError):
        pass
    raise HttpProblem(
        "BAD_REQUEST",
        "this cursor was not given for this list with these filters",
        place="cursor",
        remedy="begin again without a cursor, or repeat the filters of the page that gave it",
    )


def _mac(key: bytes, body: bytes, filters: bytes) -> bytes:
    return hmac.new(key, hashlib.sha256(filters).digest() + body, hashlib.sha256).digest()[:MAC_BYTES]
