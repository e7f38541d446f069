"""Races: `on_first_completion` and `on_first_start` make the siblings of the first branch superfluous (2.5, A14)."""

from __future__ import annotations

from treadle.kernel import cancel, standing
from treadle.kernel.deciding import Deciding
from treadle.kernel.view import races
from treadle.model.ids import Frames


def choose_by_start(d: Deciding, frames: Frames, by: str) -> None:
    """Apply `on_first_start`: the first branch that is claimed, answered, signalled or due makes its siblings
    superfluous (A14)."""
    for identity, branch in frames:
        group = d.state.groups.get(identity)
        if group is not None and races(d.graph, group, "on_first_start"):
            cancel.cancel_group_units(d, group, by, arrivals=True, keep=branch)


def choose_by_end(d: Deciding, frames: Frames) -> None:
    """Apply `on_first_completion` of a group without a join of its own: the first branch decides that ends
    successfully, or whose last token waits at a join further out."""
    for identity, branch in frames:
        group = d.state.groups.get(identity)
        if group is None or group.sites:
            continue
        around = {outer for outer, _ in group.frames}
        if not all(cancel.held_at(d, unit) in around for unit in standing.units_of(group, branch)):
            continue
        if races(d.graph, group, "on_first_completion"):
            cancel.cancel_group_units(d, group, "first completion", arrivals=True, keep=branch)
