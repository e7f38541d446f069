"""A request as the door and the handlers see it: Starlette's, with a short way to what is asked of every one.

Owns how headers are looked up and what the door notes about a request. Starlette looks for a header by walking through
all of them, makes the address anew each time it is asked for, and keeps notes in a dictionary behind two methods: a
start of a run asks for eight headers, twice for the address and five times for notes, which took a tenth of it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from starlette.datastructures import Address
from starlette.requests import Request
from starlette.types import Receive, Scope

from treadle.server.who import NOBODY, Who


class RequestHeaders(dict[str, str]):
    """Headers by their names in small letters. Of a header that is there twice the first counts; `items` and `getlist`
    have all of them."""

    def __init__(self, raw: Iterable[tuple[bytes, bytes]]) -> None:
        self._all = all = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in raw]
        super().__init__(all)
        if len(self) < len(all):
            self.update(reversed(all))

    def items(self) -> Any:
        return self._all

    def getlist(self, name: str) -> list[str]:
        """Every value of a header."""
        return [value for key, value in self._all if key == name]


class RequestNotes:
    """What the door notes about a request."""

    __slots__ = ("about", "is_audited", "who")

    def __init__(self) -> None:
        self.who: Who = NOBODY
        self.about: str | None = None
        """What the request is about, for the audit, where its path does not say it."""
        self.is_audited = False
        """Whether the handler has written the entry of the audit."""


class ServiceRequest(Request):
    """See the module's docstring. What is named here is an attribute, where Starlette has a property."""

    headers: Any = None
    state: Any = None
    client: Any = None
    method: Any = None
    receive: Any = None

    def __init__(self, scope: Scope, receive: Receive) -> None:
        self.scope = scope
        self.receive = self._receive = receive
        self._is_disconnected = self._stream_consumed = False
        self._form = None
        self.headers = RequestHeaders(scope["headers"])
        self.method = scope["method"]
        self.state = RequestNotes()
        given = scope.get("client")
        self.client = Address(*given) if given is not None else None
