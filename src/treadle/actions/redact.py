"""The second line of defence: known secret values are removed from everything that an attempt leaves behind.

Owns the forms a value may come back in: as it is, JSON-escaped, URL-encoded, in hexadecimal, and in base64, alone or
inside a longer encoded text (`user:secret` of Basic authentication). Promises that `scrubbed` output holds none of
them. Confession: a peer that answers with another transformation (reversed, split, compressed) gets it past; the first
line is to send secrets only where they belong (`OutsideSettings.secret_hosts`).
"""

from __future__ import annotations

import base64
import json
import logging
from collections.abc import Iterable, MutableMapping
from contextvars import ContextVar
from typing import Any
from urllib.parse import quote, quote_plus

from msgspec.structs import replace

from treadle.actions.protocol import Done, Failed
from treadle.actions.secrets import HIDDEN, Secret
from treadle.model.errors import Error

Json = Any

_QUERY_SAFE = "/?:@!$'()*,"
"""Characters that URL libraries do not encode inside a query."""
_SHORTEST_FRAGMENT = 5
"""Least length of a base64 form without its borders: a shorter one would match innocent text."""


class Redactor:
    """Removes the secrets of one attempt from texts and values."""

    __slots__ = ("_forms",)

    def __init__(self, secrets: Iterable[Secret]) -> None:
        forms = {form for secret in secrets for form in _forms(secret.reveal())}
        self._forms = sorted(forms, key=len, reverse=True)  # a form may contain another

    def text(self, text: str) -> str:
        """The text without any of the secrets."""
        for form in self._forms:
            if form in text:
                text = text.replace(form, HIDDEN)
        return text

    def undecided(self, text: str) -> int:
        """How many characters at the end of a text may be the beginning of a secret."""
        longest = min(len(text), len(self._forms[0]) - 1) if self._forms else 0
        for size in range(longest, 0, -1):
            if any(form.startswith(text[-size:]) for form in self._forms):
                return size
        return 0

    def value(self, value: Json) -> Json:
        """A JSON value without any of the secrets, keys included."""
        if not self._forms:
            return value
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            return {self.value(key): self.value(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self.value(item) for item in value]
        return value

    def error(self, error: Error) -> Error:
        """An error whose message and details are scrubbed."""
        told = self.text(error.traceback) if error.traceback is not None else None
        return replace(error, message=self.text(error.message), details=self.value(error.details), traceback=told)

    def reply(self, reply: Done | Failed) -> Done | Failed:
        """The reply of an attempt, scrubbed."""
        if isinstance(reply, Failed):
            return Failed(self.error(reply.error))
        return Done(self.value(reply.output), reply.requests)


def _forms(value: str) -> set[str]:
    raw = value.encode()
    forms = {value, json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1], repr(value)[1:-1]}
    for safe in ("", "/", _QUERY_SAFE):
        forms |= {quote(value, safe=safe), quote_plus(value, safe=safe)}
    forms |= {form.lower() for form in forms if "%" in form} | {raw.hex(), raw.hex().upper()}
    encoded = _base64(raw)
    forms |= encoded | {form.replace("+", "-").replace("/", "_") for form in encoded}
    forms |= {line for line in value.splitlines() if len(line) >= _SHORTEST_FRAGMENT * 2}  # a key, printed line by line
    return forms


def _base64(raw: bytes) -> set[str]:
    """The letters that depend on the value alone, at each of the three places it can have inside a longer text."""
    found = set()
    for before in range(3):
        encoded = base64.b64encode(b"\0" * before + raw).decode().rstrip("=")
        first = -(-before * 8 // 6)
        last = (before + len(raw)) * 8 // 6
        if last - first >= _SHORTEST_FRAGMENT:
            found.add(encoded[first:last])
    return found


current: ContextVar[Redactor | None] = ContextVar("redactor", default=None)
"""The redactor of the attempt that is under way in this context; kinds set it while they hold secrets."""


class RedactingFilter(logging.Filter):
    """For a handler of the standard library's logging: what is logged during an attempt is scrubbed."""

    def filter(self, record: logging.LogRecord) -> bool:
        redactor = current.get()
        if redactor is not None:
            record.msg, record.args = redactor.text(record.getMessage()), None
            if record.exc_info:
                record.exc_text = redactor.text(logging.Formatter().formatException(record.exc_info))
                record.exc_info = None
        return True


def redact_event(_logger: Any, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """The same as a structlog processor; stands after those that render exceptions."""
    redactor = current.get()
    return event if redactor is None else redactor.value(dict(event))
