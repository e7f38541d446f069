"""Nodes: one task each, no routing logic (1.2)."""

from __future__ import annotations

from typing import Any

from treadle.language.compounds import Adapt, Forms
from treadle.language.grammar.retry import RETRY, TIMEOUT
from treadle.language.grammar.task import COMPENSATION, ONE_TASK, TASK_FIELDS, task_of
from treadle.language.phrases import MappingValue, SourceValue, TargetMapping
from treadle.language.record import Field, OneOf, Record, given_fields
from treadle.language.shapes import AnyText, Choice, Flag, Text, Whole
from treadle.model import definition as d

REST = Choice("absorb", "block", "cancel")

_INPUT = Forms(
    "a map from names to sources",
    map=MappingValue(),
    text=Choice("upstream", "item"),
)

_JOIN_WORD = Adapt(
    Choice("arrival", "all_inbound", "all_reachable", "inbound_fifo"),
    lambda word: None if word == "arrival" else d.NodeJoin(kind=word),
    lambda join: join.kind,
)


def _join_from(values: dict[str, Any]) -> d.NodeJoin:
    if "tokens" in values:
        return d.NodeJoin(kind="tokens", count=values["tokens"])
    if "all_inbound" in values:
        return d.NodeJoin(kind="all_inbound", collect=values["all_inbound"] == "collect")
    return d.NodeJoin(kind="inbound", count=values["inbound"], rest=values.get("rest", "absorb"))


def _join_fields(join: d.NodeJoin) -> dict[str, Any]:
    if join.kind == "inbound":
        return {"inbound": join.count} | ({"rest": join.rest} if join.rest != "absorb" else {})
    return {"tokens": join.count} if join.kind == "tokens" else {"all_inbound": "collect"}


_JOIN_MAP = Record(
    "NodeJoin",
    "A join by count (A8).",
    (
        Field("inbound", Whole(1), "Fires when so many different inbound transitions have delivered"),
        Field("rest", REST, "What arrives before it is re-armed", default="absorb"),
        Field("tokens", Whole(1), "Fires for every so many tokens, on whichever transitions"),
        Field(
            "all_inbound",
            Choice("collect"),
            "As `all_inbound`, and the node's output is the list of what was delivered",
        ),
    ),
    make=_join_from,
    unmake=_join_fields,
    one_of=(OneOf(("inbound", "tokens", "all_inbound"), required=True), OneOf(("tokens", "rest"))),
)

JOIN = Forms(
    "`arrival`, `all_inbound`, `all_reachable`, `inbound_fifo`, {inbound: M} or {tokens: N}",
    text=_JOIN_WORD,
    map=_JOIN_MAP,
    writes=lambda join: _JOIN_MAP if join.kind in ("inbound", "tokens") or join.collect else _JOIN_WORD,
)

_ENDS = {True: "completed", False: None}
TERMINATES = Forms(
    "true, false, `completed`, `cancelled` or `failed`",
    flag=Adapt(Flag(), _ENDS.__getitem__, bool),
    text=Choice("completed", "cancelled", "failed"),
)

_MUTEX_MAP = Record(
    "Mutex",
    "A critical section within the run (A4).",
    (
        Field("name", Text("a name"), "Which section", required=True),
        Field("keep", Flag(), "Held while the token goes on to a node that keeps the same mutex", default=False),
    ),
    d.Mutex,
)
MUTEX = Forms(
    "a name or {name, keep}",
    text=Adapt(Text("a name"), lambda name: d.Mutex(name=name), lambda mutex: mutex.name),
    map=_MUTEX_MAP,
    writes=lambda _: _MUTEX_MAP,
)

_ENTITY_MOVE = Record(
    "EntityMove",
    "Where the run's entity goes.",
    (
        Field("section", Text("a section"), "Section it moves to", also=("targetSectionId",)),
        Field(
            "complete_as",
            Choice("success", "failure", "neutral"),
            "How it counts there",
            also=("completeAs",),
        ),
        Field("set_type", Text("an entity type"), "Type it is converted to", also=("setEntityType",)),
    ),
    d.EntityMove,
)
ENTITY = Record(
    "EntityMoves",
    "Moves the run's entity on the visit's final outcome.",
    (
        Field("on_success", _ENTITY_MOVE, "When the visit succeeds", also=("onSuccess",)),
        Field("on_failure", _ENTITY_MOVE, "When it fails for good", also=("onFailure",)),
    ),
    d.EntityMoves,
)

_CONCURRENCY = Record(
    "Concurrency",
    "A limit across runs.",
    (
        Field("limit", Whole(1), "How many visits at a time", required=True),
        Field("key", SourceValue(), "One limit per value of this source"),
    ),
    d.Concurrency,
)

_QUEUE_MAP = Record(
    "Queue",
    "A queue, and when its workers take the node's work.",
    (
        Field("name", Text("a queue"), "The queue", required=True),
        Field("priority", Whole(), "Smaller ones are claimed first", default=1),
        Field("key", SourceValue(), "Work with different values of this source takes turns; else each workflow does"),
    ),
    d.Queue,
)
_QUEUE_NAME = Adapt(Text("a queue"), lambda name: d.Queue(name=name), lambda queue: queue.name)
QUEUE = Forms(
    "a name or {name, priority, key}",
    text=_QUEUE_NAME,
    map=_QUEUE_MAP,
    writes=lambda queue: _QUEUE_NAME if queue == d.Queue(queue.name) else _QUEUE_MAP,
)


def _node_from(values: dict[str, Any]) -> d.Node:
    fields = task_of(values)
    queue: d.Queue | None = fields.pop("queue", None)
    if queue is None:
        return d.Node(**fields)
    turn = d.Turn(queue.priority, queue.key)
    return d.Node(**fields, queue=queue.name, turn=turn if turn != d.Turn() else None)


def _node_fields(node: d.Node) -> dict[str, Any]:
    fields = given_fields(node)
    turn = fields.pop("turn", None) or d.Turn()
    if node.queue is not None:
        fields["queue"] = d.Queue(node.queue, turn.priority, turn.key)
    return fields


NODE = Record(
    "Node",
    "A place of work. It runs exactly one task; without one it passes straight through.",
    (
        *TASK_FIELDS,
        Field(
            "input_mapping",
            _INPUT,
            "Key of the task's input ← source, read from the token's scope",
            ("input",),
        ),
        Field(
            "output_mapping",
            TargetMapping(),
            "`state.…` or `output.…` ← source in the task's output",
            ("output",),
        ),
        Field("retry", RETRY, "Durable retry of the same token"),
        Field("timeout_ms", TIMEOUT, "Deadline of one attempt of the task"),
        Field(
            "fan_out",
            Choice("all", "first_match"),
            "Follow all matches of a tier, or only the first",
            default="all",
        ),
        Field("on_no_match", Choice("error", "end"), "What happens when no transition matches", default="error"),
        Field("join", JOIN, "Whether tokens wait for one another before the node runs", default="arrival"),
        Field("terminates", TERMINATES, "Completing this node ends the whole run at once with that status (A5)"),
        Field("compensate", COMPENSATION, "How a completed visit is undone"),
        Field("compensate_on_failure", Flag(), "Compensate this node also when it failed itself", default=False),
        Field("queue", QUEUE, "Run on workers of that queue instead of in the engine's process"),
        Field("concurrency", _CONCURRENCY, "Keyed limit across runs"),
        Field("mutex", MUTEX, "Critical section within the run, held across waits (A4)"),
        Field("entity", ENTITY, "Where the run's entity goes", also=("entityMovement",)),
        Field("description", AnyText(), "For people"),
    ),
    d.Node,
    make=_node_from,
    unmake=_node_fields,
    one_of=(ONE_TASK,),
    hints={
        "fan_in": "joins are written on the inbound transitions: `synchronization: {sibling_group: …}`",
        "synchronization": "joins on a group are written on the inbound transitions",
        "condition": "conditions are written on transitions",
    },
)
