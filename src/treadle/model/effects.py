"""Everything the outside world is asked to do. Effects become outbox rows in the transaction that decided them.

Each is idempotent for its receiver: a dispatch carries its key, a timer its id, a child its run id.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from treadle.model.errors import Error
from treadle.model.ids import RecordId, RunId, TimerId, TokenId
from treadle.model.references import EntityRef

Json = Any


class Effect(Struct, tag_field="effect", omit_defaults=True, frozen=True, gc=False):
    """Asked of the world by one run."""


class Slot(Struct, frozen=True, omit_defaults=True):
    """A limit across runs: at most `limit` attempts with this name and key execute at the same time."""

    name: str
    limit: int
    key: Json = None


class RunTask(Effect, tag="run_task", frozen=True):
    """Execute one attempt of a node's task (or of its compensation) in this engine or on a queue's worker."""

    token: TokenId
    attempt: int
    node: str
    input: Json
    queue: str | None = None
    record: RecordId | None = None
    """Set: run the node's `compensate` task instead."""
    slot: Slot | None = None
    """Set: wait for a free place, then say StartAttempt and execute."""


class StopTask(Effect, tag="stop_task", frozen=True):
    token: TokenId
    attempt: int


class SetTimer(Effect, tag="set_timer", frozen=True):
    timer: TimerId
    due: int


class ClearTimer(Effect, tag="clear_timer", frozen=True):
    timer: TimerId


class OpenGate(Effect, tag="open_gate", frozen=True):
    token: TokenId
    node: str


class CloseGate(Effect, tag="close_gate", frozen=True):
    token: TokenId


class RemindGate(Effect, tag="remind_gate", frozen=True):
    token: TokenId


class CallWebhook(Effect, tag="call_webhook", frozen=True):
    """A signed POST; afterwards the token waits for the callback."""

    token: TokenId
    attempt: int
    node: str
    input: Json


class StartChild(Effect, tag="start_child", frozen=True):
    token: TokenId
    child: RunId
    workflow: str
    input: Json
    depth: int
    depth_max: int
    version: int | None = None
    inherit_artifacts: bool = False
    entity: EntityRef | None = None


class CancelChild(Effect, tag="cancel_child", frozen=True):
    child: RunId


class CompensateChild(Effect, tag="compensate_child", frozen=True):
    child: RunId
    token: TokenId


class NotifyParent(Effect, tag="notify_parent", frozen=True):
    parent: RunId
    token: TokenId
    status: str
    output: Json = None
    error: Error | None = None
    compensable: bool = False


class DeliverSignal(Effect, tag="deliver_signal", frozen=True):
    run: RunId
    name: str
    id: str
    key: Json = None
    data: Json = None


class Publish(Effect, tag="publish", frozen=True):
    """An `emit` for outgoing webhooks."""

    type: str
    data: Json = None
