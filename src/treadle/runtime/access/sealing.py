"""Sealing: texts that must be read again but not by those who read the database. Signing secrets, stored secrets.

Owns the one way in which a secret is written down: AES-256-GCM, with a fresh nonce and a key that is not in the same
place as the data (a file beside a SQLite file; on PostgreSQL a file that the operator names, else the store's own
secret among its documents). Promises that a sealed text opens only for the purpose it was sealed for, so that one
cannot be moved to another name; that a changed one does not open at all; and that nothing here logs or shows a text.

    sealing = await client.sealing()
    kept = sealing.seal("hook:orders", "the secret")     # a text, fit for a document
    sealing.open("hook:orders", kept)                    # "the secret"; raises SealBroken
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
from pathlib import Path

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from treadle.errors import SettingsInvalid, TreadleError

FORM = "s1"
"""The first word of a sealed text: how it is made. Another way gets another word."""
NONCE_BYTES = 12
KEY_FILE_MIN = 32
"""Bytes a key file must have: `openssl rand -hex 32` writes 65."""


class SealBroken(TreadleError):
    """A sealed text cannot be opened: it was changed, moved, or sealed with a key that is not here."""


class Sealing:
    """Seals and opens. The first key seals; all of them open, so that a key file can be introduced or replaced."""

    def __init__(self, *roots: bytes) -> None:
        keys = [hmac.new(root, b"treadle.sealing", hashlib.sha256).digest() for root in roots]
        self._by_name = {_name(key): AESGCM(key) for key in keys}
        self._first = _name(keys[0])

    def seal(self, purpose: str, text: str) -> str:
        """The text, unreadable. Sealed twice it looks different."""
        nonce = secrets.token_bytes(NONCE_BYTES)
        hidden = self._by_name[self._first].encrypt(nonce, text.encode(), purpose.encode())
        return f"{FORM}.{self._first}.{base64.urlsafe_b64encode(nonce + hidden).decode()}"

    def open(self, purpose: str, sealed: str) -> str:
        """The text. Raises SealBroken."""
        form, _, rest = sealed.partition(".")
        name, _, data = rest.partition(".")
        key = self._by_name.get(name) if form == FORM else None
        if key is None:
            raise SealBroken(
                "it was sealed with a key that is not here; the setting `secrets.key_file` must name the same file on"
                " every node"
            )
        try:
            raw = base64.urlsafe_b64decode(data)
            return key.decrypt(raw[:NONCE_BYTES], raw[NONCE_BYTES:], purpose.encode()).decode()
        except (InvalidTag, ValueError):
            raise SealBroken("it was changed, or sealed for another purpose") from None


def sealing_with(root: bytes, key_file: str | None) -> Sealing:
    """Seals with the operator's key file if there is one, else with the store's own secret. Raises SettingsInvalid."""
    if key_file is None:
        return Sealing(root)
    try:
        key = Path(key_file).read_bytes().strip()
    except OSError as problem:
        raise SettingsInvalid(f"secrets.key_file: {key_file} cannot be read: {problem.strerror}") from None
    if len(key) < KEY_FILE_MIN:
        raise SettingsInvalid(f"secrets.key_file: {key_file} has fewer than {KEY_FILE_MIN} bytes")
    return Sealing(key, root)


def _name(key: bytes) -> str:
    """Names a key without telling it."""
    return hashlib.sha256(b"treadle.sealing.name" + key).hexdigest()[:12]
