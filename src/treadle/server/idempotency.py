"""Idempotency keys: a POST that is sent again gives its first answer again (5.1).

Owns the name of a request, made of caller, key, method, path and query, and the note that holds its first answer.

Theory of operation
    The effect and its mark are written together: a command to a run is sent under the request's name, and the store
    keeps the decision's answer under that name in the transaction of the decision; documents are written together with
    the note. So if a server dies after the effect and before its answer, the request sent again finds the mark, does
    nothing and is answered from what is there. A server that dies before the effect leaves no mark. The note with the
    whole answer is written before the answer goes out.
"""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

from treadle.errors import StoreConflict, TreadleError
from treadle.runtime.service.records import Changes, Note
from treadle.server.call import HttpAnswer, HttpCall, note_of, noted_body
from treadle.server.problems import HttpProblem, problem_of

KEY_MAX = 200
NOT_KEPT = frozenset({401, 403, 408, 413, 429})
"""Refusals that say nothing about the request itself: it may be sent again and be answered otherwise."""
NO_BODY = b"{}"
"""No body means an empty object (5.1): a client may send either when it asks again."""
KEPT_MS = 24 * 3_600_000
DROP_EVERY_MS = 3_600_000
"""How often a node drops answers that need not be kept any longer, so that they do not pile up."""
REPLAYED = "idempotency-replayed"


async def answered_once(call: HttpCall, answered: Callable[[HttpCall], Awaitable[HttpAnswer]]) -> HttpAnswer:
    """The answer to a request, or the one that it got before. A refusal to read the request is an answer, too."""
    key = call.request.headers["idempotency-key"]
    if not 1 <= len(key) <= KEY_MAX or not key.isprintable():
        raise HttpProblem(
            "BAD_REQUEST", f"Idempotency-Key needs 1 to {KEY_MAX} printable characters", place="Idempotency-Key"
        )
    name = _name(call, key)
    at_work: set[str] = call.service.parts.setdefault("idempotency", _AtWork())
    if name in at_work:
        raise HttpProblem("IDEMPOTENCY_IN_PROGRESS", "the first request with this Idempotency-Key is still at work")
    at_work.add(name)
    try:
        return await _once(call, name, answered)
    finally:
        at_work.discard(name)
        await _drop_old(call)


async def _drop_old(call: HttpCall) -> None:
    now = call.now()
    if now - call.service.parts.get("notes dropped", -DROP_EVERY_MS) >= DROP_EVERY_MS:
        call.service.parts["notes dropped"] = now
        with suppress(TreadleError):  # the next hour drops them
            await call.client.records.drop_notes(now - KEPT_MS)


class _AtWork(set[str]):
    """Names of requests that are being answered in this process."""


async def _once(call: HttpCall, name: str, answered: Callable[[HttpCall], Awaitable[HttpAnswer]]) -> HttpAnswer:
    fingerprint = hashlib.sha256(call.raw or NO_BODY).hexdigest()
    records = call.client.records
    known = await records.note(name)
    if known is not None and call.now() - known.at < KEPT_MS:
        return _again(call, known, fingerprint)
    call.idempotency = name
    call.idempotency_fingerprint = fingerprint
    try:
        with call.client.once(name, fingerprint) as once:
            answer = await answered(call)
        if once.replayed:  # an earlier request had its effect, and a server died before it wrote the answer down
            answer.headers = {**answer.headers, REPLAYED: "true"}
        problem = None
    except Exception as raised:
        problem = problem_of(raised)
        if problem is None or problem.status >= 500 or problem.status in NOT_KEPT:
            raise
        answer = HttpAnswer(problem.document(call.request_id), problem.status, dict(problem.headers))
        call.is_noted = False  # the handler's note was part of a write that did not happen
    if answer.response is None and not call.is_noted:
        note = note_of(name, fingerprint, answer, call.now())
        forgotten = [name] if known is not None else []
        try:
            await records.write(Changes(forgotten=forgotten, notes=[note]))
        except StoreConflict:  # another node has answered the same request meanwhile
            first = await records.note(name)
            if first is not None:
                return _again(call, first, fingerprint)
    if problem is not None:
        raise problem
    return answer


def _again(call: HttpCall, note: Note, fingerprint: str) -> HttpAnswer:
    kept: dict[str, Any] = note.body
    if kept["fingerprint"] != fingerprint:
        raise HttpProblem("IDEMPOTENCY_MISMATCH", "this Idempotency-Key was used before, with another body")
    is_refusal = kept["status"] >= 400
    return HttpAnswer(
        noted_body(note, call.service.sealing),
        kept["status"],
        {**kept["headers"], REPLAYED: "true"},
        "application/problem+json" if is_refusal else None,
    )


def _name(call: HttpCall, key: str) -> str:
    request = call.request
    parts = (call.who.id, request.method, request.scope["path"], request.url.query, key)
    return "post:" + hashlib.sha256("\0".join(parts).encode()).hexdigest()
