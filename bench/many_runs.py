"""A store full of finished runs, made through the store's own commit: what lists are measured on.

Each run is one commit of a start and an end, many to a transaction. Its fields are spread so that every filter of a
list has a value that many runs have, one that few have, and one at the far end of the list.
"""

from __future__ import annotations

from collections.abc import Sequence

import uuid_utils

from treadle.model import events as e
from treadle.model.effects import Effect
from treadle.model.errors import Error
from treadle.model.ids import RunId, TokenId
from treadle.model.references import EntityRef, ParentLink
from treadle.model.states import RunStatus
from treadle.store.port import Batch, Commit, Fence, Store

BEGIN = 1_760_000_000_000
EVERY_MS = 50
"""Time between two starts: a million make fourteen hours."""
TOGETHER = 2_000
RARE = 200_000
"""One run in so many has the rare value of a field: the first of all and a few after it."""


async def fill(store: Store, fences: Sequence[Fence], count: int) -> None:
    """Writes `count` finished runs."""
    for first in range(0, count, TOGETHER):
        commits = [one_run(number) for number in range(first, min(first + TOGETHER, count))]
        await store.commit(Batch(commits), *fences)


def one_run(number: int) -> Commit:
    """The decision that starts and ends run `number`."""
    run = RunId(str(uuid_utils.uuid7()))
    rare = number % RARE == 7
    at = BEGIN + number * EVERY_MS
    started = e.RunStarted(
        1,
        at,
        run,
        "rare" if rare else f"orders/flow-{number % 20}",
        2 if rare else 1,
        "h",
        None,
        entity=EntityRef(f"customer-{number % 100_000}", "customer") if number % 10 == 0 or rare else None,
        parent=ParentLink(RunId("the-parent"), TokenId(1)) if rare else None,
        idempotency_key=f"order-{number}",
        tags=("rare-tag", "daily") if rare else ("daily",) if number % 5 == 0 else (),
    )
    ended: e.Event
    if rare:
        ended, status = e.RunCancelled(2, at + 20, "bench"), RunStatus.CANCELLED
    elif number % 100 == 3:
        ended, status = e.RunFailed(2, at + 20, Error("TASK_FAILED", "no")), RunStatus.FAILED
    else:
        ended, status = e.RunCompleted(2, at + 20, {"ok": True}), RunStatus.COMPLETED
    effects: list[Effect] = []
    return Commit(run, 0, [started, ended], effects, status)
