"""Why work of a queue does not begin: nobody works for it, or can, or what is decided about it holds it back.

Owns the words. Looks only where a visit waits in a queue, and where a store has queues.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from treadle.errors import CommandRefused
from treadle.model.states import Waiting

if TYPE_CHECKING:
    from treadle.cli.watch.overview import Overview
    from treadle.runtime.client import Client
    from treadle.runtime.queues import QueueRules, QueueView


async def turns_of(client: Client, view: Overview) -> dict[str, str]:
    """Queue → why, for the queues that visits of a run wait in."""
    wanted = {
        visit.detail.get("queue")
        for visit in view.visits.values()
        if visit.waiting is Waiting.QUEUE and isinstance(visit.detail, dict)
    }
    if not any(wanted):
        return {}
    try:
        queues = await client.queues()
    except CommandRefused:  # one engine does it all by itself
        return {}
    return {one.queue: words for one in queues if one.queue in wanted and (words := why(one))}


def why(queue: QueueView) -> str:
    """Empty if there is nothing in the way but the work before it."""
    if not queue.workers:
        return f"nobody works for it (treadle worker --queue {queue.queue})"
    if queue.waiting and queue.is_left_alone:
        remedy = f"treadle worker --queue {queue.queue} --functions MODULE"
        return f"who works for it lacks {lacking(queue.lacks)} ({remedy})"
    limit = queue.rules.concurrency
    if limit is not None and queue.claimed >= limit:
        return f"its limit is {limit} at once"
    others = limits(replace(queue.rules, concurrency=None))
    return f"its limits are {', '.join(others)}" if others else ""


def limits(rules: QueueRules) -> list[str]:
    """`2 at once`, `5/s`, `per key 1 at once`."""
    from treadle.runtime.queues import write_rate

    words = []
    for whose, concurrency, rate in (
        ("", rules.concurrency, rules.rate),
        ("per key ", rules.key_concurrency, rules.key_rate),
    ):
        words += [f"{whose}{concurrency} at once"] if concurrency is not None else []
        words += [f"{whose}{write_rate(rate)}"] if rate is not None else []
    return words


def lacking(lacks: dict[str, tuple[str, ...]]) -> str:
    """What is lacking, whosoever lacks it or wherever."""
    return ", ".join(sorted({what for names in lacks.values() for what in names}))
