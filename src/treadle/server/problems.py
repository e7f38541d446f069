"""Refusals: problem documents (RFC 9457) with a code, the culprit and a remedy (5.1).

Owns the status of each code, and what an exception of the engine means to a caller over HTTP. Promises that a problem
never tells a traceback, a path of this machine, SQL or a secret: only texts written for callers go out.
"""

from __future__ import annotations

from math import ceil
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from treadle.errors import (
    CommandRefused,
    DefinitionError,
    EngineStopped,
    EvaluationError,
    ExpressionError,
    ScenarioError,
    StoreConflict,
    StoreDamaged,
    StoreUnavailable,
    TreadleError,
)

MEDIA_TYPE = "application/problem+json"
RETRY_AFTER_S = 1
"""Told with every 503 and 429 that knows nothing better: most outages here end within a lease."""

TITLES = {
    "BAD_REQUEST": (400, "The request cannot be understood"),
    "UNAUTHENTICATED": (401, "Who asks is not known"),
    "FORBIDDEN": (403, "The caller may not do this"),
    "NOT_FOUND": (404, "There is no such thing"),
    "METHOD": (405, "This address does not take that method"),
    "INVALID_STATE": (409, "Not possible in its state now"),
    "DUPLICATE": (409, "It exists already"),
    "STALE_VERSION": (409, "Somebody else has changed it"),
    "IDEMPOTENCY_IN_PROGRESS": (409, "The first request with this key is still at work"),
    "LATE_RESULT": (410, "The work is over"),
    "GONE": (410, "It is not there any more"),
    "TOO_LARGE": (413, "The body is too large"),
    "MEDIA_TYPE": (415, "This media type is not read here"),
    "SCHEMA": (422, "The data does not fit the schema"),
    "IDEMPOTENCY_MISMATCH": (422, "The key was used with another body"),
    "RATE_LIMITED": (429, "Too many requests"),
    "INTERNAL": (500, "The service has failed"),
    "STORE_UNAVAILABLE": (503, "The store does not answer"),
    "DRAINING": (503, "The service is stopping"),
    "NO_ENGINE": (503, "No engine coordinates this store"),
}
"""Code → status and title. Codes of the kernel (2.14) that are not listed are refusals of a state: 409."""
OTHER = (409, "Refused")
INPUT_KINDS = frozenset({"LIMIT_EXCEEDED", "INVALID_COLLECTION", "INVALID_SPAWN_COUNT", "MERGE_TYPE"})
"""Kinds of the kernel that say that what was sent does not fit."""


class ProblemLine(Struct, omit_defaults=True):
    """One of several problems: of a definition, of a form's fields."""

    message: str
    code: str | None = None
    severity: str | None = None
    place: str | None = None
    line: int | None = None
    column: int | None = None
    hint: str | None = None


class ProblemDocument(Struct, omit_defaults=True):
    """A refusal. Nothing has changed."""

    type: Annotated[str, Meta(examples=["about:blank"])]
    title: str
    status: int
    code: Annotated[str, Meta(description="What kind of refusal it is; programs decide by it.")]
    detail: Annotated[str, Meta(description="Names the culprit.")]
    request_id: str
    remedy: Annotated[str | None, Meta(description="What to do about it.")] = None
    place: Annotated[str | None, Meta(description="Where in the request: a path such as `$.input.amount`.")] = None
    problems: list[ProblemLine] | None = None


class HttpProblem(TreadleError):
    """A refusal on its way to the caller."""

    def __init__(
        self,
        code: str,
        detail: str,
        *,
        status: int | None = None,
        remedy: str | None = None,
        place: str | None = None,
        problems: list[ProblemLine] | None = None,
        headers: dict[str, str] | None = None,
    ) -> None:
        super().__init__(f"{code}: {detail}")
        known, title = status_and_title(code)
        self.code = code
        self.status = status or known
        self.title = title
        self.detail = detail
        self.remedy = remedy
        self.place = place
        self.problems = problems
        self.headers = dict(headers or {})
        if self.status in (429, 503):
            self.headers.setdefault("retry-after", str(RETRY_AFTER_S))

    def document(self, request_id: str) -> ProblemDocument:
        return ProblemDocument(
            type="about:blank",
            title=self.title,
            status=self.status,
            code=self.code,
            detail=self.detail,
            request_id=request_id,
            remedy=self.remedy,
            place=self.place,
            problems=self.problems,
        )

    def bytes(self, request_id: str) -> bytes:
        return msgspec.json.encode(self.document(request_id))


def status_and_title(code: str) -> tuple[int, str]:
    """The status and title of a code."""
    if code in INPUT_KINDS:
        return TITLES["SCHEMA"]
    return TITLES.get(code, OTHER)


def not_found(what: str) -> HttpProblem:
    """The thing does not exist, or lies outside of what the caller may see: both look the same."""
    return HttpProblem("NOT_FOUND", f"there is no {what}")


def problem_of(raised: BaseException) -> HttpProblem | None:
    """What an exception of the engine means to a caller; None: a defect, of which the caller is told nothing."""
    if isinstance(raised, HttpProblem):
        return raised
    if isinstance(raised, CommandRefused):
        wait_ms = raised.retry_after_ms
        headers = {"retry-after": str(ceil(wait_ms / 1_000))} if wait_ms is not None else None
        return HttpProblem(raised.kind, raised.message, problems=lines_of(raised.problems) or None, headers=headers)
    if isinstance(raised, DefinitionError):
        return HttpProblem(
            "SCHEMA", f"the definition has problems: {len(raised.problems)}", problems=lines_of(raised.problems)
        )
    if isinstance(raised, StoreConflict):
        return HttpProblem(
            raised.kind if raised.kind in TITLES else "STALE_VERSION", "somebody else was first; read it again"
        )
    if isinstance(raised, StoreDamaged):
        return HttpProblem("INTERNAL", "what is stored of this run is damaged; `treadle fsck` lists it", status=500)
    if isinstance(raised, StoreUnavailable):
        return HttpProblem(
            "STORE_UNAVAILABLE", "the store cannot be read or written now", remedy="try again in a moment"
        )
    if isinstance(raised, EngineStopped):
        return HttpProblem(
            "NO_ENGINE", "no engine coordinates this store now", remedy="start `treadle engine` or `serve`"
        )
    if isinstance(raised, ExpressionError | EvaluationError | ScenarioError):
        return HttpProblem("BAD_REQUEST", str(raised))
    return None


def lines_of(problems: Any) -> list[ProblemLine]:
    """Problems of a definition, or of anything that is printable."""
    return [
        ProblemLine(
            message=getattr(problem, "message", None) or str(problem),
            code=getattr(problem, "code", None),
            severity=getattr(problem, "severity", None),
            place=getattr(problem, "at", None) or getattr(problem, "place", None) or getattr(problem, "field", None),
            line=getattr(problem, "line", None),
            column=getattr(problem, "column", None),
            hint=getattr(problem, "hint", None),
        )
        for problem in problems
    ]
