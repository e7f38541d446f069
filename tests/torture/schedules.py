"""A schedule that goes on through the whole torture: every time it is due, one run and only one.

Owns what a client does about it, and the judge's opinion. Times that passed while nobody coordinated are made up for
(`catch_up: all`), so that a gap is a loss.
"""

from __future__ import annotations

import asyncio
import itertools

from tests.torture.journal import Journal
from tests.torture.journeys import surely
from tests.torture.verdict import Evidence, Verdict
from treadle.runtime.client import Client
from treadle.runtime.schedule.definition import Schedule
from treadle.runtime.schedule.times import occurrence_key

NAME, WORKFLOW, INPUT = "drum", "chain", {"n": 1}
LATE_MS = 30_000
"""By then a time that is due has its run, when faults are over."""


async def keep(client: Client, journal: Journal, every_ms: int, over: asyncio.Event) -> None:
    """From now until it is over."""
    schedule = Schedule(name=NAME, workflow=WORKFLOW, every_ms=every_ms, input=INPUT, overlap="allow", catch_up="all")
    await surely(lambda: client.put_schedule(schedule))
    journal.say(sure=True, op="scheduled", every_ms=every_ms)
    await over.wait()
    await surely(lambda: client.remove_schedule(NAME))
    journal.say(sure=True, op="unscheduled")


def judge(evidence: Evidence, verdict: Verdict) -> set[str]:
    """The keys of the schedule's runs, if somebody has made it."""
    made = next((line for line in evidence.client if line["op"] == "scheduled"), None)
    if made is None:
        return set()
    prefix = occurrence_key(NAME, 0).removesuffix("0")
    keys = {row.idempotency_key for row in evidence.runs.values() if (row.idempotency_key or "").startswith(prefix)}
    due = sorted(int(str(key).removeprefix(prefix)) for key in keys)
    for before, after in itertools.pairwise(due):
        if after - before != made["every_ms"]:
            verdict.find(f"the schedule was due every {made['every_ms']} ms, and not between {before} and {after}")
    ended = next((line for line in evidence.client if line["op"] == "unscheduled"), None)
    if not due or (ended is not None and due[-1] < ended["at"] - LATE_MS - made["every_ms"]):
        verdict.find(f"the schedule has started {len(due)} runs, the last of them for {due[-1:]}")
    return {str(key) for key in keys}
