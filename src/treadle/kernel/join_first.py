"""Races: `on_first_completion` and `on_first_start` make the siblings of the first branch superfluous (2.5, A14)."""

from __future__ import annotations

from treadle.kernel import cancel, units
from treadle.kernel.deciding import Deciding
from treadle.kernel.group_state import Group
from treadle.model.ids import Frames


def cancels_on_first(d: Deciding, group: Group, policy: str) -> bool:
    transitions = [d.graph.transitions[name] for name in group.transitions]
    if group.names[0].startswith("node:"):  # a transition that makes a group of its own speaks for that one
        transitions = [t for t in transitions if not t.replicates and t.definition.sibling_group is None]
    return any(getattr(t.definition, policy) == "cancel_remaining" for t in transitions)


def choose_by_start(d: Deciding, frames: Frames, by: str) -> None:
    """`on_first_start`: whoever is claimed, answered, signalled or due first makes its siblings superfluous (A14)."""
    for identity, branch in frames:
        group = d.state.groups.get(identity)
        if group is not None and cancels_on_first(d, group, "on_first_start"):
            cancel.cancel_group_units(d, group, by, arrivals=True, keep=branch)


def choose_by_end(d: Deciding, frames: Frames) -> None:
    """`on_first_completion` of a group without a join of its own: the first branch decides that ends successfully, or
    whose last token waits at a join further out."""
    for identity, branch in frames:
        group = d.state.groups.get(identity)
        if group is None or group.sites:
            continue
        around = {outer for outer, _ in group.frames}
        if not all(cancel.held_at(d, unit) in around for unit in units.units_of(group, branch)):
            continue
        if cancels_on_first(d, group, "on_first_completion"):
            cancel.cancel_group_units(d, group, "first completion", arrivals=True, keep=branch)
