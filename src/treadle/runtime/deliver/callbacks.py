"""Callback tokens: the holder of a token may answer one attempt of one visit, and nothing else.

A token is `<claims>.<mac>`: the run, visit and attempt it is for, and an HMAC-SHA-256 over them with the engine's key.
Tokens are not stored, and only the mac is secret. Promises that a token cannot be made without the key, nor be turned
into one for another attempt, and that comparing takes the same time wherever two tokens differ. The kernel makes sure
that an answer counts once, and not after its attempt has ended.
"""

from __future__ import annotations

import hmac
from binascii import a2b_base64, b2a_base64

import msgspec
from msgspec import Struct

from treadle.model.ids import RunId, TokenId

_PURPOSE = b"treadle.callback.1\0"
"""Keeps the macs apart from any other use of the same key."""
KEY_BYTES = 16
"""The least a key must have: 128 bits cannot be guessed."""
MAC_LONGEST = 64
"""Bytes of a mac that are looked at: it has 43."""
LONGEST = 1_000


class Callback(Struct, frozen=True, array_like=True):
    """The attempt that the holder of a token may answer."""

    run: RunId
    token: TokenId
    attempt: int


def callback_token(key: bytes, run: RunId, token: TokenId, attempt: int) -> str:
    """The token for one attempt. It is always the same, so a webhook that is sent again carries the same token."""
    claims = msgspec.json.encode(Callback(run, token, attempt))
    return f"{_encoded(claims)}.{_encoded(_mac(key, claims))}"


def read_callback(key: bytes, text: str) -> Callback | None:
    """The attempt a token is for; None if the token was not made with this key. Every text takes the same steps: how
    long it takes says nothing about what is wrong with it."""
    claims_text, _, mac_text = text[:LONGEST].partition(".")
    claims = _decoded(claims_text)
    expected = _encoded(_mac(key, claims or b""))  # compared as it is written: there is one spelling only
    given = mac_text.encode(errors="replace")[:MAC_LONGEST].ljust(len(expected), b"\0")
    if not hmac.compare_digest(expected.encode(), given) or claims is None or len(text) > LONGEST:
        return None
    try:
        return msgspec.json.decode(claims, type=Callback)
    except msgspec.DecodeError:
        return None


def verify(key: bytes, text: str, run: RunId, token: TokenId, attempt: int) -> bool:
    """Whether a token is for exactly this attempt."""
    return hmac.compare_digest(callback_token(key, run, token, attempt).encode(), text.encode(errors="replace"))


def _mac(key: bytes, claims: bytes) -> bytes:
    if len(key) < KEY_BYTES:
        raise ValueError(f"the key of callback tokens needs at least {KEY_BYTES} bytes")
    return hmac.digest(key, _PURPOSE + claims, "sha256")


_TO_URL, _FROM_URL = bytes.maketrans(b"+/", b"-_"), bytes.maketrans(b"-_", b"+/")


def _encoded(data: bytes) -> str:
    return b2a_base64(data, newline=False).rstrip(b"=").translate(_TO_URL).decode()


def _decoded(text: str) -> bytes | None:
    """Decodes only the spelling that `_encoded` writes, so that no second text means the same token."""
    try:
        data = a2b_base64(text.encode("ascii").translate(_FROM_URL) + b"=" * (-len(text) % 4), strict_mode=True)
    except ValueError:
        return None
    return data if _encoded(data) == text else None
