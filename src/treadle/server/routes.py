"""One route as data: where it is, who may use it, what it takes and what it answers.

Owns the roles and what each may, and the form of a route. Promises that a route without roles cannot be made. The door
(`door.py`) enforces what is declared here, and `openapi.py` describes it, so that both always agree.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from enum import StrEnum
from functools import cached_property
from typing import Any, Literal

from msgspec import Struct

Method = Literal["GET", "POST", "PUT", "PATCH", "DELETE"]
About = Literal["run", "workflow", "handler", "none"]


class Role(StrEnum):
    """What a key or a session may do (5.6)."""

    VIEWER = "viewer"
    OPERATOR = "operator"
    AUTHOR = "author"
    APPROVER = "approver"
    WORKER = "worker"
    ADMIN = "admin"


READERS = frozenset({Role.VIEWER, Role.OPERATOR, Role.AUTHOR, Role.APPROVER})
"""Roles that may what a viewer may. A worker may only its own routes."""


class RouteAccess(Struct, frozen=True):
    """Who may use a route: the named roles and admin; or everybody who has a token, signature or nothing at all."""

    roles: frozenset[Role] = frozenset()
    open: bool = False

    def admits(self, roles: frozenset[Role]) -> bool:
        """Whether a caller with these roles may use the route."""
        return self.open or Role.ADMIN in roles or not self.roles.isdisjoint(roles)

    @property
    def words(self) -> str:
        """The roles in words, least first."""
        if self.open:
            return "open"
        least = [Role.VIEWER] if self.roles >= READERS else []
        named = least + [role for role in Role if role in self.roles and not (least and role in READERS)]
        return " or ".join(str(role) for role in named or [Role.ADMIN])


def any_of(*roles: Role) -> RouteAccess:
    """A route for these roles. A viewer's route is for everybody who may read."""
    named = set(roles)
    if Role.VIEWER in named:
        named |= READERS
    return RouteAccess(frozenset(named))


OPEN = RouteAccess(open=True)
"""For everybody: the path or the body carries its own proof, or nothing is told."""
VIEWER = any_of(Role.VIEWER)
OPERATOR = any_of(Role.OPERATOR)
AUTHOR = any_of(Role.AUTHOR)
APPROVER = any_of(Role.APPROVER)
WORKER = any_of(Role.WORKER)
ADMIN = any_of(Role.ADMIN)
ANY_KEY = any_of(Role.VIEWER, Role.WORKER)

Handler = Callable[[Any], Awaitable[Any]]
"""Takes an `HttpCall` and gives an `HttpAnswer` (`call.py`, which knows routes)."""


class Route(Struct, frozen=True, kw_only=True, eq=False, dict=True):
    """One route. Its answers may be Structs (JSON), `bytes` (any media type) or None (no body)."""

    method: Method
    path: str
    """Below /api/v1, unless `root`. Each `{name}` is one segment, percent-decoded after the path was split."""
    handler: Handler
    access: RouteAccess
    about: About
    """How the route relates to a workflow, for keys that are limited to some workflows: `run` and `workflow` are
    checked by the door, by the path's `{run}` or `{name}`; `handler`: the handler asks `call.sees`; `none`: it is about
    no workflow, and such keys get 403."""
    summary: str
    noun: str
    """The heading under which the description lists it."""
    body: Any = None
    """The Struct that its JSON body is read as; `bytes`: the handler reads the body itself."""
    query: Any = None
    """The Struct of its query parameters. A field of a list type may be repeated."""
    takes_any_query: bool = False
    """Query parameters are the sender's business: any may be there."""
    answers: dict[int, Any]
    """Status → the type of its body."""
    problems: tuple[str, ...] = ()
    """Codes of refusals beyond those that every route has."""
    root: bool = False
    """The path is not below /api/v1 (such routes are for other systems and for links)."""
    media_types: tuple[str, ...] = ("application/json",)
    """Media types of the request's body; `*/*`: a body of any other is read, too."""
    reads_body_itself: bool = False
    """The handler reads the query and the body, after checks of its own; `body` only describes it."""
    answer_type: str = "application/json"
    """Media type of the answers."""
    other_types: tuple[str, ...] = ()
    """Further media types of the answers that succeed; `*/*`: the type that was kept with the bytes."""
    reads_headers: tuple[str, ...] = ()
    """Names of headers that change what it answers, beside those that every route reads; `Name: value`: only this
    value is read."""
    makes: dict[str, str] = {}
    """Parameter of a path → the field of the answer that holds it: the addresses of what it has made."""
    body_max: int | None = None
    """Bytes of its body, where the general limit does not hold."""
    is_upload: bool = False
    """Its body is an artifact, with the limit of artifacts."""
    description: str = ""
    streams: bool = False
    """The answer may be a stream of server-sent events."""
    is_probe: bool = False
    """Answered although the store may never have been read."""
    audited: bool | None = None
    """Whether the audit gets an entry; None: if it writes."""

    @cached_property
    def full_path(self) -> str:
        return self.path if self.root else f"/api/v1{self.path}"

    @cached_property
    def action(self) -> str:
        """The route as the audit names it."""
        return f"{self.method} {self.full_path}"

    @cached_property
    def parameters(self) -> list[str]:
        """Names of the path's parameters, in order."""
        return [part[1:-1] for part in self.path.split("/") if part.startswith("{")]

    @cached_property
    def is_write(self) -> bool:
        return self.method != "GET"
