"""`treadle nodes`: who is on the store, what each owns, and how far behind it is.

Exit codes: 0 · 1 something waits in shards that nobody owns · 5 the store cannot be used.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from treadle.cli.exits import NO, OK
from treadle.cli.options import OutputOption, StoreOption, configuration

if TYPE_CHECKING:
    from treadle.runtime.client import Client

COLUMNS = ("node", "roles", "queues", "shards", "since", "last_beat", "requests", "timers_due", "oldest")


def nodes(*, store: StoreOption = None, output: OutputOption = None) -> int:
    """Show who coordinates and executes, what each owns, and how far behind it is."""
    from treadle.cli.opening import ask

    return ask(configuration(store, output), _nodes)


async def _nodes(client: Client, out: Any) -> int:
    from treadle.cli.emit import builtins, clock_time, duration

    found = await client.nodes()
    rows = []
    for one in found:
        words = {
            "node": one.node or "(nobody)",
            "roles": "coordinates, executes" if one.coordinates else "executes" if one.node else "",
            "queues": "" if not one.node else "all" if one.queues is None else ", ".join(one.queues) or "none",
            "shards": ranges(one.shards),
            "since": clock_time(one.since) if one.since else "",
            "last_beat": f"{duration(one.silent_ms)} ago" if one.silent_ms is not None else "",
            "oldest": duration(one.oldest_ms) if one.requests or one.timers_due else "",
        }
        rows.append({**builtins(one), **(words if out.text else {})})
    out.rows(COLUMNS, rows, "nobody coordinates the store: treadle engine")
    return NO if any(not one.node for one in found) else OK


def ranges(shards: Sequence[int]) -> str:
    """`12: 0-3, 8-15`: how many, and which."""
    return f"{len(shards)}: {', '.join(_ranges(shards))}" if shards else "0"


def _ranges(shards: Sequence[int]) -> Iterator[str]:
    first = last = shards[0]
    for shard in (*shards[1:], -1):
        if shard == last + 1:
            last = shard
            continue
        yield f"{first}" if first == last else f"{first}-{last}"
        first = last = shard
