"""Lookups in the state of groups: where units stand, and which branches are still to come. Changes nothing; `units`
does that."""

from __future__ import annotations

from treadle.kernel.group_state import Group, SiteState
from treadle.kernel.state import RunState, Token
from treadle.model.ids import ArrivalId, Frame, Frames, GroupId, TokenId
from treadle.model.states import Mode, TokenState

CURSOR = -(1 << 40)
"""Unit ids below this are cursors: CURSOR minus the id of a group whose branches are not all spawned yet. Far from
every arrival's: a run has at most `max_tokens_per_run` of those."""


def unspawned(group: Group) -> int:
    """How many branches have not begun. None once a join has decided: nothing would wait for them."""
    rest = group.total - group.spawned
    if not rest or group.withdrawn:
        return 0
    decided = any(site.status == "failed" or (site.status == "fired" and not site.passes) for site in group.sites)
    return 0 if decided else rest


def cursor_group(unit: int) -> GroupId | None:
    """The group a unit is the cursor of, or None."""
    return GroupId(CURSOR - unit) if unit < CURSOR else None


def entry_mask(state: RunState, group: Group) -> int:
    """The nodes at which a group's branches begin."""
    mask = 0
    for name in group.transitions:
        mask |= state.graph.transitions[name].target.bit
    return mask


def site_of(group: Group, target: str) -> SiteState:
    """The join of this group at `target`."""
    for site in group.sites:
        if site.target == target:
            return site
    raise KeyError(target)


def branch_in(frames: Frames, group: int) -> int:
    """The branch index a stack of frames has in a group."""
    for identity, index in frames:
        if identity == group:
            return index
    raise KeyError(group)


def position(frames: Frames, group: int) -> int:
    """The position of the group's frame in the stack."""
    for place, (identity, _) in enumerate(frames):
        if identity == group:
            return place
    raise KeyError(group)


def units_of(group: Group, branch: int) -> list[int]:
    """The units in a branch of a group, in order of creation."""
    members = group.members.get(branch)
    if members is None:
        return []
    return [members] if isinstance(members, int) else list(members)


def where(state: RunState, unit: int) -> tuple[Frames, int, int | None]:
    """Frames of a unit, the bit of the node it stands at (or will continue at), and the group it will leave."""
    lazy = cursor_group(unit)
    if lazy is not None:
        group = state.groups[lazy]
        return group.frames, entry_mask(state, group), None
    if unit > 0:
        token = state.tokens[TokenId(unit)]
        return token.frames, state.graph.nodes[token.node].bit, None
    arrival = state.arrivals[ArrivalId(-unit)]
    return arrival.frames, state.graph.nodes[arrival.target].bit, arrival.group


def is_standing(token: Token) -> bool:
    """Whether the token is at its node: live, forward, and not held at a join."""
    return (
        not token.held and token.mode is Mode.FORWARD and token.state not in (TokenState.FAILED, TokenState.TIMED_OUT)
    )


def item_units(state: RunState, item: Frame | None) -> list[int]:
    """Every live unit of an item, everything nested inside included."""
    if item is not None:
        return units_of(state.groups[GroupId(item[0])], item[1])
    live = [
        t.id for t in state.tokens.values() if not t.held and t.state not in (TokenState.FAILED, TokenState.TIMED_OUT)
    ]
    cursors = [CURSOR - group for group in state.cursors]
    return [*live, *(-identity for identity in state.arrivals), *cursors]
