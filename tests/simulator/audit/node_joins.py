"""A node's own join, recounted: complete sets fire, incomplete ones wait, each arrival is used once (2.5, A8, A12)."""

from __future__ import annotations

from tests.simulator.audit.folding import withdraw
from tests.simulator.audit.folding_runs import write
from tests.simulator.audit.record import Arrival, Record, Visit
from tests.simulator.audit.tally import is_decided
from treadle.model import events as e
from treadle.model.definition import NodeJoin
from treadle.model.ids import Frame, Frames

Key = tuple[str, Frame | None]


def on_arrival(record: Record, event: e.JoinArrived) -> None:
    """Arrivals are kept per item."""
    if event.group is not None:
        return
    item = record.join_item(event.frames)
    record.expect(event.item == item, "node join", f"arrival at {event.target} for item {event.item}, is {item}")
    key = (event.target, event.item)
    if event.rearmed:
        record.rounds.pop(key, None)
    if event.absorbed:
        record.rounds.setdefault(key, set()).add(event.via)


def on_fired(record: Record, event: e.JoinFired) -> None:
    """The arrivals used are a complete set, the oldest of each."""
    if event.group is not None:
        return
    key = (event.target, event.item)
    definition = record.node(event.target).join
    held = [record.arrivals[i] for i in record.node_joins.get(key, ())]
    used = [arrival for arrival in held if arrival.id in event.arrivals]
    if definition is None or sorted(event.arrivals) != [arrival.id for arrival in used]:
        record.complain("node join", f"{event.target} uses arrivals {event.arrivals}, held are {[a.id for a in held]}")
        return
    expected = complete_set(record, key, definition, held)
    got = sorted(event.arrivals)
    right = expected == got or (definition.kind == "all_reachable" and _is_stalemate(record))
    record.expect(right, "node join", f"{event.target} ({definition.kind}) uses {got}, should use {expected}")
    frames = _shared([arrival.frames for arrival in used])
    record.doing.owed.append((event.target, frames))
    for identity in event.arrivals:
        withdraw(record, identity)
    if definition.kind == "inbound" and definition.rest != "cancel":
        record.rounds[key] = {arrival.via for arrival in used}
    write(record, event.scope, event.writes)


def _is_stalemate(record: Record) -> bool:
    """Joins that only wait for one another: before the run deadlocks a reachability join fires, in order of arrival."""
    free = [visit for visit in record.live_visits() if not visit.held and visit.reason != "mutex"]
    return not free and not any(timer.purpose == "sync" for timer in record.timers.values())


def complete_set(record: Record, key: Key, definition: NodeJoin, held: list[Arrival]) -> list[int] | None:
    """The arrivals the join has to use now; None: it has to wait."""
    if not held:
        return None
    if definition.kind == "tokens":
        return [a.id for a in held[: definition.count]] if len(held) >= definition.count else None
    if definition.kind == "all_reachable":
        return None if can_come(record, key) else [a.id for a in held]
    oldest: dict[str, int] = {}
    for arrival in held:
        oldest.setdefault(arrival.via, arrival.id)
    if definition.kind == "inbound":
        if not is_armed(record, key) or len(oldest) < definition.count:
            return None
        return sorted(list(oldest.values())[: definition.count])
    inbound = [t.id for t in record.chart.into[key[0]]]
    return sorted(oldest.values()) if all(t in oldest for t in inbound) else None


def is_armed(record: Record, key: Key) -> bool:
    """A8: every transition has delivered since the last firing, or nothing can come that way any more."""
    delivered = record.rounds.get(key)
    if delivered is None:
        return True
    return not any(can_come(record, key, t.from_) for t in record.chart.into[key[0]] if t.id not in delivered)


def can_come(record: Record, key: Key, over: str | None = None) -> bool:
    """A12: whether anything live in the item, not held here, can still get to the node (or to the node `over`)."""
    return bool(comers(record, key, over)) or _cursor_comes(record, key, over or key[0])


def comers(record: Record, key: Key, over: str | None = None) -> list[Visit | Arrival]:
    """Everything that can still get there."""
    node, item = key
    held = [record.arrivals[i] for i in record.node_joins.get(key, ())]
    found: list[Visit | Arrival] = []
    for unit in record.units():
        if (item is not None and item not in unit.frames) or _is_straggler(record, unit.frames, held):
            continue
        if isinstance(unit, Visit):
            here, exact = unit.node, unit.node == over
        elif unit.target == node and unit.group is None and unit.item == item:
            continue
        else:
            here, exact = unit.target, unit.target == (over or node)
        if exact or (over or node) in record.chart.reach(here, _spent(record, unit.loops)):
            found.append(unit)
    return found


def _is_straggler(record: Record, frames: Frames, held: list[Arrival]) -> bool:
    """Stragglers of an early join count for nobody but one another."""
    ours = held[0].frames if held else ()
    return any(frame[1] in record.groups[frame[0]].abandoned and frame not in ours for frame in frames)


def _cursor_comes(record: Record, key: Key, goal: str) -> bool:
    """Whether a lazy group of the item has branches to come that lead there."""
    for group in record.groups.values():
        inside = key[1] is None or key[1] in group.frames
        if not inside or is_decided(group) or group.total == len(group.seen) or group.max_in_flight is None:
            continue
        entries = [record.transition(t).to for t in group.transitions]
        if any(goal == entry or goal in record.chart.reach(entry) for entry in entries):
            return True
    return False


def _spent(record: Record, loops: dict[str, int]) -> frozenset[str]:
    return frozenset(
        name for name, count in loops.items() if count >= (record.transition(name).loop_max_iterations or 0)
    )


def _shared(stacks: list[Frames]) -> Frames:
    shared: list[Frame] = []
    for level in zip(*stacks, strict=False):
        if len(set(level)) > 1:
            break
        shared.append(level[0])
    return tuple(shared)


def settled(record: Record) -> None:
    """After a commit no complete set is left lying."""
    if record.status != "running":
        return
    for key, identities in record.node_joins.items():
        definition = record.node(key[0]).join
        held = [record.arrivals[i] for i in identities]
        ready = complete_set(record, key, definition, held) if definition is not None else None
        if ready is not None:
            kind = definition.kind if definition is not None else ""
            record.complain("join asleep", f"{key} ({kind}) holds the complete set {ready} and has not fired")
