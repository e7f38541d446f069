"""Words and numbers about the joins of a group: how many branches a join needs, and which are missing.

Pure. The kernel's `join_verdict` decides; this only says what a strategy asks for.
"""

from __future__ import annotations

from treadle.kernel.group_state import Group, SiteState
from treadle.model import definition as d


def needed_of(strategy: d.Strategy, total: int) -> int | None:
    """How many branches must arrive; None where an expression decides."""
    if strategy.kind == "cel":
        return None
    if strategy.kind == "any":
        return 1
    if strategy.kind == "m_of_n":
        return strategy.count
    return -(-strategy.count * total // 100) if strategy.kind == "percent" else total


def strategy_words(sync: d.Synchronization) -> str:
    """`all of judges`, `5 of judges`, `60 % of judges`."""
    strategy, group = sync.strategy, sync.sibling_group
    if strategy.kind == "cel":
        return f"{strategy.expr} of {group}"
    if strategy.kind == "m_of_n":
        return f"{strategy.count} of {group}"
    if strategy.kind == "percent":
        return f"{strategy.count} % of {group}"
    return f"{'first' if strategy.kind == 'any' else 'all'} of {group}"


def missing_branches(group: Group, site: SiteState, most: int) -> list[int]:
    """The first branches that can still arrive: live ones, then those that have not begun."""
    found = sorted(site.live)[:most] if len(site.live) <= 10 * most else _first(site, most)
    rest = most - len(found)
    if rest > 0 and not group.withdrawn:
        found += range(group.spawned, min(group.total, group.spawned + rest))
    return found


def _first(site: SiteState, most: int) -> list[int]:
    """Some branches, in the order in which they began: sorting 100,000 for each visit that waits would cost seconds."""
    found = []
    for branch in site.live:
        found.append(branch)
        if len(found) == most:
            break
    return found
