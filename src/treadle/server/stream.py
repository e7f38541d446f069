"""Streams of events as server-sent events (5.3): of one run, of all runs, of gates.

Owns the messages and when a stream ends. Every message of an event has the position to continue behind it as its id. A
stream reads the store or the newest events in memory at the pace of its reader; nothing is kept for a reader that does
not read. Must not decide what happened: it sends what is committed.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from functools import partial
from time import monotonic
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct
from sse_starlette.event import ServerSentEvent
from sse_starlette.sse import EventSourceResponse, SendTimeoutError
from starlette.types import Receive, Scope, Send

from treadle.errors import CommandRefused, EngineStopped, PositionGone, StoreUnavailable
from treadle.model.event_rows import event_row
from treadle.model.references import spellings_of
from treadle.model.states import RUN_ENDED
from treadle.runtime.run import Run
from treadle.runtime.surroundings.logs import logger
from treadle.server.call import HttpAnswer, HttpCall
from treadle.server.followers import FIRST, Followers, Stop, first_of, followers_of, next_limit
from treadle.server.newest_events import StreamFilter, pieces
from treadle.server.problems import HttpProblem
from treadle.server.routes import VIEWER, Route

log = logger("treadle.server")
LOOK_FIRST_S, LOOK_LAST_S = 1.0, 10.0
"""How often a stream looks at a run of another process of which it hears nothing: less and less often, so that a
thousand streams cost a hundred looks a second. News come at once; only if they are lost a look finds the event."""
OVER = (PositionGone, EngineStopped, StoreUnavailable, CommandRefused)
"""A stream that meets one of them ends: the reader comes again, and is told why it cannot continue, or continues."""

Messages = AsyncIterator[bytes]
"""One or more messages at a time: each piece is one write to the reader's connection."""


class StreamQuery(Struct):
    """Which events of all runs, and from where on."""

    workflow: str | None = None
    type: list[str] = []
    entity: Annotated[str, Meta(description="TYPE/ID")] | None = None
    after: Annotated[str, Meta(description="A position; 0 is the beginning. Without one: from now on.")] | None = None


class GateStreamQuery(Struct):
    """From where on."""

    after: str | None = None


class RunStreamQuery(Struct):
    """From where on."""

    after: Annotated[int, Meta(ge=0, description="A sequence number.")] = 0


async def run_stream(call: HttpCall) -> HttpAnswer:
    run = call.client.run(call.path["run"])
    info = await run.info()
    given = call.request.headers.get("last-event-id")
    after: int = call.query.after
    if given is not None:
        if not (given.isascii() and given.isdigit() and len(given) < 16):
            raise HttpProblem("BAD_REQUEST", "Last-Event-ID is no sequence number of a run", place="Last-Event-ID")
        after = int(given)
    if after and not await _is_kept(run, after):
        raise HttpProblem("GONE", "events behind this position have been forgotten", remedy="begin anew: after=0")
    if after > info.seq:
        ahead = f"run {run.id} has {info.seq} events: this position is ahead of them; was the store restored?"
        raise HttpProblem("GONE", ahead, remedy="begin anew: after=0")
    after_end_s = call.service.settings.stream_after_end_s
    return _streaming(call, lambda followers, stop: _of_run(run, after, followers, stop, after_end_s))


async def _is_kept(run: Run, after: int) -> bool:
    """Whether the next event behind a position is kept, or was not written yet."""
    following = await run.history(after, 1)
    return not following or following[0].seq == after + 1


async def _of_run(run: Run, after: int, followers: Followers, stop: Stop, after_end_s: float) -> Messages:
    with run.watch() as watch:
        ended_at: int | None = None
        closes, limit = 0.0, FIRST
        while not stop.woken.is_set():
            async with followers.pace.turn():
                batch = await followers.pace.read(watch.look(partial(run.history, after, limit)))
                if after and batch and batch[0].seq != after + 1:  # its history was trimmed since it was read
                    raise PositionGone("events behind this position have been forgotten")
                messages = [
                    _message(msgspec.json.encode(event_row(one)).decode(), one.type, str(one.seq)) for one in batch
                ]
            size = sum(map(len, messages))
            for piece in pieces(messages):
                followers.pace.sent(len(piece))
                yield piece
            if batch:
                after = batch[-1].seq
            is_more, limit = len(batch) == limit, next_limit(len(batch), size)
            watch.look_again_s = LOOK_FIRST_S
            while not is_more and not stop.woken.is_set():
                info = await watch.look(run.info)
                if info.seq > after:
                    break
                if info.status in RUN_ENDED and ended_at != after:
                    ended_at, closes = after, monotonic() + after_end_s
                    yield _message(msgspec.json.encode({"status": info.status, "seq": after}).decode(), "end")
                left = closes - monotonic() if ended_at is not None and info.status in RUN_ENDED else None
                if left is not None and left <= 0:
                    return
                await first_of(watch.news(), stop.woken.wait(), timeout_s=left)
                watch.look_again_s = min(watch.look_again_s * 2, LOOK_LAST_S)


async def all_stream(call: HttpCall) -> HttpAnswer:
    query: StreamQuery = call.query
    entity = _spellings(query.entity) if query.entity is not None else None
    return await _followed(
        call,
        StreamFilter(
            seen=call.who.workflows,
            workflow=query.workflow,
            types=frozenset(query.type),
            entity=entity,
        ),
    )


def _spellings(address: str) -> tuple[str, ...]:
    """How runs name the entity of an address."""
    type, _, id = address.partition("/")
    if not (type and id):
        raise HttpProblem("BAD_REQUEST", f"an entity is named TYPE/ID, as order/42; got {address!r}", place="entity")
    return spellings_of(address)


async def gates_stream(call: HttpCall) -> HttpAnswer:
    return await _followed(call, StreamFilter(seen=call.who.workflows, family="gate."))


async def _followed(call: HttpCall, wanted: StreamFilter) -> HttpAnswer:
    given = call.request.headers.get("last-event-id", call.query.after)
    followers = followers_of(call.service)
    position: str | None = None if given == "0" else given
    past: str | None = None
    if given is None:
        position, past = await followers.now()
    try:
        await followers.check(position)
    except PositionGone as gone:
        raise HttpProblem("GONE", str(gone), remedy="begin anew: after=0, or without a position") from None
    except ValueError as wrong:
        raise HttpProblem("BAD_REQUEST", str(wrong), place="after") from None
    return _streaming(call, lambda followers, stop: _of_all(position, past, wanted, followers, stop))


async def _of_all(
    position: str | None, past: str | None, wanted: StreamFilter, followers: Followers, stop: Stop
) -> Messages:
    """Messages of the events behind a position, without those that were `past` (a position, too) when it began."""
    limit = FIRST
    async with followers.reading():
        while not stop.woken.is_set():
            news = followers.news
            portion = await followers.portion(position, wanted, limit, past)
            if portion is None:
                limit = FIRST
                await news.wait()
                continue
            limit = next_limit(portion.count, portion.size)
            position = portion.position
            if past is not None and not followers.is_past(position, past):
                past = None  # events come in the order of their positions
            for piece in portion.pieces:
                await followers.pace.sending(len(piece))
                yield piece


class EventStream(EventSourceResponse):
    """A stream that cuts off a reader who takes nothing: it would not hear a word of it."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        except* SendTimeoutError:  # of a message, of a comment line, or of both at once
            log.warning("a stream is cut off: its reader takes nothing", path=scope["path"])


def _streaming(call: HttpCall, messages: Callable[[Followers, Stop], Messages]) -> HttpAnswer:
    settings = call.service.settings
    response = EventStream(
        _until_over(call, messages),
        ping=settings.stream_ping_s,
        send_timeout=settings.stream_give_up_s,
        headers={"cache-control": "no-store", "x-accel-buffering": "no"},
    )
    return HttpAnswer(response=response)


async def _until_over(call: HttpCall, messages: Callable[[Followers, Stop], Messages]) -> Messages:
    """The messages of a stream, until it ends, its reader is too slow or loses its right, or the service stops."""
    followers = followers_of(call.service)
    async with followers.stream(call.who) as stop:
        made = messages(followers, stop)
        try:
            async for message in made:
                if stop.woken.is_set():
                    break
                began = monotonic()
                yield message
                if monotonic() - began > call.service.settings.stream_slow_s:
                    yield _message('{"reason": "too slow to follow: continue behind the last id"}', "slow")
                    return
        except OVER:
            pass
        finally:
            await made.aclose()  # type: ignore[attr-defined]
        if call.service.draining.is_set() and not stop.has_lost_right:
            yield _message('{"reason": "the service is stopping: continue at another node"}', "drain")


def _message(content: str, event: str, id: str | None = None) -> bytes:
    return ServerSentEvent(data=content, event=event, id=id).encode()


def _stream(path: str, handler: Any, summary: str, query: Any, about: Any) -> Route:
    return Route(
        method="GET",
        path=path,
        handler=handler,
        access=VIEWER,
        about=about,
        noun="streams",
        summary=summary,
        query=query,
        answers={200: bytes},
        answer_type="text/event-stream",
        reads_headers=("Last-Event-ID",),
        problems=("NOT_FOUND", "GONE") if about == "run" else ("GONE",),
        streams=True,
    )


ROUTES = (
    _stream("/runs/{run}/stream", run_stream, "Follow a run", RunStreamQuery, "run"),
    _stream("/stream", all_stream, "Follow all runs", StreamQuery, "handler"),
    _stream("/gates/stream", gates_stream, "Follow all gates", GateStreamQuery, "handler"),
)
