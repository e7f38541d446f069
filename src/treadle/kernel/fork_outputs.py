"""Another output for visits that a fork inherits: what they gave, and what was mapped from it (6.3).

A visit that has returned may have left its node long ago; the past says where it was and what it gave. Its output
mapping is evaluated anew. A place that something else has written since keeps the later value, and transitions that
have fired stay fired.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from treadle.expression.paths import MISSING, Path, get_in
from treadle.kernel.deciding import Deciding, Refused
from treadle.kernel.depth import is_too_deep, too_deep
from treadle.kernel.evolve_tokens import scope_frame
from treadle.kernel.group_state import Arrival
from treadle.kernel.points import Past
from treadle.kernel.scope import Scope
from treadle.kernel.standing import site_of
from treadle.kernel.state import Token
from treadle.kernel.writing import BadOutput, mapped
from treadle.model import events as e
from treadle.model.events import Write
from treadle.model.ids import ArrivalId, Frame, GroupId, TokenId
from treadle.model.states import Mode, Waiting

Json = Any


class Replaced(Struct):
    """All outputs of a fork that are other than those it inherits, ready to be recorded."""

    outputs: list[tuple[TokenId, Json]] = []
    arrivals: list[tuple[ArrivalId, Json]] = []
    writes: list[tuple[Frame | None, TokenId, list[Write]]] = []


def replaced(d: Deciding, past: Past, point: int, outputs: dict[str, Json]) -> Replaced:
    """What follows from the outputs that a fork changes. Refused for a visit that has not returned."""
    found = Replaced()
    made, returned = _visits(past, point)
    merged = _merged(past.history[:point])
    for key, output in outputs.items():
        if is_too_deep(output):
            raise Refused("BAD_REQUEST", too_deep(f"the output of {key}"))
        token = _visit(made, returned, key)
        if any(frame in merged for frame in made[token].frames):
            text = f"visit {token} at {made[token].node!r} is in a branch that a join has merged"
            raise Refused("INVALID_STATE", f"{text}: change `state` instead, or fork before the join")
        _replace(d, made[token], output, past.history[returned[token] : point], found)
    return found


def _merged(events: Sequence[e.Event]) -> set[Frame]:
    """Branches that have gone into what their join has made."""
    waiting: dict[tuple[GroupId, str], list[Frame]] = {}
    found: set[Frame] = set()
    for event in events:
        if isinstance(event, e.JoinArrived) and event.group is not None and not event.absorbed:
            branch = next(frame for frame in event.frames if frame[0] == event.group)
            waiting.setdefault((event.group, event.target), []).append(branch)
        elif isinstance(event, e.JoinFired) and event.group is not None:
            found.update(waiting.pop((event.group, event.target), ()))
    return found


def _visits(past: Past, point: int) -> tuple[dict[TokenId, e.TokenCreated], dict[TokenId, int]]:
    """The visits up to a point, and the sequence number at which each has returned."""
    made: dict[TokenId, e.TokenCreated] = {}
    returned: dict[TokenId, int] = {}
    for event in past.history[:point]:
        if isinstance(event, e.TokenCreated) and event.mode is Mode.FORWARD:
            made[event.token] = event
        elif isinstance(event, e.TokenCompleted) or (
            isinstance(event, e.TokenWaiting) and event.reason is Waiting.SIBLINGS
        ):
            returned.setdefault(event.token, event.seq)
        elif isinstance(event, e.TokenRetryScheduled):
            returned.pop(event.token, None)
    return made, returned


def _visit(made: dict[TokenId, e.TokenCreated], returned: dict[TokenId, int], key: str) -> TokenId:
    at_node = [token for token, visit in made.items() if visit.node == key]
    if at_node:
        back = [token for token in at_node if token in returned]
        if not back:
            raise Refused(
                "INVALID_STATE", f"no visit of {key!r} has returned at this point: fork a later one, or skip it"
            )
        return max(back, key=lambda token: returned[token])
    token = TokenId(int(key)) if key.isdecimal() else TokenId(0)
    if token not in made:
        raise Refused("NOT_FOUND", f"there is no visit or visited node {key!r} at this point")
    if token not in returned:
        text = f"visit {token} at {made[token].node!r} has not returned at this point"
        raise Refused("INVALID_STATE", f"{text}: fork a later one, or skip it in the fork")
    return token


def _replace(d: Deciding, visit: e.TokenCreated, output: Json, since: Sequence[e.Event], found: Replaced) -> None:
    """Replace the output of one visit. `since`: the events after it had returned."""
    node = d.graph.nodes.get(visit.node)
    if node is None:
        text = f"visit {visit.token} was at {visit.node!r}, which the version that the run was moved to does not have"
        raise Refused("INVALID_STATE", f"{text}: change `state` instead, or fork a point before the move")
    problem = node.output_schema.problem(output) if node.output_schema is not None else None
    if problem is not None:
        raise Refused("SCHEMA", f"output of {node.ref!r}: {problem}")
    if any(group not in d.state.groups for group, _ in visit.frames):
        text = f"visit {visit.token} at {node.ref!r} is in a branch that is over"
        raise Refused("INVALID_STATE", f"{text}: change `state` instead, or fork an earlier point")
    scope = scope_frame(d.state, visit.frames)
    token = Token(visit.token, visit.node, visit.path, visit.frames, last_error=visit.last_error)
    try:
        writes = mapped(d, token, node, scope, output) if node.outputs else []
    except BadOutput as bad:
        raise Refused(bad.error.kind, bad.error.message) from None
    if node.read:
        writes.append((("nodes", node.ref, "output"), output))
    later = _written(since, scope)
    kept = [write for write in writes if not any(_overlap(write[0], path) for path in later)]
    found.outputs.append((visit.token, output))
    if kept:
        found.writes.append((scope, visit.token, kept))
    for arrival in d.state.arrivals.values():
        if arrival.frames == visit.frames or arrival.token == visit.token:
            value = _brought(d, arrival, visit.token, output, kept)
            if value is not MISSING:
                found.arrivals.append((arrival.id, value))


def _written(events: Sequence[e.Event], scope: Frame | None) -> list[Path]:
    """Places of a scope that these events have written."""
    found: list[Path] = []
    for event in events:
        if (isinstance(event, e.ContextUpdated) and event.scope == scope) or (
            isinstance(event, e.JoinFired) and event.scope == scope and scope is None
        ):
            found.extend(tuple(path) for path, _ in event.writes)
    return found


def _overlap(one: Path, other: Path) -> bool:
    shorter = min(len(one), len(other))
    return one[:shorter] == other[:shorter]


def _brought(d: Deciding, arrival: Arrival, visit: TokenId, output: Json, writes: list[Write]) -> Json:
    """What an arrival brings to its join now; MISSING: what it brought before."""
    if arrival.group is None:
        return MISSING
    site = d.graph.sites[site_of(d.state.groups[arrival.group], arrival.target).index]
    source = site.merge_source
    if source is None:
        return MISSING
    if source[0] == "_visit":
        return output if arrival.token == visit else MISSING
    below = site.branch_path
    places: list[Path] = [("state", *below), ("output", *below)] if below is not None else [source]
    for place in places:
        touching = [write for write in writes if _overlap(write[0], place)]
        if touching:
            return _value(arrival.value, place, touching)
    return MISSING


def _value(before: Json, place: Path, writes: list[Write]) -> Json:
    """The value at a place after some writes, which was `before`."""
    trial = Scope(overlay=False)
    trial.write(("value",), before if isinstance(before, dict) else {})
    result = before
    for path, value in writes:
        if len(path) <= len(place):
            found = get_in(value, place[len(path) :])
            result = None if found is MISSING else found
            trial.write(("value",), result if isinstance(result, dict) else {})
        else:
            trial.write(("value", *path[len(place) :]), value)
            result = trial.plain("value")
    return result
