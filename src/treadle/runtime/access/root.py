"""The store's own secret: what callback tokens, cursors and sessions are signed with.

It is made once per store, so that a token outlives the process that gave it. A file has it in another file beside it, a
database among its documents: its nodes share it.
"""

from __future__ import annotations

import hashlib
import secrets

from treadle.errors import StoreConflict
from treadle.store.port import KeepsKey, Store

KIND = "_callback_key"


async def root_secret(store: Store) -> bytes:
    """The secret. The first call makes it."""
    kept = await store.documents(KIND, "key")
    if isinstance(store, KeepsKey):
        key = await store.callback_key(kept[0].body if kept else None)
        if kept:
            await store.put_document(KIND, "key", "", None)
        return bytes.fromhex(key)
    return bytes.fromhex(kept[0].body if kept else await _made(store))


async def _made(store: Store) -> str:
    """A new secret; or the one of another node that was first."""
    made = secrets.token_hex(32)
    digest = hashlib.sha256(made.encode()).hexdigest()
    try:
        key: str = (await store.put_document(KIND, "key", digest, made, 0)).body
    except StoreConflict:
        kept = await store.documents(KIND, "key")
        key = kept[0].body if kept else (await store.put_document(KIND, "key", digest, made)).body
    return key
