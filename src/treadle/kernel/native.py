"""Native actions: emit, send and the group actions. The kernel carries them out itself, because they are decisions
about this run.

A node whose only step is one of them costs no dispatch. Inside a longer task they travel as requests with its result
(`apply_requests`), so either way they happen exactly once.
"""

from __future__ import annotations

from typing import Any, Literal

from treadle.errors import EvaluationError
from treadle.graph.execution_graph import GraphNode
from treadle.kernel import cancel, complete, failure, signals, spawning
from treadle.kernel.cancel_groups import cancel_groups
from treadle.kernel.deciding import Deciding, Refused, RunFails
from treadle.kernel.group_state import Group
from treadle.kernel.standing import unspawned
from treadle.kernel.state import Token
from treadle.kernel.suspend import config_value
from treadle.kernel.view import item_of
from treadle.model import effects as x
from treadle.model.errors import Error
from treadle.model.ids import Frames, RunId
from treadle.model.requests import AnyRequest, ChangeGroup, Emit, Send, WriteArtifact
from treadle.model.states import Mode

Json = Any


def perform(d: Deciding, token: Token, node: GraphNode, value: Json) -> None:
    """Carry out a node's native action and complete the visit."""
    attempt = token.attempt + 1
    d.token_started(token.id, attempt, input=value)
    try:
        request = _request(d, token, node, value)
        output = apply(d, token, request)
    except EvaluationError as problem:
        text = f"{node.native} of {node.ref!r}: {problem}"
        failure.fail_token(d, token, Error(problem.kind, text))
    except Refused as refusal:
        failure.fail_token(d, token, Error(refusal.rejection.kind, refusal.rejection.message))
    else:
        if token.id in d.state.tokens:  # the action may have cancelled its own visit
            complete.complete_visit(d, token, output)


def _request(d: Deciding, token: Token, node: GraphNode, value: Json) -> AnyRequest:
    def given(key: str) -> Json:
        return config_value(d, token, node, key, value)

    if node.native == "emit":
        data = given("data")
        return Emit(str(given("type")), data if data is not None or "data" in node.config else value)
    if node.native == "send":
        data = given("data")
        return Send(str(given("signal")), given("key"), data, given("run"))
    verb: Literal["cancel_group", "add_siblings", "close_group"] = "close_group"
    if node.native == "cancel_group":
        verb = "cancel_group"
    elif node.native == "add_siblings":
        verb = "add_siblings"
    return ChangeGroup(verb, str(given("group")), given("items"), given("count"), given("join") or "fire")


def apply_requests(d: Deciding, token: Token, requests: tuple[AnyRequest, ...]) -> None:
    """Carry out what a task asked for while it ran. Raises Refused: then the attempt has failed."""
    for request in requests:
        apply(d, token, request)


def apply(d: Deciding, token: Token, request: AnyRequest) -> Json:
    """Carry out one request. Returns the output of the action."""
    if isinstance(request, ChangeGroup) and token.mode is Mode.COMPENSATION:
        raise Refused("INVALID_STATE", f"{request.verb}: a run that is being compensated has no groups to act on")
    if isinstance(request, Emit):
        d.custom(request.type, request.data, token.id)
        d.effect(x.Publish(request.type, request.data))
        return {}
    if isinstance(request, Send):
        send(d, token, request)
        return {}
    if isinstance(request, WriteArtifact):
        d.artifact_written(token.id, request.name, request.digest, size=request.size, content_type=request.content_type)
        return {}
    return change_group(d, request, token.frames, f"node {token.node}", spared=token.id)


def send(d: Deciding, token: Token, request: Send) -> None:
    """Send a signal to this run, or through the outbox to another."""
    if request.run is None or request.run == d.state.run:
        signals.receive(d, request.signal, request.key, request.data, None)
        return
    identity = f"{d.state.run}:{token.id}:{token.attempt}:{d.seq}"
    d.effect(x.DeliverSignal(RunId(request.run), request.signal, identity, request.key, request.data))


def change_group(
    d: Deciding, request: ChangeGroup, frames: Frames, by: str, spared: int = 0, command: str | None = None
) -> Json:
    """Carry out cancel_group, add_siblings or close_group, for an action or an operator."""
    if request.verb == "cancel_group":
        if not _is_known(d, request.group):
            raise Refused("NOT_FOUND", f"no group of this workflow answers to {request.group!r}")
        count = cancel_groups(d, request.group, frames, request.join, by, spared)
        return {"cancelled": count}
    group = _one_group(d, request.group, frames)
    if request.verb == "close_group":
        return close_group(d, group, by)
    return add_siblings(d, group, request.items, request.count, command)


def _is_known(d: Deciding, name: str) -> bool:
    """Whether some transition or node of the workflow can make a group of this name, even if none is alive now."""
    return any(name in (t.id, t.definition.sibling_group, t.source.ref) for t in d.graph.transitions.values())


def _one_group(d: Deciding, name: str, frames: Frames) -> Group:
    """The innermost group of that name around; else the newest live one in the item."""
    key = d.graph.group_key(name)
    for identity, _ in reversed(frames):
        group = d.state.groups[identity]
        if key in group.names:
            return group
    found = cancel.groups_named(d, name, frames, item_of(d.state, frames))
    if not found:
        known = _is_known(d, name)
        kind = "INVALID_STATE" if known else "NOT_FOUND"
        raise Refused(kind, f"no group answers to {name!r}{' any more or yet' if known else ''}")
    return next((group for group in reversed(found) if group.open), found[-1])


def close_group(d: Deciding, group: Group, by: str) -> Json:
    """Close a group: no more siblings come. Closing it again changes nothing."""
    if group.open:
        d.group_closed(group.id, by)
        d.mark(group.id)
    return {"total": group.total}


def add_siblings(d: Deciding, group: Group, items: Json, count: Json, command: str | None) -> Json:
    """Let an open group grow; the new branches' indexes follow on."""
    if not group.open or any(site.status in ("fired", "failed") for site in group.sites):
        raise Refused(
            "INVALID_STATE", f"group {group.names[0]!r} is closed; siblings can only be added to an open group"
        )
    if isinstance(items, list):
        added = len(items)
    elif isinstance(count, int) and not isinstance(count, bool) and count >= 0:
        added, items = count, ([None] * count if group.items is not None else None)
    else:
        raise Refused("BAD_REQUEST", f"add_siblings needs items (an array) or count, got {items!r} and {count!r}")
    limits = d.graph.definition.limits
    if added > limits.max_spawn_count:
        raise RunFails(_limit("max_spawn_count", limits.max_spawn_count, added, group))
    if d.state.visits + unspawned(group) + added > limits.max_tokens_per_run:
        raise RunFails(_limit("max_tokens_per_run", limits.max_tokens_per_run, d.state.visits + added, group))
    d.group_grew(group.id, group.total + added, items, command)
    if d.running:
        spawning.spawn_branches(d, group)
    d.mark(group.id)
    return {"added": added, "total": group.total}


def _limit(name: str, limit: int, value: int, group: Group) -> Error:
    text = f"{name} is {limit} and adding siblings to {group.names[0]!r} would make it {value}"
    return Error("LIMIT_EXCEEDED", text, group.node, group.path)
