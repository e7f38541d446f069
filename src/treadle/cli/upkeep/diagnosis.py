"""One line of `treadle doctor`, and the limits that the checks of files and of databases share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from treadle.runtime.queue.queue_settings import QueueView

LATE_WARN_MS = 5_000
"""A request or a timer that has waited longer than this means that its owner is stuck."""


REFUSED_RECENTLY_MS = 7 * 86_400_000
"""A week: long enough for the sender to see it; after that `treadle requests` still has it."""


class Diagnosis(NamedTuple):
    """One check: its verdict, what was found, and the remedy."""

    check: str
    verdict: str
    """ok | warn | bad"""
    finding: str
    remedy: str = ""


def size(count: float) -> str:
    """A number of bytes in the largest unit that fits."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 1024:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.1f} TiB"


def refused_requests(refused: int) -> Diagnosis:
    """Requests that were kept while no engine ran and that an engine has refused within the last week."""
    if not refused:
        return Diagnosis("kept requests", "ok", "none was refused")
    told = f"{refused} {'was' if refused == 1 else 'were'} refused within the last 7 days"
    return Diagnosis("kept requests", "warn", told, "treadle requests --refused says which, and why")


def left_alone(queues: Sequence[QueueView]) -> list[Diagnosis]:
    """Queues whose work no worker can do."""
    from treadle.cli.watch.queue_words import why

    left = [one for one in queues if one.waiting and one.queue and one.is_left_alone]
    told = f"{sum(one.waiting for one in queues):,} waiting, every queue has a worker"
    lines = [Diagnosis("queues", "warn", f"{one.waiting:,} waiting in {one.queue!r}", why(one)) for one in left]
    return lines or [Diagnosis("queues", "ok", told)]
