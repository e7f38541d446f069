"""Cancelling groups by name: an action, an operator or a transition's `cancels` withdraws their units and completes
their joins (2.8).

Stands above `join` and `cancel`, because it needs both. `fan_out`, which is below `join`, reaches it through
`Deciding.cancel_groups`.
"""

from __future__ import annotations

from treadle.kernel import cancel, join
from treadle.kernel.deciding import Deciding
from treadle.kernel.view import item_of
from treadle.model.ids import Frames


def cancel_groups(d: Deciding, name: str, frames: Frames, then: str, by: str, spared: int) -> int:
    """Withdraw the live units of the named groups. Then each group's join fires at once (`fire`), or what it holds ends
    too (`drop`). Returns how many units were withdrawn."""
    count = 0
    for group in cancel.groups_named(d, name, frames, item_of(d.state, frames)):
        if any(site.status in ("fired", "failed") for site in group.sites):
            continue
        before = d.state.live
        cancel.cancel_group_units(d, group, by, arrivals=False, spared=spared)
        count += before - d.state.live
        join.complete_now(d, group, then, by)
    return count
