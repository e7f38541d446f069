"""The body of an answer: read within bounds, decoded by what its content type says.

Promises that neither a long answer nor a decompression bomb takes more memory than the limit plus one chunk.
"""

from __future__ import annotations

import base64
import zlib
from typing import TYPE_CHECKING, Any

import msgspec

from treadle.actions.failure import Retryable, TaskFailure

if TYPE_CHECKING:
    import aiohttp

Json = Any

CHUNK = 64 * 1024
_TEXTS = frozenset(f"application/{name}" for name in ("xml", "javascript", "x-www-form-urlencoded", "yaml", "x-ndjson"))


async def read_body(response: aiohttp.ClientResponse, limit: int) -> bytes:
    """The whole body, decompressed. Raises TaskFailure LIMIT_EXCEEDED beyond `limit` bytes, on the wire or after."""
    decoder = _decoder(response.headers.get("Content-Encoding", ""))
    body = bytearray()
    received = 0
    async for chunk in response.content.iter_chunked(CHUNK):
        received += len(chunk)
        if decoder is None:
            body += chunk
        else:
            body += _decompressed(decoder, chunk, limit + 1 - len(body))
        if len(body) > limit or received > limit:
            response.close()
            raise TaskFailure(
                f"the answer is longer than {limit} bytes; raise `max_bytes`, or have the operator raise the ceiling",
                kind="LIMIT_EXCEEDED",
                details={"status": response.status, "max_bytes": limit},
            )
    if decoder is not None and received and not decoder.eof:
        raise Retryable("the compressed answer ends before its end", details={"status": response.status})
    return bytes(body)


def _decoder(encoding: str) -> Any:
    name = encoding.strip().lower()
    if name in ("", "identity"):
        return None
    if name in ("gzip", "x-gzip"):
        return zlib.decompressobj(16 + zlib.MAX_WBITS)
    if name == "deflate":
        return zlib.decompressobj()
    raise TaskFailure(f"the answer is encoded as {name[:40]!r}, which the request did not allow")


def _decompressed(decoder: Any, chunk: bytes, room: int) -> bytes:
    try:
        data: bytes = decoder.decompress(chunk, max(room, 1))
    except zlib.error as problem:
        raise Retryable(f"the compressed answer is damaged: {problem}") from None
    return data


def decoded(body: bytes, content_type: str) -> Json:
    """JSON where the type says JSON, text where it says text, base64 for other bytes; null for nothing."""
    kind, _, parameters = content_type.partition(";")
    kind = kind.strip().lower()
    if kind == "application/json" or kind.endswith("+json"):
        return _json(body) if body.strip() else None
    if kind.startswith("text/") or kind in _TEXTS or kind.endswith("+xml") or "charset=" in parameters.lower():
        return body.decode(_charset(parameters), errors="replace")
    if not kind:
        try:
            return body.decode()
        except UnicodeDecodeError:
            pass
    return base64.b64encode(body).decode() if body else ""


def _json(body: bytes) -> Json:
    try:
        return msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as problem:
        raise TaskFailure(f"the answer says it is JSON and is not: {problem}") from None


def _charset(parameters: str) -> str:
    for parameter in parameters.split(";"):
        name, _, value = parameter.partition("=")
        if name.strip().lower() == "charset":
            charset = value.strip().strip("\"'")
            try:
                "".encode(charset)
            except (LookupError, ValueError):
                return "utf-8"
            return charset
    return "utf-8"
