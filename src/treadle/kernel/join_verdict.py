"""The verdict on a join from its four numbers (live, arrived, failed, total) and its strategy: fire, fail, die or wait
(2.5)."""

from __future__ import annotations

from typing import Any, Literal

from treadle.errors import DataTooLarge, EvaluationError
from treadle.graph.execution_graph import JoinSite
from treadle.kernel.deciding import Deciding
from treadle.kernel.group_state import Group, SiteState
from treadle.kernel.join_merge import contributions
from treadle.kernel.standing import unspawned
from treadle.kernel.view import TokenView

Verdict = tuple[Literal["fire", "fail", "dead", "wait"], str, str]
"""(what to do, error kind, why in words)"""


def live_branches(d: Deciding, group: Group, state: SiteState) -> int:
    """How many branches can still arrive, those not yet spawned included."""
    rest = unspawned(group)
    if rest and not _start_reaches(d, group, d.graph.sites[state.index]):
        rest = 0
    return len(state.live) + rest


def _start_reaches(d: Deciding, group: Group, site: JoinSite) -> bool:
    transitions = (d.graph.transitions[name] for name in group.transitions)
    return any(t.site is site or site.reach & t.target.bit for t in transitions)


def verdict(d: Deciding, group: Group, state: SiteState, site: JoinSite) -> Verdict:
    live = live_branches(d, group, state)
    arrived, failed, total = state.arrived, len(group.failed), group.total
    if total == 0 and not _is_the_empty_join(d, group, site):
        return "wait" if len(group.sites) > 1 else "dead", "", ""
    if failed and site.sync.on_branch_failure == "fail":
        return "fail", "BRANCH_FAILED", f"branch {min(group.failed)} failed"
    kind = site.sync.strategy.kind
    if kind == "all":
        return _verdict_all(site, live, arrived, failed, total, group.empties)
    if kind == "cel":
        return _verdict_cel(d, group, state, site, live)
    count = site.sync.strategy.count
    need = {"any": 1, "m_of_n": count}.get(kind, -(-count * total // 100))
    if arrived >= need and total:
        return "fire", "", f"{arrived} of {total} arrived, {need} needed"
    if live and (kind == "percent" or group.open):
        # A10: a share is judged when no branch can come any more; and an open group may still grow
        return "wait", "", ""
    if arrived + live < need or not total:
        if total and not failed and not arrived and total >= need:
            # every branch so far routed away: nothing has failed, and if the rest do the same the join is dead
            return "wait" if live else "dead", "", ""
        why = f"{need} of {total} branches needed, {arrived} arrived and {live} can still come"
        return "fail", "QUORUM_UNREACHABLE", why
    return "wait", "", ""


def _verdict_all(site: JoinSite, live: int, arrived: int, failed: int, total: int, empties: int) -> Verdict:
    if live:
        return "wait", "", ""
    if total == 0:
        return "fire", "", "the group is empty"
    if arrived or (failed and site.sync.on_branch_failure == "include_errors"):
        return "fire", "", f"{arrived} of {total} arrived, {failed} failed, none can still come"
    if failed:
        return "fail", "NO_SUCCESSFUL_BRANCH", f"all {failed} branches that could arrive have failed"
    if empties:
        return "fire", "", "everything it waits for was empty"
    return "dead", "", ""


def _verdict_cel(d: Deciding, group: Group, state: SiteState, site: JoinSite, live: int) -> Verdict:
    assert site.quorum is not None
    arrived, failed = state.arrived, len(group.failed)
    if live and not arrived and not failed:
        return "wait", "", ""
    facts: dict[str, Any] = {
        "arrived": arrived,
        "succeeded": arrived,
        "failed": failed,
        "live": live,
        "total": group.total,
    }
    if any(path[:1] == ("results",) for path in site.quorum.reads):
        facts["results"] = [value for _, value in contributions(d, group, state, site)]
    try:
        satisfied = site.quorum.evaluate(TokenView(d.state, group.frames, None, facts)) is True
    except DataTooLarge as problem:
        return "fail", problem.kind, f"strategy: {problem}"
    except EvaluationError as problem:
        satisfied = False
        if not state.unevaluable:
            via = next(t.id for t in d.graph.transitions.values() if t.site is site)
            d.condition_unevaluable(via, str(problem), part="strategy", group=group.id)
    if satisfied:
        return "fire", "", f"{site.sync.strategy.expr} holds with {arrived} of {group.total} arrived"
    if live:
        return "wait", "", ""
    if not arrived and not failed and group.total:
        return "dead", "", ""
    return "fail", "QUORUM_UNREACHABLE", f"{site.sync.strategy.expr} does not hold and no branch is left"


def _is_the_empty_join(d: Deciding, group: Group, site: JoinSite) -> bool:
    """Whether an empty collection satisfies this join: it is the one `on_empty` names, else the only one ahead."""
    for name in group.transitions:
        foreach = d.graph.transitions[name].definition.foreach
        if foreach is not None and foreach.on_empty is not None:
            return site.target.ref == foreach.on_empty
    ahead = [s for s in group.sites if _start_reaches(d, group, d.graph.sites[s.index])]
    return len(ahead) == 1 and d.graph.sites[ahead[0].index] is site
