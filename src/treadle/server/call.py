"""One request on its way through the service: who asks, what for, and the answer.

Owns what handlers see. A handler gets a `HttpCall` whose caller was authenticated and authorised, whose body and query
were read and checked, and gives an `HttpAnswer`."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from treadle.runtime.access.audit import entry_of
from treadle.runtime.service.records import Entry, Note
from treadle.server.audited import audit_event
from treadle.server.cursors import read_cursor, write_cursor
from treadle.server.problems import HttpProblem, not_found
from treadle.server.routes import Route
from treadle.server.service import Service
from treadle.server.who import Who

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from treadle.runtime.access.sealing import Sealing
    from treadle.runtime.client import Client


class HttpAnswer(Struct):
    """The answer of a handler: a Struct or plain JSON value as the body, `bytes` as they are, or a ready response."""

    body: Any = None
    status: int = 200
    headers: dict[str, str] = {}
    media_type: str | None = None
    """Of bytes; None: the route's."""
    etag: str | None = None
    """The answer may be cached by its reader under this tag, and revalidated."""
    response: Response | None = None
    """A response that was made already: a stream."""

    def encoded(self) -> bytes:
        """The body as bytes."""
        if isinstance(self.body, bytes):
            return self.body
        if self.status == 204:
            return b""
        return msgspec.json.encode(self.body)


def created(body: Any, location: str) -> HttpAnswer:
    """201, with the address of what was made (below the service's own prefix)."""
    return HttpAnswer(body, 201, {"location": location})


NO_CONTENT = 204


class ListPage(Struct):
    """A page of a list."""

    items: list[Any]
    next: str | None = None


def note_of(name: str, fingerprint: str, answer: HttpAnswer, at: int, sealing: Sealing | None = None) -> Note:
    """The note that gives an answer again, for the request of this name; sealed if the answer tells a secret."""
    content = base64.b64encode(answer.encoded()).decode()
    body = {
        "fingerprint": fingerprint,
        "status": answer.status,
        "headers": answer.headers,
        **({"sealed": sealing.seal(name, content)} if sealing is not None else {"body": content}),
    }
    return Note(name, body, at)


def noted_body(note: Note, sealing: Sealing) -> bytes:
    """The body of a noted answer. Raises SealBroken."""
    sealed = note.body.get("sealed")
    return base64.b64decode(sealing.open(note.key, sealed) if sealed is not None else note.body["body"])


class HttpCall:
    """See the module's docstring."""

    def __init__(
        self, service: Service, route: Route, request: Request, who: Who, path: Mapping[str, str], request_id: str
    ) -> None:
        self.service = service
        self.route = route
        self.request = request
        self.who = who
        self.path = path
        self.request_id = request_id
        self.query: Any = None
        self.body: Any = None
        self.raw: bytes = b""
        """The body as it came, for signatures."""
        self.idempotency: str | None = None
        """Names this request in the store if it has an Idempotency-Key: a command sent under it counts once."""
        self.idempotency_fingerprint = ""
        self.is_noted = False
        """Whether the handler has kept its own answer, together with its effect."""

    @property
    def client(self) -> Client:
        """The face of the project's store."""
        return self.service.client

    def now(self) -> int:
        return self.service.now()

    def notes(self, answer: HttpAnswer, *, sealed: bool = False) -> list[Note]:
        """What a handler that writes documents writes with them, so that this very answer is given again if the request
        is sent again: `records.write(Changes(documents=…, notes=call.notes(answer)))`. `sealed`: the answer tells a
        secret."""
        if self.idempotency is None:
            return []
        self.is_noted = True
        sealing = self.service.sealing if sealed else None
        return [note_of(self.idempotency, self.idempotency_fingerprint, answer, self.now(), sealing)]

    def audited(self, status: int, about: str | None = None) -> Entry:
        """The entry of this request in the audit, for a handler that writes it together with its effect, in one
        transaction. The door adds no other, unless the handler says that it could not (`note_audited`)."""
        self.request.state.is_audited = True
        settings = self.service.settings
        event = audit_event(self.route, self.request, settings, self.request_id, status=status, about=about)
        return entry_of(event, self.now())

    def note_audited(self, is_written: bool) -> None:
        """Says whether the entry of `audited` was written."""
        self.request.state.is_audited = is_written

    def sees(self, workflow: str) -> bool:
        """Whether the caller's key is for this workflow."""
        return self.who.sees(workflow)

    def require_workflow(self, workflow: str) -> None:
        """Raises NOT_FOUND for a workflow outside of the caller's patterns: as if it did not exist."""
        if not self.sees(workflow):
            raise not_found(f"workflow {workflow!r}")

    def number(self, name: str) -> int:
        """A path parameter that is a number; NOT_FOUND otherwise: nothing has such an address."""
        text = self.path[name]
        if not (text.isascii() and text.isdigit() and len(text) < 16):
            raise not_found(f"{name} {text!r}")
        return int(text)

    def url(self, path: str) -> str:
        """The address of a path of the API, below the prefix the application is mounted under."""
        return f"{self.request.scope.get('root_path', '')}{path}"

    def cursor(self) -> Any:
        """Where the page begins, out of `?cursor=`; None: at the beginning. Refuses one made for other filters."""
        text = getattr(self.query, "cursor", None)
        return None if text is None else read_cursor(self.service.secret("cursor"), text, self._filters())

    def next_cursor(self, value: Any) -> str:
        """The cursor of the page after `value`."""
        return write_cursor(self.service.secret("cursor"), value, self._filters())

    def _filters(self) -> bytes:
        """What a cursor is bound to: the path and all filters; not the cursor, the page's size or the patience."""
        given = sorted(
            (k, v) for k, v in self.request.query_params.multi_items() if k not in ("cursor", "limit", "wait_ms")
        )
        return msgspec.json.encode([self.request.url.path, given, self.who.workflows])

    def refuse_past_wait(self, wait_ms: int) -> None:
        """Refuses to wait for longer than the service allows."""
        longest = self.service.settings.wait_max_ms
        if not 0 <= wait_ms <= longest:
            raise HttpProblem("BAD_REQUEST", f"wait_ms is {wait_ms}", place="wait_ms", remedy=f"0 to {longest}")
