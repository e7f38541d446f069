"""A run as it is now: its row, its counts, its waits, and the failures behind its error. Pure.

Owns how a state becomes `RunDetail`. Must not read a store or a clock.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import msgspec

from treadle.kernel.state import ENDED, RunState
from treadle.model.errors import Error
from treadle.model.ids import TokenId
from treadle.model.spending import PARTS
from treadle.model.states import RUN_ENDED, Waiting
from treadle.runtime.view.readings import RunReading
from treadle.runtime.view.shapes import BudgetView, FailureCause, RunDetail, WaitView
from treadle.runtime.view.waits import reason_of, wait_of, wait_of_run
from treadle.store.port import RunRow

Json = Any

WAITING_MAX = 1_000
"""Waits that a run's detail names; the rest are counted, and `visits?status=waiting` pages through them."""


def detail_of(row: RunRow, reading: RunReading) -> RunDetail:
    """Everything about a run that is true at one sequence number. The reading may be newer than the row."""
    state, changed = reading.state, reading.log.changed
    waits, more = waits_of(reading)
    return RunDetail(
        run=row.run,
        workflow=row.workflow,
        version=row.version,
        status=state.status.value,
        seq=state.seq,
        started=row.started,
        changed=changed,
        entity=state.entity.address if state.entity is not None else row.entity,
        tags=row.tags,
        parent=row.parent,
        key=row.idempotency_key,
        ended=changed if state.status in RUN_ENDED else None,
        number=row.number,
        input=state.input,
        output=state.output,
        error=state.error,
        causes=causes_of(state),
        counts=counts_of(state),
        waiting=waits,
        waiting_more=more,
        shortened=reading.shortened,
        budget=budget_of(state, changed),
    )


def budget_of(state: RunState, now: int) -> BudgetView | None:
    """The run's budget as it stood at `now`; None if it has none of its own."""
    limits, kept = state.graph.definition.budget, state.budget
    if limits is None or kept is None:
        return None
    found = {part: kept.limit_of(part, limits) for part in PARTS}
    return BudgetView(
        limits={part: limit for part, limit in found.items() if limit is not None},
        spent={part: kept.spent_of(part, now) for part in PARTS},
        on_exceeded=limits.on_exceeded,
        exceeded=kept.exceeded if state.is_over_budget else None,
    )


def counts_of(state: RunState) -> dict[str, int]:
    """Visits by status."""
    found: Counter[str] = Counter()
    for code, status in enumerate(ENDED):
        if code and (count := state.ended.count(code)):
            found[str(status)] += count
    found.update(token.state.value for token in state.tokens.values() if not state.ended[token.id - 1])
    return dict(sorted(found.items()))


def waits_of(reading: RunReading) -> tuple[list[WaitView], int]:
    """The waits, oldest visit first, and how many there are beyond the limit. Visits held at a join come last: they
    wait for the others."""
    state, log = reading.state, reading.log
    own: list[TokenId] = []
    held: list[TokenId] = []
    for token in state.tokens.values():
        reason = reason_of(token)
        if reason is not None and not state.ended[token.id - 1]:
            (held if reason is Waiting.SIBLINGS else own).append(token.id)
    chosen = [*own, *held]
    found = [wait_of_run(state)] if state.has_gate else []
    for visit in chosen[:WAITING_MAX]:
        found.append(wait_of(state, state.tokens[visit], log.visits[visit]))
    return [wait for wait in found if wait is not None], max(len(chosen) - WAITING_MAX, 0)


def causes_of(state: RunState) -> list[FailureCause]:
    """The failures that made the run fail, or will, in order: each visit or fan-in that nothing has handled."""
    found = []
    for seq, error in state.unhandled.items():
        failure = state.failures.get(seq)
        visit = failure.token if failure is not None and failure.token else None
        join = failure.target if failure is not None else None
        group = failure.group if failure is not None else None
        found.append(_cause(error, visit, join, group))
    if not found and state.error is not None and state.error.causes:
        found.append(_cause(state.error, None, None, None))
    return found


def _cause(error: Error, visit: int | None, join: str | None, group: int | None) -> FailureCause:
    causes = [msgspec.to_builtins(cause) for cause in error.causes]
    return FailureCause(error.kind, error.message, visit, error.node, error.path, join=join, group=group, causes=causes)
