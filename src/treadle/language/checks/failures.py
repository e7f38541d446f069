"""Advice about fan-ins that go on although every branch may have failed, where nothing after them reads the errors.

The default suits workflows that read the errors: a failed branch contributes `{"_error": …}` and the join fires.
Whether something reads them can be seen in expressions and templates, not in functions, so this is advice: `strict`
leaves it a warning, and `min_success_count` (0 too) settles it.
"""

from __future__ import annotations

import re

import msgspec
from msgspec import UNSET

from treadle.language.checks.flow import Flow
from treadle.language.checks.regions import Regions
from treadle.language.reading import Reading
from treadle.model.definition import Synchronization, Transition

_ERRORS = re.compile(rb"\b_(?:last_)?error\b")


def check(flow: Flow, reading: Reading) -> None:
    """FAILURES_UNSEEN."""
    regions = Regions(flow)
    told: set[tuple[str, str]] = set()
    for index, transition in flow.edges:
        sync = transition.synchronization
        if sync is None or transition.from_ not in flow.live or (sync.sibling_group, transition.to) in told:
            continue
        told.add((sync.sibling_group, transition.to))
        if _goes_on(sync) and _can_fail(flow, regions.inside(sync.sibling_group)) and not _looks(flow, transition):
            message = (
                f"if every branch of `{sync.sibling_group}` fails, this join goes on all the same, "
                "and no expression after it reads `_error` or `_last_error`"
            )
            hint = "say how many must succeed: `min_success_count: 1` (0: none), or `on_branch_failure: fail`"
            reading.problem_in("FAILURES_UNSEEN", ("transitions", index, "synchronization"), message, hint)


def _goes_on(sync: Synchronization) -> bool:
    """Whether the join goes on with failed branches: quorums count successes only, the others take an error for a
    contribution."""
    takes_errors = sync.on_branch_failure == "include_errors" and sync.strategy.kind in ("all", "cel")
    return takes_errors and sync.min_success_count is None


def _can_fail(flow: Flow, inside: frozenset[str]) -> bool:
    """Whether a branch does work whose failure nothing in the branch handles for certain."""
    return any(
        flow.workflow.nodes[ref].task is not None and not any(_handles(edge[1]) for edge in flow.out[ref])
        for ref in inside
    )


def _handles(transition: Transition) -> bool:
    return transition.on != "success" and transition.condition is None and transition.trigger is None


def _looks(flow: Flow, join: Transition) -> bool:
    after = flow.reach([join.to])
    parts: list[object] = [flow.workflow.nodes[ref] for ref in after]
    parts += [transition for _, transition in flow.edges if transition.from_ in after]
    if flow.workflow.output is not UNSET:
        parts.append(flow.workflow.output)
    return any(_ERRORS.search(msgspec.json.encode(part)) for part in parts)
