"""What keeps the runs of a workflow from running each other over: limits on starts, priorities, budgets (6.7, 6.8).

Drawn from streams of their own, so that the graph of a seed stays what it was.
"""

from __future__ import annotations

from typing import Any

from tests.simulator.draw import Draw
from tests.simulator.plan import Plan
from treadle.model.definition import Budget, Debounce, RunBatch, RunConcurrency, RunRate

KEYS: tuple[str | None, ...] = (None, "$.input.flag", "$.flag")
"""Few values, so that starts meet. The auditor has its own reading of each."""


def flow(plan: Plan, name: str, *, calls_itself: bool) -> dict[str, Any]:
    """The fields of a workflow that limit its runs. A workflow that calls itself has no limits on its starts: a run
    would wait for the end of the very run that waits for it."""
    draw = Draw(plan.seed, f"limits of {name}")
    fields: dict[str, Any] = {}
    if not calls_itself:
        fields.update(_starts(plan, draw))
    if plan.has("priority") and draw.chance(0.8):
        fields["priority"] = draw.pick((5, -3, "$.input.n", "$.n"))
    if plan.has("budget") and draw.chance(0.7):
        fields["budget"] = _budget(draw)
    return fields


def _starts(plan: Plan, draw: Draw) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    if plan.has("concurrency") and draw.chance(0.8):
        fields["concurrency"] = RunConcurrency(
            limit=draw.between(1, 2),
            key=draw.pick(KEYS),
            on_limit=draw.pick(("queue", "queue", "queue", "skip", "cancel_oldest", "fail")),
        )
    if plan.has("rate") and draw.chance(0.8):
        fields["rate"] = RunRate(
            limit=draw.between(1, 3),
            per_ms=draw.pick((20, 150, 600)),
            key=draw.pick(KEYS),
            burst=draw.pick((None, None, 1, 3)),
            on_limit=draw.pick(("queue", "queue", "queue", "skip")),
        )
    if plan.has("debounce") and draw.chance(0.6):
        ms = draw.pick((5, 60, 300))
        fields["debounce"] = Debounce(key=draw.pick(KEYS[1:]), ms=ms, max_wait_ms=draw.pick((None, 2 * ms)))
    elif plan.has("batch") and draw.chance(0.6):
        fields["batch"] = RunBatch(size=draw.between(1, 4), within_ms=draw.pick((5, 80, 400)), key=draw.pick(KEYS))
    return fields


def _budget(draw: Draw) -> Budget:
    parts: dict[str, Any] = {
        "cost": draw.pick((None, 0.5, 2.0)),
        "tokens": draw.pick((None, 40, 200)),
        "visits": draw.pick((None, 2, 5, 12)),
        "elapsed_ms": draw.pick((None, None, 200, 1_000)),
    }
    if not any(parts.values()):
        parts["visits"] = 4
    return Budget(**parts, warn_at=draw.pick((0.5, 0.8)), on_exceeded=draw.pick(("pause", "pause", "gate", "fail")))
