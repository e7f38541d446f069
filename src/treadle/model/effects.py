"""Everything the outside world is asked to do. Effects become outbox rows in the transaction that decided them.

Each is idempotent for its receiver: a dispatch carries its key, a timer its id, a child its run id.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from treadle.model.errors import Error
from treadle.model.events import EntityRef
from treadle.model.ids import RecordId, RunId, TimerId, TokenId

Json = Any


class Effect(Struct, tag_field="effect", omit_defaults=True, frozen=True):
    """Asked of the world by one run."""


class RunTask(Effect, tag="run_task"):
    """Execute one attempt of a node's task (or of its compensation) in this engine or on a queue's worker."""

    token: TokenId
    attempt: int
    node: str
    input: Json
    queue: str | None = None
    record: RecordId | None = None
    """Set: run the node's `compensate` task instead."""


class StopTask(Effect, tag="stop_task"):
    token: TokenId
    attempt: int


class SetTimer(Effect, tag="set_timer"):
    timer: TimerId
    due: int


class ClearTimer(Effect, tag="clear_timer"):
    timer: TimerId


class OpenGate(Effect, tag="open_gate"):
    token: TokenId
    node: str


class CloseGate(Effect, tag="close_gate"):
    token: TokenId


class RemindGate(Effect, tag="remind_gate"):
    token: TokenId


class CallWebhook(Effect, tag="call_webhook"):
    """A signed POST; afterwards the token waits for the callback."""

    token: TokenId
    attempt: int
    node: str
    input: Json


class StartChild(Effect, tag="start_child"):
    token: TokenId
    child: RunId
    workflow: str
    input: Json
    depth: int
    depth_max: int
    version: int | None = None
    inherit_artifacts: bool = False
    entity: EntityRef | None = None


class CancelChild(Effect, tag="cancel_child"):
    child: RunId


class CompensateChild(Effect, tag="compensate_child"):
    child: RunId
    token: TokenId


class NotifyParent(Effect, tag="notify_parent"):
    parent: RunId
    token: TokenId
    status: str
    output: Json = None
    error: Error | None = None
    compensable: bool = False


class DeliverSignal(Effect, tag="deliver_signal"):
    run: RunId
    name: str
    id: str
    key: Json = None
    data: Json = None


class Publish(Effect, tag="publish"):
    """An `emit` for outgoing webhooks."""

    type: str
    data: Json = None
