"""How joins decide: strategies, what failures and the rest mean, clocks, merges; and node joins."""

from __future__ import annotations

from typing import Any, Literal

from tests.simulator.generator.sketch import Sketch
from treadle.model.definition import Merge, NodeJoin, Strategy, Synchronization

JoinName = Literal["all_inbound", "all_reachable", "inbound_fifo", "inbound", "tokens"]
MergeName = Literal["append", "concat", "merge_object", "keyed_by_branch", "last_wins", "vote"]
COMPUTED = (
    "arrived * 2 >= total",
    "arrived >= 1 && failed == 0",
    "succeeded + failed >= total",
    "live == 0 && arrived > 0",
)
"""The `{cel}` strategies in use. The auditor has its own reading of each."""

MERGES: tuple[tuple[str, MergeName], ...] = (
    ("$._branch.output.v", "append"),
    ("$._branch.output.v", "keyed_by_branch"),
    ("$._branch.output.v", "last_wins"),
    ("$._branch.output.v", "vote"),
    ("$._branch.output.list", "concat"),
    ("$._branch.output", "merge_object"),
    ("$._branch.output", "append"),
)


def synchronization(s: Sketch, group: str, branches: int | None) -> Synchronization:
    """A join on `group`; `branches` is its size where the definition alone says so."""
    fields: dict[str, Any] = {"sibling_group": group}
    if s.has("early_join", 0.6):
        fields["strategy"] = _early(s, branches)
        fields["on_early_complete"] = s.draw.pick(("abandon", "cancel", "pass_through"))
        if s.has("block", 0.4):
            fields["on_early_complete"] = "block"
    if s.has("branch_failure", 0.6):
        fields["on_branch_failure"] = s.draw.pick(("include_errors", "exclude", "fail"))
    if s.has("sync_timeout", 0.5):
        fields["timeout_ms"] = s.draw.pick((5, 60, 300))
        fields["on_timeout"] = s.draw.pick(("fail", "proceed_with_available"))
    if s.draw.chance(0.1):
        fields["min_success_count"] = s.draw.between(1, min(branches or 2, 2))
    if s.has("merge", 0.6):
        source, strategy = s.draw.pick(MERGES)
        fields["merge"] = Merge(
            source=source,
            target="$.state.merged",
            strategy=strategy,
            streaming=s.draw.chance(0.2),
        )
    return Synchronization(**fields)


def _early(s: Sketch, branches: int | None) -> Strategy:
    kind = s.draw.pick(("any", "m_of_n", "m_of_n", "percent", "cel"))
    if kind == "m_of_n":
        return Strategy(kind="m_of_n", count=s.draw.between(1, branches if branches is not None else 3))
    if kind == "percent":
        return Strategy(kind="percent", count=s.draw.pick((1, 34, 50, 100)))
    if kind == "cel":
        return Strategy(kind="cel", expr=s.draw.pick(COMPUTED))
    return Strategy(kind="any")


def node_join(s: Sketch, inbound: int) -> NodeJoin:
    """A node's own join."""
    kinds: tuple[JoinName, ...] = ("all_inbound", "all_reachable", "all_reachable", "inbound_fifo", "inbound", "tokens")
    kind = s.draw.pick(kinds)
    if kind == "inbound":
        return NodeJoin(
            kind="inbound",
            count=s.draw.between(1, max(inbound, 1)),
            rest=s.draw.pick(("absorb", "block", "cancel")),
        )
    if kind == "tokens":
        return NodeJoin(kind="tokens", count=s.draw.between(1, max(inbound, 1)))
    return NodeJoin(kind=kind)
