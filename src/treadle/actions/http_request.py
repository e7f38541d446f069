"""One request as an author described it, ready to be sent and to follow a redirect.

Owns header rules and what a redirect does to a request. Promises that across origins no credential travels: not
`Authorization`, not cookies, no header made of a secret; a body that holds a secret is not sent on.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec
from yarl import URL

from treadle.actions.configured import Settled
from treadle.actions.failure import TaskFailure
from treadle.actions.net import AddressGate, check_spelling
from treadle.actions.secrets import Secret, holds_secret, revealed

Json = Any
_ABSENT: Any = object()
_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,200}\Z")
_BAD_VALUE = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
_OURS = frozenset(["host", "content-length", "transfer-encoding", "connection", "upgrade", "te", "trailer"])
"""Headers that the client sets itself: an author's could make two peers disagree about where a request ends."""
_CREDENTIALS = frozenset(["authorization", "cookie", "proxy-authorization", "x-api-key", "idempotency-key"])


@dataclass(frozen=True, slots=True, repr=False)
class HttpRequest:
    """Method, address, headers, body. It contains secrets in the clear, so its repr shows nothing."""

    method: str
    url: URL
    headers: dict[str, str]
    body: bytes | None = None
    private: frozenset[str] = field(default_factory=frozenset)
    """Lower-case names of headers made of secrets."""
    private_body: bool = False
    private_url: bool = False

    @property
    def shown(self) -> str:
        """The address for messages: never its query, and of a secret one only the host."""
        return str(self.url.origin()) if self.private_url else f"{self.url.origin()}{self.url.path}"

    def follow(self, status: int, location: str, gate: AddressGate) -> HttpRequest:
        """The request of the next hop. Raises `AddressRefused` or TaskFailure."""
        check_spelling(location)
        try:
            target = gate.check_url(self.url.join(URL(location)))
        except ValueError:
            raise TaskFailure(f"the answer redirects ({status}) to something that is no address") from None
        next = replace(self, url=target)
        if status == 303 or (status in (301, 302) and self.method == "POST"):
            method = "HEAD" if self.method == "HEAD" else "GET"
            headers = {k: v for k, v in self.headers.items() if k.lower() not in ("content-type", "content-encoding")}
            next = replace(next, method=method, body=None, headers=headers, private_body=False)
        return next if target.origin() == self.url.origin() else next._abroad()

    def _abroad(self) -> HttpRequest:
        if self.private_body:
            raise TaskFailure("the answer redirects to another origin, and the body holds a secret: not followed")
        kept = {k: v for k, v in self.headers.items() if k.lower() not in _CREDENTIALS | self.private}
        return replace(self, headers=kept)


def build_request(settled: Settled, gate: AddressGate) -> HttpRequest:
    """The request that a call describes. Raises `AddressRefused` or TaskFailure, naming the setting."""
    written = settled.get("headers")
    headers = {name: _header(name, value) for name, value in _map("headers", written).items() if value is not None}
    content = settled.get("body", _ABSENT)
    body, content_type = _encoded(content)
    names = {name.lower() for name in headers}
    if body is not None and "content-type" not in names:
        headers["Content-Type"] = content_type
    if "idempotency-key" not in names:
        headers["Idempotency-Key"] = settled.call.key
    if "treadle-attempt" not in names:
        headers["Treadle-Attempt"] = str(settled.call.facts.attempt)
    trace = settled.call.facts.trace
    if trace is not None and "traceparent" not in names:
        headers |= trace
    return HttpRequest(
        method=_method(settled.get("method", "GET")),
        url=gate.check_url(_address(settled)),
        headers=headers,
        body=body,
        private=frozenset(name.lower() for name, value in (written or {}).items() if isinstance(value, Secret)),
        private_body=content is not _ABSENT and holds_secret(content),
        private_url=isinstance(settled.get("url"), Secret),
    )


def _address(settled: Settled) -> str | URL:
    text = revealed(settled.get("url"))
    if not isinstance(text, str) or not text:
        raise TaskFailure("`url` must be text: give it in the action or in the step's input")
    query = _map("query", settled.get("query"))
    pairs = [(name, _scalar(name, item)) for name, value in query.items() for item in _items(value)]
    if not pairs:
        return text
    try:
        return URL(text).extend_query(pairs)
    except (ValueError, TypeError):
        raise TaskFailure("`url` cannot be read as a URL") from None


def _items(value: Json) -> list[Json]:
    """A list is the same parameter several times; null is none."""
    return [item for item in (value if isinstance(value, list) else [value]) if item is not None]


def _scalar(name: str, value: Json) -> str:
    value = revealed(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str | int | float):
        return str(value)
    raise TaskFailure(f"`{name[:80]}` must be text or a number, not {type(value).__name__}")


def _header(name: str, value: Json) -> str:
    if not _NAME.match(name) or name.lower() in _OURS:
        raise TaskFailure(f"the header {name[:80]!r} cannot be set")
    text = _scalar(name, value)
    if _BAD_VALUE.search(text):
        raise TaskFailure(f"the value of the header {name!r} holds a line break or a control character")
    return text


def _map(name: str, value: Json) -> dict[str, Json]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise TaskFailure(f"`{name}` must be a map, not {type(value).__name__}")
    return value


def _method(value: Json) -> str:
    if (
        not isinstance(value, str)
        or not re.fullmatch(r"[A-Za-z]{3,16}", value)
        or value.upper() in ("CONNECT", "TRACE")
    ):
        raise TaskFailure(f"{str(value)[:40]!r} is no method of a request")
    return value.upper()


def _encoded(content: Json) -> tuple[bytes | None, str]:
    if content is _ABSENT:
        return None, ""
    plain = revealed(content)
    if isinstance(plain, str):
        return plain.encode(), "text/plain; charset=utf-8"
    return msgspec.json.encode(plain), "application/json"
