"""Answers on their way out: a response with few steps, and the headers that every answer has.

Owns the headers of every answer. A `Reply` is a Starlette response whose headers are given once and encoded once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from treadle.server.one_write import EXTENSION, WholeExchange

CONTENT_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"content-security-policy", CONTENT_POLICY.encode()),
)
"""On every answer, unless it has one of its own."""
_NAMES = frozenset(name.decode() for name, _ in HEADERS)
_BLOCK = b"".join(b"%b: %b\r\n" % header for header in HEADERS)
BODILESS = frozenset({204, 304})


class Reply(Response):
    """A whole answer. Names of headers are given in small letters."""

    def __init__(self, body: bytes, status: int, headers: Mapping[str, str], media_type: str | None = None) -> None:
        self.status_code = status
        self.body = body
        self.background = None
        self._has_own = not _NAMES.isdisjoint(headers)
        self.raw_headers = raw = [(name.encode("latin-1"), text.encode("latin-1")) for name, text in headers.items()]
        if status not in BODILESS:
            raw.append((b"content-length", str(len(body)).encode()))
        if media_type is not None and "content-type" not in headers:
            text_type = media_type.startswith("text/") and "charset=" not in media_type
            raw.append((b"content-type", f"{media_type}; charset=utf-8".encode() if text_type else media_type.encode()))

    def is_written(self, exchange: WholeExchange) -> bool:
        """Writes the answer with the headers of every answer; False: not now, send it the usual way."""
        if not self._has_own:
            return exchange.answer(self.status_code, self.raw_headers, bytes(self.body), _BLOCK)
        return exchange.answer(self.status_code, [*self.raw_headers, *_missing(self)], bytes(self.body))


async def send_answer(
    response: Response, also: Sequence[tuple[bytes, bytes]], scope: Scope, receive: Receive, send: Send
) -> None:
    """Sends an answer with the headers of every answer, and some that it has of its own accord."""
    response.raw_headers.extend(also)
    if isinstance(response, Reply):
        exchange: WholeExchange | None = scope.get("extensions", {}).get(EXTENSION)
        if exchange is not None and response.is_written(exchange):
            return
    response.raw_headers.extend(_missing(response))
    await response(scope, receive, send)


def _missing(response: Response) -> list[tuple[bytes, bytes]]:
    """The headers of every answer that it does not have yet."""
    given = {name for name, _ in response.raw_headers}
    return [header for header in HEADERS if header[0] not in given]
