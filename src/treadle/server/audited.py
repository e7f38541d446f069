"""The entry of a request in the audit: who, what, from where, with which outcome.

Owns which requests get one: every write, every refusal of a right, and routes that say so. Promises that a proof in a
path (the token of a link or a callback) is masked; the query is never looked at, and of the body only whether it asks
for a dry run."""

from __future__ import annotations

from starlette.requests import Request

from treadle.runtime.access.audit import AuditEvent, shortened
from treadle.runtime.access.keys import prefix_of
from treadle.server.addresses import address_of
from treadle.server.routes import Route
from treadle.server.settings import ServerSettings
from treadle.server.who import NOBODY, Who

MASKED = frozenset({"token"})
"""Path parameters that are proofs themselves."""
RIGHTS = frozenset({401, 403})
DRY_RUN = "dry run"
"""What a request was about that changed nothing: it asked what would happen."""


def is_audited(route: Route, status: int, code: str | None) -> bool:
    """Whether the audit gets an entry of a request with this outcome."""
    if code == "DRAINING":
        return False
    if status in RIGHTS or (code == "RATE_LIMITED" and route.is_write):
        return True
    return route.is_write if route.audited is None else route.audited


def audit_event(
    route: Route,
    request: Request,
    settings: ServerSettings,
    request_id: str,
    *,
    status: int,
    code: str | None = None,
    about: str | None = None,
) -> AuditEvent:
    """What the audit says of a request."""
    who: Who = getattr(request.state, "who", NOBODY)
    return AuditEvent(
        who=who.id,
        name=who.name,
        user=who.user,
        action=route.action,
        path=shortened(_path(route, request.path_params)) if route.parameters else route.full_path,
        address=address_of(request, settings),
        status=status,
        code=code,
        request=request_id,
        about=about,
    )


def _path(route: Route, texts: dict[str, str]) -> str:
    """The path as it was asked for, still encoded, with proofs masked."""
    segments = []
    for segment in route.full_path.split("/"):
        name = segment[1:-1]
        given = segment.startswith("{")
        segments.append(_masked(name, texts.get(name, segment)) if given else segment)
    return "/".join(segments)


def _masked(name: str, text: str) -> str:
    """A part of a path, without a proof: a token, or a key that somebody has put where its id belongs."""
    return "***" if name in MASKED or prefix_of(text) is not None else text
