"""Requests to the owner of a run, and their answers, as every store keeps them. Part of the port (`store.port`)."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from treadle.model.commands import Command
from treadle.model.errors import Rejection
from treadle.model.ids import RunId

Json = Any


class InboxRequest(Struct, frozen=True):
    """A request to the owner of a run from any other process: a command, or another delivery of a dead letter."""

    id: str
    run: RunId
    command: Command | None
    at: int
    workflow: str | None = None
    """The workflow of a run to be started."""
    revive: int = 0
    """The parked outbox row to deliver again, if there is no command."""
    fingerprint: str | None = None
    """What the sender may send again only with this id. Answers to such requests outlive their runs: `drop_notes`
    drops them (`store.service`)."""


class InboxAnswer(Struct, frozen=True):
    """The answer to a request: its result, or its rejection."""

    request: str
    rejection: Rejection | None = None
    result: Json = None
    """Of a start the run; of any other command whether it had an effect."""
    run: RunId | None = None
    """The run of the request, which tells the shard; not stored with the answer."""
    asked: InboxRequest | None = None
    """The request, without its command, if its owner was asked directly: it is kept with its answer."""
    is_again: bool = False
    """Whether it had been given before; not stored."""


class KnownRequest(Struct, frozen=True):
    """A request that a store keeps."""

    answer: InboxAnswer | None
    fingerprint: str | None


KeptRequest = tuple[InboxRequest, InboxAnswer | None]
"""A request and its answer, if it has one."""
