"""Rows that all stores make in the same way: a run's shard, its row, the row of a gate, a request with its answer.

Owns the few answers that must not differ from store to store. Must not know a rule of the kernel: the status is the one
that a commit carries.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Iterable, Sequence
from functools import lru_cache, partial
from itertools import pairwise
from typing import Any

import msgspec

from treadle.errors import StoreDamaged
from treadle.model.effects import OpenGate
from treadle.model.events import Event, GateOpened
from treadle.model.ids import RunId, TokenId
from treadle.model.states import RunStatus
from treadle.store.gates import unwritten
from treadle.store.packing import unpack, unpack_answer, unpack_wish
from treadle.store.port import Commit, GateRow, InboxRequest, KeptRequest, RunRow
from treadle.store.seals import (
    Tell,
    Unreadable,
    about_answer,
    about_gate,
    about_request,
    gate_damaged,
    read,
    request_damaged,
)

_tags = msgspec.json.Decoder(tuple[str, ...]).decode

SHARD = 0
"""The only shard of a store with one engine. The verbs that name a shard still check it."""


@lru_cache(maxsize=1 << 14)
def shard_of(run: RunId, shards: int) -> int:
    """The shard of a run in a store of many engines. The function is fixed for ever, because rows carry the number. It
    is cached: one step calls it some five times."""
    return zlib.crc32(run.encode()) % shards if shards > 1 else SHARD


def run_row(columns: Sequence[Any]) -> RunRow:
    """A run as `find_runs` of a database lists its columns; tags are JSON."""
    run, workflow, version, status, seq, key, started, changed, busy, entity, tags, parent, number = columns
    return RunRow(
        run,
        workflow,
        version,
        RunStatus(status),
        seq,
        key,
        started=started,
        changed=changed,
        busy=bool(busy),
        entity=entity,
        tags=_tags(tags) if tags is not None else (),
        parent=parent,
        number=number,
    )


def run_rows(rows: Iterable[Sequence[Any]], place: str, tell: Tell) -> list[RunRow]:
    """Some run rows; a damaged one is reported and left out."""
    found = []
    for row in rows:
        try:
            found.append(run_row(row))
        except (ValueError, msgspec.DecodeError):
            tell(StoreDamaged(place, "runs", row[0]))
    return found


def kept_rows(rows: Iterable[Sequence[Any]], place: str, tell: Tell) -> list[KeptRequest]:
    """Requests with their answers, from columns `request, run, workflow, at, command, answer,
    fingerprint`."""
    found: list[KeptRequest] = []
    for id, run, workflow, at, packed, answer, fingerprint in rows:
        try:
            command, revive = read(packed, about_request(run, id, workflow, at, fingerprint), unpack_wish)
            given = read(answer, about_answer(id), partial(unpack_answer, id)) if answer is not None else None
        except Unreadable:
            tell(request_damaged(place, run, id))
            continue
        found.append((InboxRequest(id, RunId(run), command, at, workflow, revive, fingerprint=fingerprint), given))
    return found


def each(shard: int | Sequence[int]) -> Sequence[int]:
    """The shards that a query is about."""
    return (shard,) if isinstance(shard, int) else shard


def digest_of(content: bytes) -> str:
    """The digest of some bytes, as `actions.blobs` writes it (a test compares them)."""
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


_NOBODY = b"\xc0"
"""None, packed: the value of a gate without `assign` before rows were sealed."""


def gate_of(columns: Sequence[Any], place: str, tell: Tell) -> GateRow | None:
    """A gate as `find_gates` of a database lists its columns; a damaged one is reported, and is None."""
    run, token, node, workflow, opened, title, assign, due, by, escalated, *counts = columns
    try:
        given = read(assign or _NOBODY, about_gate(run, token, node, opened, title, due), unpack)
    except Unreadable:
        tell(gate_damaged(place, run, token))
        return None
    reminded, commented, answered = counts
    return GateRow(
        RunId(run),
        TokenId(token),
        node,
        workflow,
        opened,
        title,
        assign=given,
        due=due,
        claimed_by=by,
        escalated=unwritten(escalated),
        reminded=reminded,
        commented=commented,
        answered=answered,
    )


def parts_of(events: list[Event], cuts: Sequence[int]) -> list[list[Event]]:
    """The events of a run that begins, cut where the decisions of its inherited past ended."""
    places = [0, *(cut for cut in cuts if cut < len(events)), len(events)]
    return [events[begin:end] for begin, end in pairwise(places)]


def gate_row(commit: Commit, effect: OpenGate, workflow: str) -> GateRow:
    """A gate as the `gate.opened` of the same decision describes it."""
    for event in reversed(commit.events):  # a fork inherits earlier ones
        if isinstance(event, GateOpened) and event.token == effect.token:
            return GateRow(
                commit.run,
                effect.token,
                effect.node,
                workflow,
                event.at,
                event.title,
                assign=event.assign,
                due=event.due,
            )
    at = commit.events[-1].at if commit.events else 0
    return GateRow(commit.run, effect.token, effect.node, workflow, at, effect.title)
