"""The door: every request that has a route comes through here, whatever the route (5.6). `application.py` has refused
unknown hosts and addresses before.

Owns the order in which a request is looked at: is the service there, who asks, may they, is it about something they may
see, was it answered before, can it be read. Only then a handler runs. Promises that a refusal has changed nothing and
says nothing of things the caller may not see; that an exception nobody expected becomes a 500 without a word of what it
was. Must not know a noun.
"""

from __future__ import annotations

import gzip
import re
import secrets
from random import Random
from typing import Any
from urllib.parse import unquote_to_bytes

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from treadle.errors import CommandRefused, EngineStopped
from treadle.runtime.surroundings.logs import logger
from treadle.server.audited import DRY_RUN, audit_event, is_audited
from treadle.server.bodies import read_body, read_query
from treadle.server.body_bytes import body_of
from treadle.server.call import HttpAnswer, HttpCall
from treadle.server.idempotency import answered_once
from treadle.server.origins import CSRF_HEADER, csrf_token, require_own_page
from treadle.server.problems import MEDIA_TYPE, HttpProblem, not_found, problem_of
from treadle.server.replies import Reply
from treadle.server.routes import Route
from treadle.server.service import Service, draining
from treadle.server.who import NOBODY, Who

log = logger("treadle.server")
_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{8,64}")
_NO_WEIGHT = re.compile(r"q\s*=\s*0(\.0*)?")
_ids = Random(secrets.randbits(128))
"""Draws ids of requests. They are names and no secrets: asking the operating system for each lets go of the
interpreter, which took 115 µs beside a busy store."""
GZIP_FROM = 1_024
"""Bytes from which an answer is compressed for those who ask for it: below that the header costs more."""
PRIVATE = "no-store"
CACHED = "private, no-cache"


async def enter(service: Service, route: Route, request: Request) -> Response:
    """Answers one request for a route, and has it written down."""
    if not route.is_write:
        return await _enter(service, route, request)
    service.write_began()
    try:
        return await _enter(service, route, request)
    finally:
        service.write_ended()


async def _enter(service: Service, route: Route, request: Request) -> Response:
    request_id = _request_id(request)
    state = request.state
    code = None
    try:
        call = await _admitted(service, route, request, request_id)
        answer = await _answered(call)
        response = answer.response or _response(call, answer)
    except ClientDisconnect:
        return Response(status_code=400)
    except Exception as raised:
        problem = problem_of(raised)
        if isinstance(raised, EngineStopped) and service.draining.is_set():
            problem = draining()
        if problem is None:
            log.error("a request failed", route=route.full_path, request=request_id, exc_info=raised)
            problem = HttpProblem("INTERNAL", "the service could not carry out the request; its log says why")
        code = problem.code
        state.is_audited = False  # what a handler wanted to write with its effect was not written
        response = refusal(problem, request_id)
    if not state.is_audited and is_audited(route, response.status_code, code):
        status = response.status_code
        event = audit_event(route, request, service.settings, request_id, status=status, code=code, about=state.about)
        if route.is_write and status < 400:
            await service.trail.keep(event, service.now())
        else:
            service.trail.add(event, service.now())
    response.raw_headers.append((b"x-request-id", request_id.encode()))
    return response


def refusal(problem: HttpProblem, request_id: str) -> Response:
    """A problem document as a response."""
    headers = {"cache-control": PRIVATE, **problem.headers}
    return Reply(problem.bytes(request_id), problem.status, headers, MEDIA_TYPE)


def new_request_id() -> str:
    """A name for a request."""
    return f"{_ids.getrandbits(64):016x}"


def _request_id(request: Request) -> str:
    """The caller's own id of the request if it has a harmless one, so that both logs can be compared."""
    given = request.headers.get("x-request-id", "")
    return given if given and _REQUEST_ID.fullmatch(given) else new_request_id()


async def _admitted(service: Service, route: Route, request: Request, request_id: str) -> HttpCall:
    """The call, if its caller may make it."""
    if not (service.is_open or route.is_probe):
        await service.open()
    if not route.access.open or route.is_write:
        service.refuse_if_draining()
    if not service.limits.is_off:
        service.limits.count_address(request)
    who = NOBODY
    if not route.access.open:
        who = service.callers.recognised(request) or await service.authenticate(request)
    request.state.who = who
    if not service.limits.is_off:
        service.limits.count_caller(who)
    if not route.access.admits(who.roles):
        raise HttpProblem(
            "FORBIDDEN", f"this needs the role {route.access.words}", remedy="ask an admin for such a key"
        )
    if who.session is not None and route.is_write:
        expected = csrf_token(service.secret("csrf"), who.session)
        require_own_page(request, service.settings, expected, request.headers.get(CSRF_HEADER, ""))
    path = path_of(request, route) if route.parameters else {}
    call = HttpCall(service, route, request, who, path, request_id)
    if who.workflows is not None:
        await _within_patterns(call, who)
    if route.is_write and not route.reads_body_itself:
        call.raw = await body_of(request, route, service.settings)
    return call


async def _handled(call: HttpCall) -> HttpAnswer:
    """The handler's answer, once the request was understood."""
    route, request = call.route, call.request
    if route.reads_body_itself:
        judged: HttpAnswer = await route.handler(call)
        return judged
    if not route.takes_any_query and (route.query is not None or request.scope["query_string"]):
        pairs = request.query_params.multi_items() if request.scope["query_string"] else []
        call.query = read_query(pairs, route.query)
    if call.raw:
        _require_media_type(request, route)
    if route.is_write and route.body is None and call.raw.strip() not in (b"", b"{}"):
        raise HttpProblem("BAD_REQUEST", "this takes no body", place="$")
    if route.is_write and route.body not in (None, bytes):
        call.body = read_body(call.raw, route.body)
        if getattr(call.body, "dry_run", False):
            request.state.about = DRY_RUN
    answer: HttpAnswer = await route.handler(call)
    return answer


def path_of(request: Request, route: Route) -> dict[str, str]:
    """The path's parameters. Paths are matched before they are decoded, so that `%2F` stays inside its segment."""
    found: dict[str, str] = {}
    for name in route.parameters:
        try:
            text = unquote_to_bytes(request.path_params[name]).decode()
        except UnicodeDecodeError:
            raise not_found(f"{name} with such a name") from None
        if not text or len(text) > 1_000 or not text.isprintable():
            raise not_found(f"{name} with such a name")
        found[name] = text
    return found


async def _within_patterns(call: HttpCall, who: Who) -> None:
    """Refuses what lies outside of the workflows a key is for: as if it were not there."""
    about = call.route.about
    if about == "none" and call.route.noun not in ("service", "session"):
        raise HttpProblem("FORBIDDEN", "this key is for some workflows only, and this is about none")
    if about == "workflow":
        call.require_workflow(call.path["name"])
    elif about == "run":
        missing = not_found(f"run {call.path['run']!r}")
        try:
            row = await call.client.run(call.path["run"]).info()
        except CommandRefused:
            raise missing from None
        if not who.sees(row.workflow):
            raise missing


def _require_media_type(request: Request, route: Route) -> None:
    header = request.headers.get("content-type", "")
    if header in route.media_types or "*/*" in route.media_types:
        return
    given = header.partition(";")[0].strip().lower()
    if given not in route.media_types:
        raise HttpProblem(
            "MEDIA_TYPE",
            f"the body is {given or 'of no media type'}",
            remedy=f"send Content-Type: {' or '.join(route.media_types)}",
        )


async def _answered(call: HttpCall) -> HttpAnswer:
    if call.route.method == "POST" and not call.route.access.open and "idempotency-key" in call.request.headers:
        return await answered_once(call, _handled)
    return await _handled(call)


def _response(call: HttpCall, answer: HttpAnswer) -> Response:
    headers = {name.lower(): text for name, text in answer.headers.items()}
    if headers.get("location", "").startswith("/"):
        headers["location"] = call.url(headers["location"])
    if answer.etag is not None:
        headers["etag"] = f'"{answer.etag}"'
        headers.setdefault("cache-control", CACHED)
        if call.route.method == "GET" and matches(call.request.headers.get("if-none-match"), answer.etag):
            return Reply(b"", 304, headers)
    headers.setdefault("cache-control", PRIVATE)
    body: Any = answer.encoded() if answer.status not in (204, 304) else b""
    ranged = "accept-ranges" in headers  # a range is one of the bytes as they are
    if len(body) >= GZIP_FROM and not ranged and _takes_gzip(call.request.headers.get("accept-encoding", "")):
        body = gzip.compress(body, 1, mtime=0)
        headers["content-encoding"] = "gzip"
        headers["vary"] = "accept-encoding"
    media_type = answer.media_type or call.route.answer_type
    return Reply(body, answer.status, headers, media_type if answer.status not in (204, 304) else None)


def _takes_gzip(accepted: str) -> bool:
    """Whether an Accept-Encoding header asks for gzip. A weight of zero says that it must not be sent."""
    for part in accepted.lower().split(","):
        name, _, weight = part.partition(";")
        if name.strip() == "gzip":
            return not _NO_WEIGHT.fullmatch(weight.strip())
    return False


def matches(header: str | None, etag: str) -> bool:
    """Whether an If-Match or If-None-Match header names this tag."""
    if header is None:
        return False
    names = [name.strip().removeprefix("W/").strip('"') for name in header.split(",")]
    return "*" in names or etag in names
