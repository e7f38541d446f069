"""`treadle nodes`: the engines and workers on a store, the shards of each, and how far behind it is.

Exit codes: 0 · 1 requests or timers wait in shards without an owner · 5 the store cannot be used.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from treadle.cli.frame.exits import NO, OK
from treadle.cli.frame.options import OutputOption, StoreOption, configuration
from treadle.cli.watch.queue_words import lacking
from treadle.display import numbers

if TYPE_CHECKING:
    from treadle.cli.screen.tables import Gives
    from treadle.runtime.client import Client, NodeRow

COLUMNS = ("node", "role", "queues", "shards", "since", "last_beat", "behind", "lacks")
GIVES: tuple[Gives, ...] = (
    ("cut", "shards"),
    ("leave", "since"),
    ("cut", "queues"),
    ("front", "node"),
    ("cut", "behind"),
    ("leave", "behind"),
    ("cut", "lacks"),
    ("leave", "lacks"),
)


def nodes(*, store: StoreOption = None, output: OutputOption = None) -> int:
    """Show engines and workers, the shards of each, and how far behind it is."""
    from treadle.cli.frame.opening import ask

    return ask(configuration(store, output), _nodes)


async def _nodes(client: Client, out: Any) -> int:
    from treadle.cli.screen.output import builtins, clock_time, duration

    found = await client.nodes()
    names = Counter(one.node for one in found)
    rows = []
    for one in found:
        words = {
            "node": (one.owner if names[one.node] > 1 else one.node) or "(nobody)",
            "role": "engine" if one.coordinates else "worker" if one.node else "",
            "queues": "" if not one.node else "all" if one.queues is None else ", ".join(one.queues) or "none",
            "shards": ranges(one.shards),
            "since": clock_time(one.since) if one.since else "",
            "last_beat": f"{duration(one.silent_ms)} ago" if one.silent_ms is not None else "",
            "behind": behind(one),
            "lacks": lacking(one.lacks),
        }
        rows.append({**builtins(one), **(words if out.text else {})})
    out.rows(COLUMNS, rows, "no engine coordinates the store: treadle engine", GIVES)
    return NO if any(not one.node for one in found) else OK


def behind(node: NodeRow) -> str:
    """`2.1 s: 3 requests, 1 timer`: what waits for the node, and how long the oldest has waited."""
    from treadle.cli.screen.output import duration

    counts = ((node.requests, "request"), (node.timers_due, "timer"))
    waiting = ", ".join(f"{count} {noun}{'' if count == 1 else 's'}" for count, noun in counts if count)
    return f"{duration(node.oldest_ms)}: {waiting}" if waiting else ""


def ranges(shards: Sequence[int]) -> str:
    """`12: 0-3, 8-15`: the number of shards, and their ranges."""
    return f"{len(shards)}: {numbers.ranges(shards)}" if shards else "0"
