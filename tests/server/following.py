"""A reader of server-sent events, from outside: plain sockets, so that a test can be slow, go away and come again."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator, Mapping
from http.client import HTTPConnection
from typing import Any, NamedTuple, Self
from urllib.parse import urlsplit


class Message(NamedTuple):
    """One message; a comment has the event `:`."""

    event: str
    id: str | None
    data: Any


class Follower:
    """One open stream."""

    def __init__(
        self,
        url: str,
        key: str | None,
        path: str,
        headers: Mapping[str, str] | None = None,
        timeout_s: float = 20,
        *,
        takes_little: bool = False,
    ) -> None:
        """`takes_little`: few bytes wait on this side for being read, so that the server notices a slow reader."""
        self._connection = HTTPConnection(urlsplit(url).netloc, timeout=timeout_s)
        if takes_little:
            self._connection.sock = _narrow_socket(url, timeout_s)
        sent = {"Accept": "text/event-stream", **({"Authorization": f"Bearer {key}"} if key else {}), **(headers or {})}
        self._connection.request("GET", f"/api/v1{path}", headers=sent)
        self.response = self._connection.getresponse()
        self.status = self.response.status
        self.last_id: str | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self._connection.close()

    def messages(self) -> Iterator[Message]:
        """Messages until the stream ends."""
        fields: dict[str, list[str]] = {}
        for line in self.response:
            text = line.decode().rstrip("\r\n")
            if text.startswith(":"):
                yield Message(":", None, text)
            elif text:
                name, _, value = text.partition(": ")
                fields.setdefault(name, []).append(value)
            elif fields:
                id = fields["id"][0] if "id" in fields else None
                self.last_id = id or self.last_id
                yield Message(fields["event"][0], id, json.loads("\n".join(fields["data"])))
                fields = {}

    def until(self, event: str) -> list[Message]:
        """Messages up to the first of this event, without comments."""
        found = []
        for message in self.messages():
            if message.event != ":":
                found.append(message)
            if message.event == event:
                return found
        raise AssertionError(f"the stream ended before {event}: {found[-3:]}")


def _narrow_socket(url: str, timeout_s: float) -> socket.socket:
    opened = socket.socket()
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
    opened.settimeout(timeout_s)
    opened.connect((urlsplit(url).hostname, urlsplit(url).port))
    return opened
