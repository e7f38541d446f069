"""Rows of queue work that a commit writes: offered, withdrawn, held. Part of the commit's transaction; the verbs of
workers are in `work`."""

from __future__ import annotations

from collections.abc import Mapping

import asyncpg

from treadle.model.ids import RunId
from treadle.model.states import RunStatus
from treadle.store.planning import BatchPlan
from treadle.store.postgres.columns import columns
from treadle.store.postgres.queries import SQL


async def write_work(connection: asyncpg.Connection, plan: BatchPlan, homes: Mapping[RunId, int]) -> None:
    """Writes offers. Those of paused runs are held from the beginning."""
    gone = sorted(key for key, offer in plan.work.items() if offer is None)
    if gone:
        await connection.execute(SQL["withdraw_work"], *columns(gone, 2))
    if plan.offers:
        rows = [
            (
                run,
                offer.token,
                homes[run],
                offer.queue,
                offer.priority,
                offer.key,
                offer.attempt,
                offer.recovery,
                offer.slot.limit if offer.slot is not None else None,
                packed,
                plan.runs[run].commit.status is RunStatus.PAUSED,
            )
            for run, offer, packed in plan.offers
        ]
        await connection.execute(SQL["offer_work"], *columns(rows, 11))
    if plan.held:
        await connection.execute(SQL["hold_work"], *columns(plan.held.items(), 2))
