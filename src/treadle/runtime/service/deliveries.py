"""A delivery as data: what a sender sent, without its credentials, and what rules see of it.

Owns what is written down of a request, and how its body is read: JSON, a form (an object of texts), or text.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl

import msgspec
from msgspec import Struct

Json = Any
FIELDS_MAX = 1_000
"""Fields of a form that are read: more are no form that a person has filled in."""
_CREDENTIAL = re.compile(r"authorization|cookie|token|secret|password|api-?key|credential", re.IGNORECASE)
"""Names of headers that carry credentials. A signature is none: it proves one message only."""
_FORM = "application/x-www-form-urlencoded"


class Delivered(Struct, frozen=True, kw_only=True):
    """One delivery."""

    headers: dict[str, str]
    """By names in lower case, without credentials."""
    query: dict[str, str]
    body: bytes
    media_type: str = ""
    sender: str | None = None
    """The address it came from."""

    @property
    def digest(self) -> str:
        return hashlib.sha256(self.body).hexdigest()

    def as_json(self) -> dict[str, Json]:
        """As it is written into the log. A body that is text is kept as text."""
        kept: dict[str, Json] = {
            "headers": self.headers,
            "query": self.query,
            "media_type": self.media_type,
            "sender": self.sender,
            "digest": self.digest,
            "size": len(self.body),
        }
        try:
            kept["text"] = self.body.decode()
        except UnicodeDecodeError:
            kept["base64"] = base64.b64encode(self.body).decode()
        return kept

    @staticmethod
    def from_json(kept: Mapping[str, Json]) -> Delivered:
        """A delivery out of the log."""
        body = kept["text"].encode() if "text" in kept else base64.b64decode(kept["base64"])
        return Delivered(
            headers=kept["headers"],
            query=kept["query"],
            body=body,
            media_type=kept["media_type"],
            sender=kept.get("sender"),
        )


def without_credentials(headers: Mapping[str, str]) -> dict[str, str]:
    """Headers that may be kept and shown, by names in lower case."""
    return {name.lower(): value for name, value in headers.items() if not _CREDENTIAL.search(name)}


def seen_by_rules(delivered: Delivered, about: dict[str, Json]) -> dict[str, Json]:
    """`{body, headers, query, delivery}`. Raises ValueError for a body that is not what it says it is."""
    return {"body": _read(delivered), "headers": delivered.headers, "query": delivered.query, "delivery": about}


def _read(delivered: Delivered) -> Json:
    kind = delivered.media_type.partition(";")[0].strip().lower()
    if kind == _FORM:
        try:
            return dict(parse_qsl(delivered.body.decode(), keep_blank_values=True, max_num_fields=FIELDS_MAX))
        except (UnicodeDecodeError, ValueError):
            raise ValueError(f"the body is no form in UTF-8 with at most {FIELDS_MAX} fields") from None
    said = kind == "application/json" or kind.endswith("+json")
    if said or (not kind and delivered.body[:1] in (b"{", b"[")):
        try:
            return msgspec.json.decode(delivered.body) if delivered.body.strip() else None
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as problem:
            raise ValueError(f"the body is no JSON: {problem}") from None
    try:
        return delivered.body.decode()
    except UnicodeDecodeError:
        return base64.b64encode(delivered.body).decode()
