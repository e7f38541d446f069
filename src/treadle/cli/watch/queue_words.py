"""Words about queues: their limits, what their workers lack, and why their work does not begin.

Work does not begin because the queue has no worker, because its workers lack a function, or because of its limits. The
store is asked only if a visit of the run waits in a queue.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from treadle.errors import CommandRefused
from treadle.model.states import Waiting

if TYPE_CHECKING:
    from treadle.cli.watch.overview import Overview
    from treadle.runtime.client import Client
    from treadle.runtime.queue.queue_settings import QueueRules, QueueView


async def turns_of(client: Client, view: Overview) -> dict[str, str]:
    """Queue → why its work does not begin, for the queues in which visits of a run wait."""
    wanted = {
        visit.detail.get("queue")
        for visit in view.visits.values()
        if visit.waiting is Waiting.QUEUE and isinstance(visit.detail, dict)
    }
    if not any(wanted):
        return {}
    try:
        queues = await client.queues()
    except CommandRefused:  # the store has no queues: one engine executes everything
        return {}
    return {one.queue: words for one in queues if one.queue in wanted and (words := why(one))}


def why(queue: QueueView) -> str:
    """Why work of the queue does not begin; empty if it only waits for work before it."""
    if not queue.workers and not queue.outside:
        return f"it has no worker (treadle worker --queue {queue.queue})"
    if queue.waiting and queue.is_left_alone:
        lacks = lacking(queue.lacks)
        remedy = f"treadle worker --queue {queue.queue} --functions MODULE"
        if lacks.startswith("work "):
            remedy = "start a worker that claims it over HTTP"
        return f"its workers lack {lacks} ({remedy})"
    limit = queue.rules.concurrency
    if limit is not None and queue.claimed >= limit:
        return f"its limit is {limit} at once"
    others = limits(replace(queue.rules, concurrency=None))
    return f"its limits are {', '.join(others)}" if others else ""


def limits(rules: QueueRules) -> list[str]:
    """`2 at once`, `5/s`, `per key 1 at once`."""
    from treadle.runtime.queue.queue_settings import write_rate

    words = []
    for whose, concurrency, rate in (
        ("", rules.concurrency, rules.rate),
        ("per key ", rules.key_concurrency, rules.key_rate),
    ):
        words += [f"{whose}{concurrency} at once"] if concurrency is not None else []
        words += [f"{whose}{write_rate(rate)}"] if rate is not None else []
    return words


def lacking(lacks: dict[str, tuple[str, ...]]) -> str:
    """The functions and actions that are lacking, of all workers and queues together."""
    return ", ".join(sorted({what for names in lacks.values() for what in names}))
