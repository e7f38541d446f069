"""Facts about the runs of a list that their rows do not have: values of the input, and what visits wait for.

Owns the names. Promises that a value of a list is short, whatever the input holds.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, Literal, get_args

import msgspec

from treadle.model.events import Beginning
from treadle.model.states import RUN_ENDED, RunStatus
from treadle.runtime.run import Run

Json = Any
TEXT_MAX = 200
"""Characters of a value in a list."""
INPUT = "input."
AwaitedBy = Literal[
    "retry", "human", "timer", "signal", "subworkflow", "external", "queue", "mutex", "siblings", "trigger"
]
AWAITED = frozenset(get_args(AwaitedBy))
LIVE = tuple(status for status in RunStatus if status not in RUN_ENDED)


async def input_fields(runs: Sequence[Run], names: Sequence[str]) -> list[dict[str, Json]]:
    """The values at `input.…` of each run; a run whose input has none there lacks the name."""
    histories = await asyncio.gather(*(run.history(limit=1) for run in runs))
    return [_values(events[0], names) if events else {} for events in histories]


def _values(event: Any, names: Sequence[str]) -> dict[str, Json]:
    found: dict[str, Json] = {}
    if not isinstance(event, Beginning):
        return found
    for name in names:
        here: Json = event.input
        for key in name.removeprefix(INPUT).split("."):
            if isinstance(here, list) and key.isascii() and key.isdigit() and int(key) < len(here):
                here = here[int(key)]
            else:
                here = here.get(key) if isinstance(here, dict) else None
        if here is not None:
            found[name] = _short(here)
    return found


def _short(value: Json) -> Json:
    if not isinstance(value, str | dict | list):
        return value
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return text if len(text) <= TEXT_MAX else f"{text[: TEXT_MAX - 1]}…"


async def waits_of(run: Run) -> set[str]:
    """What the run's visits wait for now: the reasons of 2.9, and `retry` for a wait for the next attempt."""
    detail = await run.detail()
    return {
        "retry" if wait.awaits == "timer" and "after" in (wait.detail or {}) else wait.awaits for wait in detail.waiting
    }
