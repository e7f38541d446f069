"""Why work of a queue does not begin: nobody works for it, or can, or what is decided about it holds it back.

Owns the words. Looks only where a visit waits in a queue, and where a store has queues.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from treadle.cli.queues import lacking, limits
from treadle.errors import CommandRefused
from treadle.model.states import Waiting

if TYPE_CHECKING:
    from treadle.cli.overview import Overview
    from treadle.runtime.client import Client
    from treadle.runtime.queues import QueueView


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
